"""Answers on disk, looked up by row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from priornet.distill import StoredTeacher, TeacherError, ask_all

RNG = np.random.default_rng(0)
INPUTS = pd.DataFrame(
    {
        "a": RNG.standard_normal(30),
        "colour": RNG.choice(["red", "blue"], 30),
        "gap": np.where(RNG.random(30) < 0.3, np.nan, RNG.standard_normal(30)),
    }
)

VARIANCE = np.where(np.arange(30) == 7, -1.0, 1.0)


def table(**columns):
    return INPUTS.assign(**columns)


def two_members(n=30):
    return {
        "mean_0": np.arange(n) + 0.0,
        "mean_1": np.arange(n) + 1.0,
        "variance_0": np.full(n, 2.0),
        "variance_1": np.full(n, 4.0),
    }


@pytest.fixture(params=["parquet", "csv"])
def path(request, tmp_path):
    path = tmp_path / f"answers.{request.param}"
    frame = table(**two_members())
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return path


def test_rows_are_found_again_in_any_order(path):
    teacher = StoredTeacher(path)
    assert teacher.feature_names == ("a", "colour", "gap")
    rows = RNG.permutation(30)
    found = ask_all(teacher, teacher.inputs.iloc[rows]).ensemble
    np.testing.assert_array_equal(found.means[:, :, 0], [rows + 0.0, rows + 1.0])
    np.testing.assert_array_equal(found.covariances[:, 0, 0, 0], [2.0, 4.0])


def test_the_index_that_pandas_writes_to_csv_is_no_input(tmp_path):
    table(**two_members()).to_csv(tmp_path / "answers.csv")
    teacher = StoredTeacher(tmp_path / "answers.csv")
    assert teacher.feature_names == ("a", "colour", "gap")
    assert teacher.index == ("",)


def test_other_rows_are_refused(path):
    with pytest.raises(TeacherError, match=r"1 of 2 rows are not in the file \(the first is row 2"):
        StoredTeacher(path).gaussians(
            pd.concat([INPUTS[:1], INPUTS[:1].assign(a=5.0)]).reset_index(drop=True)
        )


def test_several_targets_with_covariances(tmp_path):
    columns = {"mean_0_0": 1.0, "mean_0_1": 2.0, "covariance_0_0_0": 3.0}
    columns |= {"covariance_0_1_0": 0.5, "covariance_0_1_1": 4.0}
    columns |= {name.replace("_0_", "_1_", 1): value + 1 for name, value in columns.items()}
    table(**columns).to_parquet(tmp_path / "a.parquet")
    found = ask_all(StoredTeacher(tmp_path / "a.parquet"), INPUTS).ensemble
    np.testing.assert_array_equal(found.means[:, 0], [[1, 2], [2, 3]])
    np.testing.assert_array_equal(found.covariances[0, 0], [[3, 0.5], [0.5, 4]])


def test_several_targets_with_variances(tmp_path):
    columns = {
        f"{kind}_{m}_{k}": 1.0 + m + k
        for kind in ("mean", "variance")
        for m, k in ((0, 0), (0, 1), (1, 0), (1, 1))
    }
    table(**columns).to_parquet(tmp_path / "a.parquet")
    found = ask_all(StoredTeacher(tmp_path / "a.parquet"), INPUTS).ensemble
    np.testing.assert_array_equal(found.covariances[1, 0], [[2, 0], [0, 3]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, 'no answers in the table; it needs columns "mean_0"'),
        ({"mean_0": 1.0}, 'the column "variance_0" is missing'),
        ({"mean_1": 1.0, "variance_1": 1.0}, 'the column "mean_0" is missing'),
        ({"mean_0": 1.0, "mean_99999999999": 1.0}, 'the column "mean_1" is missing'),
        ({"mean_0": "many", "variance_0": 1.0}, 'the column "mean_0" is not numeric'),
        ({"mean_0": 1.0, "mean_0_1": 1.0, "variance_0": 1.0}, "is missing"),
    ],
)
def test_files_without_their_columns_are_refused(columns, message, tmp_path):
    table(**columns).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TeacherError, match=message):
        StoredTeacher(tmp_path / "a.parquet")


def test_columns_can_be_chosen(path):
    assert StoredTeacher(path, columns=("a",)).feature_names == ("a",)
    with pytest.raises(TeacherError, match='the column "b" is not in the table'):
        StoredTeacher(path, columns=("b",))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"mean_0": 1.0, "variance_0": VARIANCE}, 'column "variance_0", row 8: the variance is -1'),
        (
            {"mean_0_0": 1.0, "mean_0_1": 1.0, "variance_0_0": 1.0, "variance_0_1": VARIANCE},
            'column "variance_0_1", row 8',
        ),
        (
            {
                "mean_0_0": 1.0,
                "mean_0_1": 1.0,
                "covariance_0_0_0": 1.0,
                "covariance_0_1_0": 0.0,
                "covariance_0_1_1": VARIANCE,
            },
            'column "covariance_0_1_1", row 8',
        ),
    ],
)
def test_a_variance_that_is_not_positive_is_named_by_its_row_of_the_file(
    columns, message, tmp_path
):
    table(**columns).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TeacherError, match=message):
        StoredTeacher(tmp_path / "a.parquet")
