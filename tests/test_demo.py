"""Both studies of the demo: complete, repeatable and fair, in and out of the domain."""

import ast
import inspect
import json
import math
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from _results import assert_reproduced
from priornet import demo
from priornet.demo import (
    CURVE_PRESETS,
    TABLE_PRESETS,
    CurveConfig,
    TableConfig,
    run,
    study_curve,
    study_table,
)
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
COMMITTED = Path(__file__).parents[1] / "results"
METHODS = ("ENSM", "EnD2", "NWPN", "DER", "Single")
ON_CURVE = METHODS[:3]
SIGNATURE = {"device", "versions", "processor", "commit", "dirty", "seconds"}


@pytest.fixture(scope="module")
def smoke():
    return study_table(TABLE_PRESETS["smoke"])


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
    assert TableConfig(**results["config"]) == TABLE_PRESETS["smoke"]


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
    assert measured(study_table(TABLE_PRESETS["smoke"]).results) == measured(smoke.results)


def test_other_seed_holds_out_other_rows(smoke):
    rows, others = demo._split(TableConfig(seed=0)), demo._split(TableConfig(seed=1))
    assert set(rows.X_test.index) != set(others.X_test.index)


def test_held_out_rows_are_a_fifth_that_no_training_sees():
    rows = demo._split(TableConfig())
    assert (len(rows.X), len(rows.X_test)) == (354, 88)
    assert set(rows.X.index) | set(rows.X_test.index) == set(load_diabetes()[0].index)
    assert (rows.y_test == load_diabetes()[1][rows.X_test.index]).all()


def test_out_of_domain_rows_have_one_measurement_six_deviations_off():
    rows = demo._split(TableConfig())
    moved = ((rows.X_ood - rows.X_test) / rows.X.std()).to_numpy()
    assert (np.count_nonzero(moved, axis=1) == 1).all()
    np.testing.assert_allclose(np.abs(moved).max(1), 6)
    assert (moved < 0).any()
    assert (moved > 0).any()
    assert (rows.X_ood["sex"] == rows.X_test["sex"]).all()


def test_student_learns_from_the_ensemble_that_is_compared(smoke):
    # The same rows calibrate both: otherwise the student would be judged on rows its teacher saw.
    ensemble, student = smoke.evaluations["ENSM"], smoke.evaluations["EnD2"]
    assert student.model.training["teacher"] == ensemble.model.training


def test_config_that_cannot_run_is_refused():
    with pytest.raises(ValueError, match="`test_share` must lie between 0 and 1; got 1"):
        TableConfig(test_share=1)


def test_changed_preset_is_called_custom():
    known = TABLE_PRESETS["demo"]
    assert preset_of(replace(known, seed=7), TABLE_PRESETS) == "demo"
    assert preset_of(replace(known, shift=7), TABLE_PRESETS) == "custom"


@pytest.mark.parametrize("config", [CurveConfig, TableConfig])
def test_every_setting_is_explained_on_the_line_under_it(config):
    explained = []
    for known in (demo.Training, config):
        (source,) = ast.parse(inspect.getsource(known)).body
        assert isinstance(source, ast.ClassDef)
        explained += [
            ast.unparse(setting.target)
            for setting, text in pairwise(source.body)
            if isinstance(setting, ast.AnnAssign)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ]
    assert explained == [field.name for field in fields(config)]


def test_methods_repeat_the_committed_results(monkeypatch):
    quick = [method for method in METHODS if method != "EnD2"]
    monkeypatch.setattr(demo, "_ON_TABLE", quick)
    now = study_table(TABLE_PRESETS["demo"]).results
    for method in quick:
        committed = read_results(COMMITTED / "diabetes.json")
        assert_reproduced(now, committed, method, SCORES, loose=5.0)


@pytest.mark.slow
def test_ensemble_and_student_know_which_rows_were_tampered_with(monkeypatch):
    monkeypatch.setattr(demo, "_ON_TABLE", ("ENSM", "EnD2"))
    results, evaluations = study_table(TABLE_PRESETS["demo"])
    committed = read_results(COMMITTED / "diabetes.json")
    assert_reproduced(results, committed, "EnD2", SCORES, loose=5.0)
    found = results["methods"]
    for method in ("ENSM", "EnD2"):
        assert found[method]["ood_auc"]["variance_of_mean"]["mean"] > 0.8
        inside = found[method]["in_domain"]["variance_of_mean"]["mean"]
        assert found[method]["out_of_domain"]["variance_of_mean"]["mean"] > 2 * inside
    assert found["EnD2"]["nll"]["mean"] < found["ENSM"]["nll"]["mean"] + 0.05
    deviation = evaluations["EnD2"].y.std()  # the error of predicting the mean of these very rows
    assert found["EnD2"]["rmse"]["mean"] < 0.85 * deviation


