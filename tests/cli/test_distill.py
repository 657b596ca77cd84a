"""``priornet distill``: teachers from folders, modules and files; the comparison; errors."""

from __future__ import annotations

import json
import sys
from textwrap import dedent

import numpy as np
import pytest

from priornet.estimators import DeepEnsembleRegressor, load

FEATURES = ["x", "colour", "hole"]
MODULE = """
    import numpy as np

    def committee(rows):
        base = np.sin(rows["x"].to_numpy()) + (rows["colour"] == "red").to_numpy()
        base = base + 0.2 * np.nan_to_num(rows["hole"].to_numpy())
        off = np.linspace(-1, 1, 4)[:, None] * (0.05 + 0.1 * rows["x"].to_numpy() ** 2)
        return base + off, np.full(off.shape, 0.04)

    def make():
        return committee

    def broken(rows):
        return np.zeros((2, len(rows))), -np.ones((2, len(rows)))

    def missing(rows):
        return rows["price"], rows["price"]

    def constant(rows):
        return np.full((2, len(rows)), 3.0), np.full((2, len(rows)), 1e-30)

    three = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch, table):
    """Make a folder with inputs, a table with targets, and a module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(dedent(MODULE))
    table[FEATURES].to_csv(tmp_path / "x.csv", index=False)
    table.to_csv(tmp_path / "both.csv", index=False)
    yield tmp_path
    sys.modules.pop("mine", None)


@pytest.fixture(scope="session")
def ensemble(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers") / "ensemble"
    model = DeepEnsembleRegressor(3, hidden=(16,), epochs=30, random_state=0)
    model.fit(table[FEATURES], table["strength"]).save(folder)
    return folder


def results(call, *arguments):
    done = call("distill", *arguments, "--epochs", 200, "--quiet", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done.stderr


def test_a_function_of_a_module_is_distilled_without_targets(call, here, table):
    found, _ = results(call, "--teacher", "mine:committee", "--data", "x.csv", "--out", "student")
    assert found["features"] == FEATURES
    assert found["n_rows_read"] == 120
    assert found["n_training_rows"] == 120  # 18 held-out rows would be too few
    assert found["notes"] == [
        "Compared on the rows of the training: fewer than 20 would be held out.",
        f"Inputs are all columns: {', '.join(FEATURES)}. Name those that are targets, and those to "
        "ignore.",
    ]
    assert found["faithfulness"]["inside"]["r2"] > 0.9
    assert found["faithfulness"]["truth"] is None
    student = load(here / "student")
    x = table[FEATURES]
    expected = np.sin(x["x"]) + (x["colour"] == "red") + 0.2 * x["hole"].fillna(0)
    assert np.corrcoef(student.predict(x), expected)[0, 1] > 0.95
    assert call("predict", "student", "x.csv", "--out", "scored.csv").exit_code == 0


def test_the_index_that_pandas_writes_to_csv_is_no_input(call, here, table):
    table[FEATURES].to_csv(here / "x.csv")
    found, _ = results(call, "--teacher", "mine:committee", "--data", "x.csv", "--out", "student")
    assert found["features"] == FEATURES
    assert found["notes"][0] == '"" is an index without a name and was left out.'


def test_a_function_without_arguments_makes_the_teacher(call, here):
    named, _ = results(call, "--teacher", "mine:committee", "--data", "x.csv", "--out", "one")
    made, _ = results(call, "--teacher", "mine:make", "--data", "x.csv", "--out", "two")
    for found in (named, made):
        for name in ("rows_per_second_student", "rows_per_second_teacher", "times_faster"):
            del found["faithfulness"][name]
    assert made["faithfulness"] == named["faithfulness"]


def test_targets_score_both(call, here):
    found, _ = results(
        call,
        *("--teacher", "mine:committee", "--data", "both.csv", "--target", "strength"),
        *("--ignore", "weight", "--out", "student", "--holdout", 0.25),
    )
    assert found["targets"] == ["strength"]
    assert found["n_training_rows"] == 90
    assert found["n_compared_rows"] == 30
    assert found["notes"] == []
    assert set(found["faithfulness"]["truth"]) == {"student", "teacher"}


def test_a_model_folder_is_a_teacher(call, here, ensemble):
    found, _ = results(call, "--teacher", ensemble, "--data", "both.csv", "--out", "student")
    assert found["targets"] == ["strength"]
    assert found["faithfulness"]["bytes_teacher"] > 0
    assert found["features"] == FEATURES


def test_a_file_of_answers_is_a_teacher(call, here, table):
    x = table["x"].to_numpy()
    means = np.sin(x) + np.array([[-0.1], [0.1]]) * (1 + x**2)
    answers = {"mean_0": means[0], "mean_1": means[1], "variance_0": 0.1, "variance_1": 0.2}
    table[FEATURES].assign(**answers, id=1).to_parquet("answers.parquet")
    found, _ = results(call, "--teacher", "answers.parquet", "--ignore", "id", "--out", "student")
    assert found["features"] == FEATURES
    assert found["faithfulness"]["outside"] is None
    assert found["faithfulness"]["inside"]["r2"] > 0.5


def test_more_inputs_may_be_given(call, here, table):
    table[FEATURES].assign(x=table["x"] + 5).to_csv("more.csv", index=False)
    found, _ = results(
        call,
        *("--teacher", "mine:committee", "--data", "x.csv", "--out", "student"),
        *("--unlabelled", "more.csv"),
    )
    assert found["n_training_rows"] == 120


def test_an_unfaithful_student_is_written_with_a_warning(call, here):
    done = call(
        *("distill", "--teacher", "mine:committee", "--data", "x.csv", "--out", "student"),
        *("--epochs", 1, "--quiet"),
    )
    assert done.exit_code == 0
    assert "Warning: the student is not faithful: R2 of the mean is" in done.stderr
    assert "worst where" in done.stderr
    assert "1/0" not in done.stdout  # a student larger than its teacher is so many times its size
    for text in ("rank, knowledge", "rows per second", "times the teacher's", "Student: student"):
        assert text in done.stdout
    assert load(here / "student").predict_belief is not None


def test_figures_of_any_size_fit_the_table(call, here):
    done = call(
        *("distill", "--teacher", "mine:constant", "--data", "both.csv", "--target", "strength"),
        *("--out", "student", "--epochs", 1, "--quiet"),
    )
    assert done.exit_code == 0, done.output
    (nll,) = [line for line in done.stdout.splitlines() if "true NLL" in line]
    assert "e+" in nll


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--data", "x.csv"], "nowhere: no such folder"),
        (["absent:object", "--data", "x.csv"], "ModuleNotFoundError: No module named 'absent'"),
        (["mine:absent", "--data", "x.csv"], "AttributeError: module 'mine' has no attribute"),
        (["mine:three", "--data", "x.csv"], "TypeError: `teacher` must be a teacher of"),
        (["mine:committee"], "--data is missing"),
        (["mine:committee", "--data", "y.csv"], "y.csv: No such file"),
        (["mine:broken", "--data", "x.csv"], '--teacher "mine:broken": variances must be positive'),
        (["mine:missing", "--data", "x.csv"], "failed: KeyError: 'price'"),
        (["mine:committee", "--data", "x.csv", "--target", "z"], 'the target "z" is not in'),
        (["mine:committee", "--data", "x.csv", "--ignore", "z"], 'the column to ignore "z"'),
        (["mine:committee", "--data", "x.csv", "--unlabelled", "u.csv"], "u.csv: No such file"),
        (["both.csv"], "both.csv: no answers in the table"),
    ],
)
def test_bad_usage_is_one_line(refused, here, arguments, message):
    assert message in refused("distill", "--out", "student", "--quiet", "--teacher", *arguments)
    assert not (here / "student").exists()


