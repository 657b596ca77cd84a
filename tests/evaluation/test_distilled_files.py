"""Table files distilled with one call: the student, its comparison, and the rows of errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from priornet import DeepEnsembleRegressor, DistilledRegressor, load
from priornet.distill import TeacherError
from priornet.evaluation import distil_file
from priornet.messages import InputError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.standard_normal(160), "b": RNG.standard_normal(160)})
QUICK = {"hidden": (8,), "n_transfer": 400, "student_epochs": 2, "random_state": 0}


def committee(rows):
    means = np.stack([rows["a"], 1.1 * rows["a"] + 0.1 * rows["b"]])
    return means, np.full_like(means, 0.1)


@pytest.fixture
def source(tmp_path):
    """Write a table of inputs and one target."""
    path = tmp_path / "table.csv"
    FRAME.assign(y=FRAME["a"]).to_csv(path, index=False)
    return path


def test_a_file_is_distilled_compared_and_saved_with_one_call(source, tmp_path):
    told = []
    student = DistilledRegressor(committee, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # warnings are messages of the record
        found = distil_file(
            student, source, ["y"], tmp_path / "student", tell=lambda *parts: told.append(parts)
        )
    assert found.student is student
    assert [len(columns) for columns, _ in told] == [2, 0]
    state = found.to_json()
    assert (state["n_training_rows"], state["n_compared_rows"]) == (136, 24)
    assert set(state["faithfulness"]["truth"]) == {"student", "teacher"}
    problems = [f"the student is not faithful: {p}." for p in found.faithfulness.problems]
    assert state["warnings"][-len(problems) :] == problems
    back = load(tmp_path / "student")
    np.testing.assert_array_equal(back.predict(FRAME), student.predict(FRAME))


def test_a_teacher_that_fails_is_blamed_not_the_file(source):
    def broken(rows):
        raise KeyError("price")

    with pytest.raises(TeacherError, match="failed: KeyError: 'price'"):
        distil_file(DistilledRegressor(broken, **QUICK), source)


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")
def test_a_model_trained_on_an_array_has_no_columns_to_read(source):
    ensemble = DeepEnsembleRegressor(2, hidden=(4,), epochs=1, random_state=0)
    ensemble.fit(FRAME.to_numpy(), FRAME["a"])
    with pytest.raises(InputError, match="whose columns have no names"):
        distil_file(DistilledRegressor(ensemble, **QUICK), source)