# -- the curve ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_curve():
    return study_curve(replace(CURVE_PRESETS["smoke"], n_train=256)).results


def test_results_of_the_curve_have_the_documented_form(short_curve):
    results = json.loads(json.dumps(short_curve, allow_nan=False))
    assert (results["dataset"], results["preset"]) == ("synthetic", "custom")
    assert tuple(results["methods"]) == ON_CURVE
    assert set(results["curves"]) == {"x", "truth", *ON_CURVE}
    n_points = results["config"]["n_curve"]
    for method in ON_CURVE:
        assert set(results["methods"][method]["ood_auc"]) == MEASURES
        assert set(results["methods"][method]["data_std_error"]) == SUMMARY
        lengths = {len(values) for values in results["curves"][method].values()}
        assert lengths == {n_points}


def test_inputs_of_the_curve_lie_on_both_sides_of_their_ranges():
    x = demo._inputs(np.random.default_rng(0), 1000, 20.0, 25.0)
    assert x.shape == (1000, 1)
    assert (np.abs(x) >= 20).all()
    assert (np.abs(x) <= 25).all()
    assert 400 < (x < 0).sum() < 600


def test_targets_of_the_curve_have_the_mean_and_the_noise_of_the_paper():
    x = np.repeat([[0.0], [-9.0]], 20_000, axis=0)
    y = demo._targets(np.random.default_rng(0), x).reshape(2, -1)
    for values, mean, std in zip(y, (0.0, math.sin(-9) - 0.9), (1.01, 0.11), strict=True):
        assert values.mean() == pytest.approx(mean, abs=5 * std / math.sqrt(len(values)))
        assert values.std() == pytest.approx(std, rel=0.03)


def test_truth_of_the_curve_is_the_error_of_its_noise(short_curve):
    # The mean of (1 / (u + 1) + 0.01)^2 over u in [0, 10], by hand.
    variance = (10 / 11 + 0.02 * math.log(11)) / 10 + 1e-4
    assert short_curve["truth"]["rmse"]["mean"] == pytest.approx(math.sqrt(variance), rel=0.2)


def test_other_seed_draws_another_curve(short_curve):
    other = study_curve(replace(CURVE_PRESETS["smoke"], n_train=256, seed=1)).results
    assert other["train"] != short_curve["train"]


@pytest.mark.slow
def test_methods_know_the_noise_of_the_curve_and_where_it_ends():
    results = study_curve(CURVE_PRESETS["demo"]).results
    committed = read_results(COMMITTED / "synthetic.demo.json")
    assert (committed["preset"], committed["dirty"]) == ("demo", False)
    assert committed["config"] == json.loads(json.dumps(results["config"]))
    for method in ON_CURVE:
        scores = ("rmse", "nll", "crps", "data_std_error")
        assert_reproduced(results, committed, method, scores, loose=0.1)
        found = {**results["methods"][method]}
        assert found["rmse"]["mean"] < 1.1 * results["truth"]["rmse"]["mean"]
        assert found["nll"]["mean"] < results["truth"]["nll"]["mean"] + 0.15
        assert found["data_std_error"]["mean"] < 0.15
        assert found["ood_auc"]["variance_of_mean"]["mean"] > 0.95
        inside = found["in_domain"]["variance_of_mean"]["mean"]
        assert found["out_of_domain"]["variance_of_mean"]["mean"] > 100 * inside


def test_a_run_writes_what_it_returns(tmp_path, monkeypatch):
    tiny = {"epochs": 1, "student_epochs": 1, "n_train": 64, "n_out": 8, "n_test": 32, "n_curve": 5}
    monkeypatch.setitem(CURVE_PRESETS, "smoke", replace(CURVE_PRESETS["smoke"], **tiny))
    found = run(tmp_path / "new", "smoke", seed=3)
    assert read_results(tmp_path / "new" / "synthetic.json") == json.loads(
        json.dumps(found.curve.results)
    )
    assert found.table.results["config"]["seed"] == 3
    assert found.figure.read_bytes().startswith(b"\x89PNG")
    assert found.report.exists()
    assert found.student_report.exists()
    line = found.table.lines["Single"]
    assert (line.inside, line.outside) == (0, 0)
