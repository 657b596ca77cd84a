"""Maps fitted to targets: known parameters, weights, scales, and targets that are hard to fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.preprocessing import PowerTransformer

from _asserts import assert_close
from priornet.special.maps import LogMap, MonotoneMap, QuantileMap
from priornet.tables.target_maps import fit_map, map_targets, most_likely_power

KINDS = ("log", "asinh", "yeo-johnson", "quantile")
EVERY = pytest.mark.parametrize("kind", KINDS)


def skewed(n=400, seed=0):
    return np.exp(np.random.default_rng(seed).standard_normal(n))


def mapped(own: MonotoneMap, y):
    return own.forward(torch.from_numpy(np.asarray(y, float))).numpy()


@EVERY
def test_maps_bring_log_normal_targets_nearer_to_a_normal(kind):
    y = skewed()
    before, after = (abs(skewness(v)) for v in (y, mapped(fit_map(kind, y, None, "y"), y)))
    assert after < 0.5 * before


def skewness(v):
    return float(np.mean((v - v.mean()) ** 3) / v.std() ** 3)


@EVERY
def test_ends_are_past_every_training_target(kind):
    y = skewed()
    own = fit_map(kind, y, None, "y")
    t = mapped(own, [y.min(), y.max()])
    assert own.low <= t[0]
    assert t[1] <= own.high


@EVERY
def test_a_weight_of_two_is_a_repeated_row(kind):
    y = skewed(60)
    weight = np.ones(60)
    weight[:7] = 2
    heavy = fit_map(kind, y, weight, "y")
    repeated = fit_map(kind, np.concatenate([y, y[:7]]), None, "y")
    at = np.linspace(0.2, 3, 20)
    # Quantiles stand in the middle of a row's weight: rows that are repeated share it in halves.
    assert_close(mapped(heavy, at), mapped(repeated, at), rel=0.05, abs=0.1)


@EVERY
def test_rows_of_weight_zero_do_not_count(kind):
    y = skewed(50)
    weight = np.append(np.ones(50), 0)
    assert fit_map(kind, np.append(y, 1e9), weight, "y") == fit_map(kind, y, np.ones(50), "y")


@EVERY
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e6, 1e100])
def test_units_change_no_mapped_value(kind, unit):
    y = skewed()
    one, other = fit_map(kind, y, None, "y"), fit_map(kind, unit * y, None, "y")
    assert_close(mapped(other, unit * y), mapped(one, y), rel=1e-6, abs=1e-9)


def test_the_power_is_that_of_scikit_learn():
    for seed, shape in enumerate((0.5, 1.0, 3.0)):
        u = np.random.default_rng(seed).gamma(shape, size=300) - 0.2
        expected = PowerTransformer(standardize=False).fit(u[:, None]).lambdas_[0]
        found = most_likely_power(u, np.ones(300))
        assert found == pytest.approx(min(max(expected, 0.0), 2.0), abs=2e-3)


def test_normal_scores_of_a_normal_sample_are_nearly_itself():
    y = np.random.default_rng(0).standard_normal(20_000)
    t = mapped(fit_map("quantile", y, None, "y"), np.linspace(-2, 2, 9))
    assert_close(t, np.linspace(-2, 2, 9), abs=0.05)


@pytest.mark.parametrize("worst", [0.0, -3.5])
def test_the_logarithm_refuses_targets_that_are_not_positive(worst):
    with pytest.raises(ValueError, match=rf"'price' has values .*such as {worst:g}\).*asinh"):
        fit_map("log", np.append(skewed(), worst), None, "price")


def test_a_later_target_that_no_logarithm_has_is_refused():
    with pytest.raises(
        ValueError, match=r"'price' has values that are not positive \(such as -1\)"
    ):
        map_targets(np.array([[1.0], [-1.0]]), [LogMap(0.0, 1.0, high=2.0)], ["price"])


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize(
    "y",
    [
        np.repeat([0.0, 1.0], [90, 10]),
        np.append(np.zeros(99), 5.0),
        np.append(np.arange(20.0), 1e12),
        np.array([1.0, 2.0]),
        1e9 + np.arange(10.0),
        np.append(np.random.default_rng(0).standard_cauchy(500), -1e8),
    ],
    ids=["two values", "one other value", "an outlier", "two rows", "far from zero", "wide tails"],
)
def test_hard_targets_get_a_map_that_can_be_inverted(kind, y):
    own = fit_map(kind, y, None, "y")
    back = own.inverse(own.forward(torch.from_numpy(y)))
    spread = np.ptp(y)
    assert_close(back, y, rel=1e-12, abs=1e-9 * spread)
    assert math.isfinite(own.inverse(torch.tensor(own.high + 5.0)).item())


def test_values_that_occur_often_hold_one_knot():
    own = fit_map("quantile", np.repeat([0.0, 1.0, 2.0, 7.0], 50), None, "y")
    assert isinstance(own, QuantileMap)
    y = own.inverse(torch.tensor(own.knots[1:-1], dtype=torch.float64))  # without the ends
    assert_close(y, [0.0, 1.0, 2.0, 7.0], rel=1e-9, abs=1e-9)
