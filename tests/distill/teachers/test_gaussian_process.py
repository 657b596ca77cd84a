"""Drawn functions have the posterior's mean and covariance; noise is apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from priornet.distill import GaussianProcessTeacher

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = 5 + 3 * np.sin(X[:, 0]) + 0.3 * RNG.standard_normal(60)
AT = np.concatenate([X[:10] + 0.1, 5 * X[:10]])
FIXED: Any = {"optimizer": None, "normalize_y": True}  # the stubs know no None
KERNELS = {
    "rbf": ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.02),
    "matern": Matern(1.0, nu=1.5) + 0.3 * RBF(5.0) + WhiteKernel(0.05),
}


def fitted(kernel, **settings):
    return GaussianProcessRegressor(kernel, **FIXED, **settings).fit(X, Y)


@pytest.mark.parametrize("name", KERNELS)
def test_draws_have_the_mean_and_covariance_of_the_posterior(name):
    model = fitted(KERNELS[name])
    n = 4000
    means, variances = GaussianProcessTeacher(model, n_members=n, n_anchors=200).gaussians(AT)
    mean, covariance = model.predict(AT, return_cov=True)
    white = KERNELS[name].get_params()["k2"].noise_level * Y.var()
    np.testing.assert_allclose(variances[..., 0], white, rtol=1e-3)
    covariance = covariance - white * np.eye(len(AT))
    sd = np.sqrt(np.diag(covariance))
    draws = means[..., 0]
    assert (np.abs(draws.mean(0) - mean) < 5 * sd / np.sqrt(n)).all()
    np.testing.assert_allclose(draws.var(0), sd**2, rtol=5 * np.sqrt(2 / n))
    if name == "rbf":  # of a smooth function, anchors among the rows explain nearly everything
        near = covariance[:10, :10]
        assert np.linalg.norm(np.cov(draws[:, :10].T) - near) < 0.3 * np.linalg.norm(near)


def test_a_member_is_one_function():
    teacher = GaussianProcessTeacher(fitted(KERNELS["rbf"]), n_members=5)
    whole = teacher.gaussians(AT)[0]
    part = teacher.gaussians(AT[[3, 12]])[0]
    np.testing.assert_allclose(part, whole[:, [3, 12]])


def test_alpha_is_noise_too_and_several_targets_are_scaled():
    y = np.column_stack([Y, 100 * Y + RNG.standard_normal(60)])
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, **FIXED)
    means, variances = GaussianProcessTeacher(model.fit(X, y), n_members=30).gaussians(AT)
    assert means.shape == (30, 20, 2)
    np.testing.assert_allclose(variances[0, 0], 0.1 * y.var(0), rtol=1e-3)
    _, sd = model.predict(AT, return_std=True)
    np.testing.assert_allclose(means.std(0), sd, rtol=0.8)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        GaussianProcessTeacher(GaussianProcessRegressor())
    with pytest.raises(ValueError, match="`n_members` must be at least 2"):
        GaussianProcessTeacher(fitted(KERNELS["rbf"]), n_members=1)


def test_columns_are_found_by_their_names():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = GaussianProcessRegressor(KERNELS["rbf"], **FIXED).fit(frame, Y)
    teacher = GaussianProcessTeacher(model, n_members=3)
    np.testing.assert_array_equal(
        teacher.gaussians(frame[["b", "a"]])[0], teacher.gaussians(frame)[0]
    )