def test_a_single_network_cannot_teach(refused, here, models):
    shown = refused(
        *("distill", "--teacher", models / "single", "--data", "x.csv", "--out", "s", "--quiet")
    )
    assert "whose members can disagree; GaussianRegressor predicts one Gaussian" in shown


def test_other_files_are_not_overwritten(refused, here):
    assert "holds other files" in refused(
        "distill", "--teacher", "mine:committee", "--data", "x.csv", "--out", here
    )


def test_a_mistyped_number_is_named_by_its_row_of_the_file(refused, here, ensemble, table):
    wrong = table.assign(x=table["x"].astype(object))
    wrong.loc[100, "x"] = "1.2.3"
    wrong.loc[:50, "strength"] = np.nan
    wrong.to_csv("wrong.csv", index=False)
    shown = refused(
        *("distill", "--teacher", ensemble, "--data", "wrong.csv", "--target", "strength"),
        *("--out", "student", "--quiet"),
    )
    assert 'wrong.csv: column "x", row 101: "1.2.3" is not a number' in shown


@pytest.mark.parametrize("own", [True, False])
def test_an_infinite_unlabelled_value_blames_its_own_file(refused, here, ensemble, table, own):
    table[FEATURES].assign(x=[*table["x"][:-1], np.inf]).to_csv("inf.csv", index=False)
    shown = refused(
        *("distill", "--teacher", ensemble if own else "mine:committee", "--data", "x.csv"),
        *("--unlabelled", "inf.csv", "--out", "student", "--quiet"),
    )
    assert 'inf.csv: column "x", row 120' in shown
    assert "x.csv: column" not in shown


def test_columns_are_described_as_by_fit(call, here, table):
    odd = table.assign(x=[*table["x"][:-1], 1e9])
    odd.loc[:50, "strength"] = np.nan
    odd.to_csv("odd.csv", index=False)
    done = call(
        *("distill", "--teacher", "mine:committee", "--data", "odd.csv", "--target", "strength"),
        *("--ignore", "weight", "--out", "student", "--epochs", 1),
    )
    assert done.exit_code == 0, done.output
    assert "odd.csv: columns as they are read:" in done.stderr
    (shown,) = [line for line in done.stderr.splitlines() if "1e+09" in line and "Warn" in line]
    assert shown.startswith("Warning: odd.csv: ")
    assert "row 120" in shown
