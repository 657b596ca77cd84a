"""Conformal intervals cover as promised, with the exact finite-sample quantile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from priornet import GaussianRegressor
from priornet.estimators.conformal import conformal_quantile, conformal_scores


@pytest.mark.parametrize(
    ("n", "coverage", "rank"), [(9, 0.9, 9), (19, 0.9, 18), (99, 0.9, 90), (3, 0.5, 2), (1, 0.5, 1)]
)
def test_quantile_is_the_exact_order_statistic(n, coverage, rank):
    scores = np.arange(1.0, n + 1)[:, None]
    assert conformal_quantile(scores, coverage) == [rank]


def test_too_few_rows_for_a_coverage_are_said():
    with pytest.raises(ValueError, match="needs at least 19 calibration rows; 18 were held out"):
        conformal_quantile(np.ones((18, 1)), 0.95)
    conformal_quantile(np.ones((19, 1)), 0.95)


def test_scores_are_sorted_per_target():
    y = np.array([[3.0, 0.0], [1.0, 5.0]])
    scores = conformal_scores(y, np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 10.0]]))
    np.testing.assert_array_equal(scores, [[1.0, 0.0], [3.0, 0.5]])


def test_coverage_over_200_resamples_stays_inside_binomial_bounds():
    """A poor model on skewed noise: the guarantee holds all the same.

    Each resample fits, calibrates on its own held-out rows, and sees one fresh row: 200
    independent trials, each covered with probability in [c, c + 1 / (n + 1)].
    """
    rng = np.random.default_rng(0)
    coverage, n_rows = 0.8, 120

    def draw(n):
        X = rng.standard_normal((n, 2))
        return X, np.exp(X[:, 0]) + rng.exponential(1 + np.abs(X[:, 1]), n)

    hits = 0
    for seed in range(200):
        X, y = draw(n_rows)
        model = GaussianRegressor(
            hidden=(4,), epochs=2, calibration_fraction=0.25, random_state=seed
        ).fit(X, y)
        x_new, y_new = draw(1)
        (lower,), (upper,) = model.predict_interval(x_new, coverage, method="conformal")
        hits += lower <= y_new[0] <= upper
    n_held = 30
    low, _ = stats.binom.interval(0.999, 200, coverage)
    _, high = stats.binom.interval(0.999, 200, coverage + 1 / (n_held + 1))
    assert low <= hits <= high


def test_conformal_repairs_an_overconfident_model():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] + rng.standard_t(2, 600)
    model = GaussianRegressor(
        hidden=(64, 64),
        epochs=150,
        validation_fraction=0.0,
        calibration_fraction=0.3,
        random_state=0,
    ).fit(X[:400], y[:400])

    def covered(method):
        lower, upper = model.predict_interval(X[400:], 0.9, method)
        return np.mean((lower <= y[400:]) & (y[400:] <= upper))

    assert covered("predictive") < 0.8  # overfitted on purpose
    assert covered("conformal") > 0.82


def test_without_calibration_rows_the_error_says_what_to_do():
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = GaussianRegressor(hidden=(4,), epochs=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="raise `calibration_fraction`"):
        model.predict_interval(X, method="conformal")


@pytest.mark.parametrize(("coverage", "method"), [(0.0, "predictive"), (1.0, "conformal")])
def test_impossible_coverage_is_refused(coverage, method):
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = GaussianRegressor(hidden=(4,), epochs=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1"):
        model.predict_interval(X, coverage, method)
    unknown: Any = "best"
    with pytest.raises(ValueError, match='unknown method "best"'):
        model.predict_interval(X, 0.5, unknown)
