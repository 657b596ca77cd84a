"""CatBoost itself, not a mock: means, variances, virtual ensembles, categories."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from priornet.distill import CatBoostTeacher, ask_all

catboost = pytest.importorskip("catboost")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (800, 3))
Y = X[:, 0] ** 2 + np.where(X[:, 1] > 0, 0.5, 0.1) * RNG.standard_normal(800)


def model(seed=0, loss="RMSEWithUncertainty", **settings) -> Any:
    return catboost.CatBoostRegressor(
        loss_function=loss,
        iterations=60,
        learning_rate=0.1,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **settings,
    )


def test_several_models_are_the_members():
    members = [model(seed).fit(X, Y) for seed in range(3)]
    found = ask_all(CatBoostTeacher(members), X).ensemble
    for m, member in enumerate(members):
        raw = member.predict(X, prediction_type="RawFormulaVal")  # mean, log standard deviation
        np.testing.assert_allclose(found.means[m, :, 0], raw[:, 0])
        np.testing.assert_allclose(found.covariances[m, :, 0, 0], np.exp(2 * raw[:, 1]))
    variance = found.data_covariance().flatten().numpy()
    assert variance[X[:, 1] > 0.2].mean() > 3 * variance[X[:, 1] < -0.2].mean()


def test_one_model_is_a_virtual_ensemble():
    single = model(posterior_sampling=True).fit(X, Y)
    teacher = CatBoostTeacher(single, n_virtual=5)
    found = ask_all(teacher, X).ensemble
    assert found.n_members == 5
    total = single.virtual_ensembles_predict(
        X, prediction_type="TotalUncertainty", virtual_ensembles_count=5
    )  # mean, knowledge, data
    np.testing.assert_allclose(found.means.mean(0)[:, 0], total[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.knowledge_covariance().flatten(), total[:, 1], rtol=1e-6)
    np.testing.assert_allclose(found.data_covariance().flatten(), total[:, 2], rtol=1e-9)


def test_frames_with_categories():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["colour"] = np.where(X[:, 2] > 0, "red", "blue")
    frame["shop"] = RNG.integers(0, 4, 800)
    members = [model(s, cat_features=["colour", "shop"]).fit(frame, Y) for s in range(2)]
    teacher = CatBoostTeacher(members)
    assert teacher.feature_names == ("a", "b", "c", "colour", "shop")
    assert teacher.label_columns == ("colour", "shop")
    assert ask_all(teacher, frame).ensemble.means.shape == (2, 800, 1)


def test_arrays_have_no_names():
    assert CatBoostTeacher(model().fit(X, Y)).feature_names is None


def test_what_has_no_variance_is_refused():
    with pytest.raises(ValueError, match='needs loss_function="RMSEWithUncertainty"; got "RMSE"'):
        CatBoostTeacher(model(loss="RMSE").fit(X, Y))
    with pytest.raises(ValueError, match="not fitted"):
        CatBoostTeacher([model()])
    with pytest.raises(TypeError, match="got str"):
        CatBoostTeacher(["model.cbm"])
    with pytest.raises(ValueError, match="`n_virtual`"):
        CatBoostTeacher(model().fit(X, Y), n_virtual=1)


def test_a_missing_catboost_names_its_extra(monkeypatch):
    fitted = model().fit(X, Y)
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[catboost\]'"):
        CatBoostTeacher(fitted)


def test_size_is_that_of_the_saved_models(tmp_path):
    fitted = model().fit(X, Y)
    fitted.save_model(str(tmp_path / "model.cbm"))
    size = CatBoostTeacher([fitted, fitted]).n_bytes()
    assert size == pytest.approx(2 * (tmp_path / "model.cbm").stat().st_size, rel=0.02)


def test_columns_are_found_by_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    teacher = CatBoostTeacher([model(s).fit(frame, Y) for s in range(2)])
    other = frame.assign(d="other")[["c", "d", "a", "b"]]
    np.testing.assert_array_equal(teacher.gaussians(other)[0], teacher.gaussians(frame)[0])
