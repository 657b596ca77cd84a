"""Golden values of every method on a table with text, dates and missing values.

Few epochs on few rows: the numbers are no good, and say all the same whether anything changed.
"""

import json

import numpy as np
import pytest

import priornet
from _golden import assert_golden
from _golden_table import INPUTS, added_columns, answers, call, make_table

SMALL = {"hidden": (8,), "epochs": 30, "random_state": 0}
STUDENT = {**SMALL, "n_members": 3, "student_epochs": 20, "n_transfer": 400}

METHODS = {
    "single": lambda: priornet.GaussianRegressor(**SMALL),
    "ensemble": lambda: priornet.DeepEnsembleRegressor(3, **SMALL),
    "rkl": lambda: priornet.PriorNetRegressor(**SMALL),
    "endd": lambda: priornet.DistilledRegressor(objective="endd", **STUDENT),
    "end": lambda: priornet.DistilledRegressor(objective="end", **STUDENT),
    "md-end": lambda: priornet.DistilledRegressor(objective="md-end", **STUDENT),
    "der": lambda: priornet.EvidentialRegressor(**SMALL),
}
ONLY_IN_PYTHON = {
    "endd-proxy": lambda: priornet.DistilledRegressor(target="proxy", **STUDENT),
    "endd-of-a-function": lambda: priornet.DistilledRegressor(teacher=two_opinions, **STUDENT),
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of so short a training, and rows


def two_opinions(table):
    """Answer as two members that part where the size is large."""
    size = np.nan_to_num(np.asarray(table["size"], float))
    return np.stack([size / 10, size / 10 + size**2 / 400]), np.full((2, len(size)), 0.5)


def measured(printed):
    """Leave out sentences and the test's own folders."""
    own = {"data", "model", "notes", "report", "warnings"}
    return {key: value for key, value in printed.items() if key not in own}


@pytest.mark.parametrize("method", [*METHODS, *ONLY_IN_PYTHON])
def test_estimators_answer_as_before(method, tmp_path):
    table = make_table()
    model = {**METHODS, **ONLY_IN_PYTHON}[method]()
    weight = np.linspace(0.5, 2, len(table))
    found = {"one": answers(model.fit(table[INPUTS], table["price"]))}
    model.save(tmp_path / "model")
    found["one, predict"] = added_columns(tmp_path / "model", tmp_path)
    conformal = ("--interval", "conformal", "--coverage", "0.8", "--entropies")
    found["one, conformal"] = added_columns(tmp_path / "model", tmp_path, *conformal)
    if method != "endd-of-a-function":  # which has one target
        model.fit(table[INPUTS], table[["price", "rent"]], sample_weight=weight)
        found["two"] = answers(model)
        model.save(tmp_path / "two")
        found["two, predict"] = added_columns(tmp_path / "two", tmp_path)
        found["two, conformal"] = added_columns(tmp_path / "two", tmp_path, *conformal)
        table.to_csv(tmp_path / "data.csv", index=False)
        scored = json.loads(call("evaluate", tmp_path / "two", tmp_path / "data.csv", "--json"))
        found["two, evaluate"] = measured(scored)
    assert_golden(f"estimators/{method}", {method: found})


@pytest.mark.parametrize("method", METHODS)
def test_commands_answer_as_before(method, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    make_table().to_csv(data, index=False)
    options = ("--target", "price", "--ignore", "rent", "--epochs", "2", "--json", "--quiet")
    fitted = json.loads(call("fit", data, "--method", method, "--out", model, *options))
    scored = json.loads(call("evaluate", model, data, "--json"))
    found = {"fit": measured(fitted), "evaluate": measured(scored)}
    found["predict"] = added_columns(model, tmp_path)
    assert_golden(f"commands/{method}", {method: found})
