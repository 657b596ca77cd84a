"""Estimators that learn mapped targets: units, positive intervals, the choice, saved models."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from _asserts import assert_close
from priornet import (
    DeepEnsembleRegressor,
    DistilledRegressor,
    GaussianRegressor,
    PriorNetRegressor,
    load,
)
from priornet.distributions import TransformedBelief
from priornet.estimators.config import ModelError
from priornet.estimators.target_transform import _HeldOut, _simplest, fit_maps
from priornet.export import ExportError, to_onnx

SETTINGS = {"hidden": (16,), "epochs": 15, "random_state": 0}
KINDS = ("log", "asinh", "yeo-johnson", "quantile")


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.exp(3 + X[:, 0] + 0.4 * rng.standard_normal(n))


@pytest.fixture(scope="module")
def models():
    X, y = table()
    found = {
        kind: DeepEnsembleRegressor(3, target_transform=kind, **SETTINGS).fit(X, y)
        for kind in ("none", *KINDS)
    }
    return found | {"prior": PriorNetRegressor(target_transform="log", **SETTINGS).fit(X, y)}


EVERY = pytest.mark.parametrize("name", [*KINDS, "prior"])


@EVERY
def test_predictions_have_the_units_of_the_target(models, name):
    X, y = table(seed=1)
    mean = models[name].predict(X)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.9 * y.std()
    lower, upper = models[name].predict_interval(X)
    assert 0.75 < np.mean((lower < y) & (y < upper)) < 0.99


@EVERY
def test_likelihood_in_units_of_the_target_is_better_than_without(models, name):
    X, y = table(seed=1)
    nll = {
        key: -models[key].predict_dist(X).log_prob(torch.from_numpy(y)).mean()
        for key in (name, "none")
    }
    assert nll[name] < nll["none"]


@EVERY
def test_parts_of_a_prediction_fit_together(models, name):
    X, _ = table(seed=1)
    found = models[name].predict_all(X)
    assert isinstance(found.belief, TransformedBelief)
    record = found.uncertainty
    assert (record.total_variance == record.data_variance + record.knowledge_variance).all()
    assert_close(found.total**2, found.data**2 + found.knowledge**2, rel=1e-9)
    assert_close(found.std, found.total, rel=1e-9)
    mean, std = models[name].predict(X, return_std=True)
    assert_close(mean, found.distribution.mean, rel=0)
    assert_close(std, found.std, rel=0)
    quantile = found.distribution.icdf(torch.tensor(0.95, dtype=torch.float64).expand(len(X)))
    assert_close(found.upper, quantile, rel=1e-9)


@pytest.mark.parametrize("method", ["predictive", "conformal"])
@pytest.mark.parametrize("name", ["log", "prior"])
def test_positive_targets_get_positive_intervals(models, name, method):
    X, _ = table(seed=1)
    lower, upper = models[name].predict_interval(20 * X, coverage=0.96, method=method)
    assert (lower > 0).all()
    assert (lower < upper).all()
    assert np.isfinite(upper).all()


@EVERY
def test_conformal_intervals_hold_new_targets(models, name):
    X, y = table(2000, seed=2)
    lower, upper = models[name].predict_interval(X, method="conformal")
    assert 0.75 < np.mean((lower < y) & (y < upper)) < 0.99


@EVERY
def test_a_saved_model_predicts_the_same(models, name, tmp_path):
    X, _ = table(seed=1)
    models[name].save(tmp_path / "m")
    read = load(tmp_path / "m")
    assert read.fitted_.targets.maps == models[name].fitted_.targets.maps
    pd.testing.assert_frame_equal(
        read.predict_table(X, entropies=True),
        models[name].predict_table(X, entropies=True),
        check_exact=True,
    )


def test_a_saved_model_without_a_map_has_no_such_field(models, tmp_path):
    models["none"].save(tmp_path / "m")
    assert "maps" not in json.loads((tmp_path / "m" / "config.json").read_text())["targets"]


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([], "0 maps for 1 targets"),
        ([{"kind": "cube"}], '"targets.maps": a map has a `kind`'),
        ([{"kind": "log", "loc": 0.0, "scale": -1.0, "high": 2.0}], "positive `scale`"),
        ("log", '"targets.maps" is'),
    ],
)
def test_a_wrong_map_in_a_file_is_refused(models, tmp_path, maps, message):
    models["log"].save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    state = json.loads(path.read_text())
    state["targets"]["maps"] = maps
    del state["sha256"], state["weights_sha256"]
    path.write_text(json.dumps({**state, "format": 1}))
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "m")


def test_the_choice_is_a_logarithm_where_noise_grows_with_the_target():
    X, y = table(800)
    model = GaussianRegressor(target_transform="auto", **SETTINGS).fit(X, y)
    assert model.fitted_.training["target_transform"] in ("log", "asinh", "quantile")
    again = GaussianRegressor(target_transform="auto", **SETTINGS).fit(X, y)
    assert_close(again.predict(X), model.predict(X), rel=0)


def test_the_choice_leaves_ordinary_targets_alone():
    X, _ = table(800)
    y = 100 + X[:, 0] + 0.3 * np.random.default_rng(1).standard_normal(800)
    model = GaussianRegressor(target_transform="auto", **SETTINGS).fit(X, y)
    assert model.fitted_.targets.maps is None
    few = GaussianRegressor(target_transform="auto", **SETTINGS).fit(*table(60))
    assert few.fitted_.targets.maps is None


def test_the_choice_takes_no_logarithm_of_zero():
    X, y = table(400)
    y[::7] = 0.0
    model = GaussianRegressor(target_transform="auto", **SETTINGS).fit(X, y)
    assert model.fitted_.training.get("target_transform") != "log"
    with pytest.raises(ValueError, match="not positive"):
        GaussianRegressor(target_transform="log", **SETTINGS).fit(X, y)


def test_the_choice_leaves_out_a_map_whose_mean_is_far_worse():
    """Likelihoods 1, 3 and 2 nats, and the middle one with twice the error."""
    log_prob = torch.tensor([[1.0], [3.0], [2.0]], dtype=torch.float64).expand(3, 8)
    error = torch.tensor([[1.0], [4.0], [1.0]], dtype=torch.float64).expand(3, 8)
    share = torch.full((8,), 1 / 8, dtype=torch.float64)
    assert _simplest(_HeldOut(log_prob, error), share) == 2
    assert _simplest(_HeldOut(log_prob, torch.ones_like(error)), share) == 1
    noise = torch.randn(8, generator=torch.Generator().manual_seed(0)).double()
    noisy = log_prob + torch.tensor([[0.0], [20.0], [0.0]]) * noise
    assert (
        _simplest(_HeldOut(noisy - noisy.mean(1, keepdim=True), torch.ones_like(error)), share) == 0
    )
    lost = log_prob.clone()
    lost[1] = torch.nan  # a network that diverged
    assert _simplest(_HeldOut(lost, torch.ones_like(error)), share) == 2


def test_a_rare_value_leaves_targets_as_they_are():
    X, _ = table(200)
    y = np.zeros(200)
    y[3] = 1.0
    model = GaussianRegressor(target_transform="auto", calibration_fraction=0.0, **SETTINGS)
    with pytest.warns(match="no room for a value of such probability"):
        model.fit(X, y)
    assert model.fitted_.targets.maps is None


def test_each_of_several_targets_has_a_map():
    X, y = table()
    both = np.stack([y, -5 * table(seed=3)[1]], axis=1)
    model = PriorNetRegressor(target_transform="asinh", **SETTINGS).fit(X, both)
    found = model.predict_all(X)
    assert found.mean.shape == (300, 2)
    assert (found.lower < found.upper).all()
    assert_close(found.total**2, found.data**2 + found.knowledge**2, rel=1e-9)
    assert np.median(found.mean[:, 1]) < 0 < np.median(found.mean[:, 0])


def test_a_student_learns_on_the_scale_of_its_teacher(models):
    X, y = table()
    student = DistilledRegressor(models["log"], student_epochs=15, n_transfer=2000, **SETTINGS)
    student.fit(X, y)
    assert student.fitted_.targets.maps == models["log"].fitted_.targets.maps
    assert (student.predict_interval(X)[0] > 0).all()
    assert student.faithfulness(X, y).inside.r2 > 0.5
    with pytest.raises(ValueError, match="different scales"):
        student.faithfulness(X, teacher=models["none"])
    mapped = DistilledRegressor(models["none"], target_transform="log")
    with pytest.raises(ValueError, match="scale of the teacher"):
        mapped.fit(X, y)


def test_an_onnx_graph_of_a_mapped_target_is_refused(models):
    with pytest.raises(ExportError, match=r"target_transform: log.*to_torch_export"):
        to_onnx(models["log"])


def test_an_unknown_transform_is_refused():
    with pytest.raises(ValueError, match="unknown target_transform 'cube'; choose one of: none"):
        GaussianRegressor().set_params(target_transform="cube").fit(*table(30))


def test_a_constant_target_keeps_its_message():
    X, y = table(30)
    assert fit_maps("log", np.ones((30, 1)), None, ["y"]) is None
    with pytest.raises(ValueError, match="constant"):
        GaussianRegressor(target_transform="log").fit(X, np.ones_like(y))


@pytest.mark.filterwarnings("ignore::priornet.estimators.ColumnWarning")
def test_a_typing_error_does_not_choose_the_scale():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.exp(X[:, 0] + 0.2 * rng.standard_normal(300))
    largest = 2 * y.max()
    y[7] = 1e9
    model = GaussianRegressor(target_transform="auto", epochs=10, random_state=0).fit(X, y)
    assert model.predict(X).max() < 10 * largest
