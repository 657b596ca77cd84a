"""The experiment on a real table: complete, repeatable, fair, and what is moved is what it says."""

import ast
import inspect
import json
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from _results import assert_reproduced
from priornet import demo as diabetes
from priornet.demo import METHODS, PRESETS, Config, run, study
from priornet.evaluation.results import preset_of, read_results
from priornet.report import write_comparison
from priornet.tables.diabetes import load_diabetes

MEASURES = {
    "total_entropy",
    "total_variance",
    "expected_entropy",
    "mutual_information",
    "epkl",
    "variance_of_mean",
}
SUMMARY = {"mean", "std", "sem", "values"}
SCORES = ("rmse", "nll", "crps", "miscalibration_area")
COMMITTED = Path(__file__).parents[1] / "results" / "diabetes.json"
SIGNATURE = {"device", "versions", "processor", "commit", "dirty", "seconds"}


@pytest.fixture(scope="module")
def smoke():
    return study(PRESETS["smoke"])


def measured(results):
    """Everything but the clock."""
    return {
        name: {key: value for key, value in method.items() if key not in SIGNATURE}
        for name, method in results["methods"].items()
    }


def test_results_have_the_documented_form(smoke):
    results = json.loads(json.dumps(smoke.results, allow_nan=False))
    assert {"dataset", "preset", "config", "methods", "seconds", "device"} <= set(results)
    assert {"versions", "commit", "dirty"} <= set(results)
    assert (results["dataset"], results["preset"]) == ("diabetes", "smoke")
    assert tuple(results["methods"]) == METHODS
    assert Config(**results["config"]) == PRESETS["smoke"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_every_metric(smoke, method):
    found = smoke.results["methods"][method]
    for group in ("prr", "ood_auc", "in_domain", "out_of_domain"):
        assert set(found[group]) == MEASURES
        assert all(set(value) == SUMMARY for value in found[group].values())
    for name in ("rmse", "nll", "crps", "miscalibration_area"):
        assert found[name]["mean"] is not None
    assert set(found["coverage"]) == {"0.5", "0.8", "0.9", "0.95"}


def test_every_method_is_signed(smoke):
    for method in smoke.results["methods"].values():
        for name in SIGNATURE - {"seconds"}:
            assert method[name] == smoke.results[name]


def test_results_are_those_of_the_evaluations(smoke):
    for name, evaluation in smoke.evaluations.items():
        assert evaluation.model.method == name
        found = smoke.results["methods"][name]
        error = evaluation.y - evaluation.prediction
        assert found["rmse"]["mean"] == pytest.approx(np.sqrt((error**2).mean()))
        assert found["in_domain"]["variance_of_mean"]["mean"] == pytest.approx(
            (evaluation.spread.knowledge**2).mean()
        )


def test_a_single_network_has_no_knowledge_uncertainty(smoke):
    single = smoke.results["methods"]["Single"]
    assert single["out_of_domain"]["variance_of_mean"]["mean"] == 0
    assert single["unfamiliar"]["in_domain"]["mean"] == 0
    # Of the moved patients it knows only those whose number is far out of the training range.
    assert single["unfamiliar"]["out_of_domain"]["mean"] < 0.1


def test_evaluations_make_a_comparison(smoke, tmp_path):
    path = write_comparison(list(smoke.evaluations.values()), tmp_path / "page.html")
    assert "NWPN" in path.read_text()


def test_same_seed_gives_the_same_numbers(smoke):
    assert measured(run(PRESETS["smoke"])) == measured(smoke.results)


def test_other_seed_holds_out_other_rows(smoke):
    rows, others = diabetes._split(Config(seed=0)), diabetes._split(Config(seed=1))
    assert set(rows.X_test.index) != set(others.X_test.index)


def test_held_out_rows_are_a_fifth_that_no_training_sees():
    rows = diabetes._split(Config())
    assert (len(rows.X), len(rows.X_test)) == (354, 88)
    assert set(rows.X.index) | set(rows.X_test.index) == set(load_diabetes()[0].index)
    assert (rows.y_test == load_diabetes()[1][rows.X_test.index]).all()


def test_out_of_domain_rows_have_one_measurement_six_deviations_off():
    rows = diabetes._split(Config())
    moved = ((rows.X_out - rows.X_test) / rows.X.std()).to_numpy()
    assert (np.count_nonzero(moved, axis=1) == 1).all()
    np.testing.assert_allclose(np.abs(moved).max(1), 6)
    assert (moved < 0).any()
    assert (moved > 0).any()
    assert (rows.X_out["sex"] == rows.X_test["sex"]).all()


def test_student_learns_from_the_ensemble_that_is_compared(smoke):
    # The same rows calibrate both: otherwise the student would be judged on rows its teacher saw.
    ensemble, student = smoke.evaluations["ENSM"], smoke.evaluations["EnD2"]
    assert student.model.training["teacher"] == ensemble.model.training


def test_config_that_cannot_run_is_refused():
    with pytest.raises(ValueError, match="`test_share` must lie between 0 and 1; got 1"):
        Config(test_share=1)


def test_changed_preset_is_called_custom():
    assert preset_of(replace(PRESETS["demo"], seed=7), PRESETS) == "demo"
    assert preset_of(replace(PRESETS["demo"], shift=7), PRESETS) == "custom"


def test_every_setting_is_explained_on_the_line_under_it():
    (source,) = ast.parse(inspect.getsource(Config)).body
    assert isinstance(source, ast.ClassDef)
    explained = [
        ast.unparse(setting.target)
        for setting, text in pairwise(source.body)
        if isinstance(setting, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    ]
    assert explained == [field.name for field in fields(Config)]


def test_methods_repeat_the_committed_results(monkeypatch):
    quick = [method for method in METHODS if method != "EnD2"]
    monkeypatch.setattr(diabetes, "METHODS", quick)
    now = run(PRESETS["demo"])
    for method in quick:
        assert_reproduced(now, read_results(COMMITTED), method, SCORES, loose=5.0)


@pytest.mark.slow
def test_ensemble_and_student_know_which_rows_were_tampered_with():
    results, evaluations = study(PRESETS["demo"])
    assert_reproduced(results, read_results(COMMITTED), "EnD2", SCORES, loose=5.0)
    found = results["methods"]
    for method in ("ENSM", "EnD2"):
        assert found[method]["ood_auc"]["variance_of_mean"]["mean"] > 0.8
        inside = found[method]["in_domain"]["variance_of_mean"]["mean"]
        assert found[method]["out_of_domain"]["variance_of_mean"]["mean"] > 2 * inside
    assert found["EnD2"]["nll"]["mean"] < found["ENSM"]["nll"]["mean"] + 0.05
    deviation = evaluations["EnD2"].y.std()  # the error of predicting the mean of these very rows
    assert found["EnD2"]["rmse"]["mean"] < 0.85 * deviation
