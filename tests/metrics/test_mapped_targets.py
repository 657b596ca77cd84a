"""The CRPS of mapped targets: closed forms under a straight map, and distances of draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from _asserts import assert_close, assert_mean_close
from _maps import MAPS
from priornet.distributions import (
    Gaussian,
    Normal,
    NormalMixture,
    StudentT,
    TransformedMultivariate,
    TransformedUnivariate,
)
from priornet.metrics import crps
from priornet.special.maps import AsinhMap, CoordinateMaps

Y = torch.tensor([-3.0, 0.5, 1.1, 9.0, 80.0], dtype=torch.float64)


def bases(dtype=torch.float64):
    one = torch.ones_like(Y, dtype=dtype)
    steps = torch.tensor([0.0, 2.0, 0.1], dtype=dtype)[:, None]
    return {
        "normal": Normal(0.3 * one, 0.7 * one),
        "student": StudentT(4.0 * one, 0.3 * one, 0.7 * one),
        "mixture": NormalMixture(steps * one, (0.1 + steps) * one),
    }


EACH = pytest.mark.parametrize("base", bases().values(), ids=bases().keys())


@EACH
def test_under_a_straight_map_it_is_the_closed_form(base):
    straight = AsinhMap(1.0, 2.0, -1e-9, 1e-9)
    found = crps(TransformedUnivariate(base, straight), 1 + 2 * Y)
    assert_close(found, 2 * crps(base, Y), rel=1e-5)


@EACH
@pytest.mark.parametrize("name", ["asinh", "yeo-johnson 0.7", "quantile"])
def test_it_is_the_expected_distance_of_draws(base, name, generator):
    law = TransformedUnivariate(base, MAPS[name])
    one, two = (law.sample((40_000,), generator=generator) for _ in range(2))
    y = law.icdf(torch.tensor([0.01, 0.3, 0.6, 0.99, 0.999], dtype=torch.float64))
    assert_mean_close((one - y).abs() - 0.5 * (one - two).abs(), crps(law, y))


def test_of_a_vector_it_sums_over_coordinates():
    maps = CoordinateMaps([MAPS["quantile"], MAPS["log"]])  # of different numbers of edges
    base = Gaussian(torch.zeros(5, 2).double(), variance=torch.ones(5, 2).double())
    law, y = TransformedMultivariate(base, maps), torch.stack([Y, Y], -1)
    single = [crps(TransformedUnivariate(Normal(0 * Y, 1 + 0 * Y), own), Y) for own in maps.maps]
    assert_close(crps(law, y), single[0] + single[1], rel=1e-12)


@pytest.mark.parametrize("kind", bases())
@pytest.mark.parametrize("name", ["asinh", "yeo-johnson 0.7", "quantile"])
def test_single_precision_scores_as_double(kind, name):
    single, double = (
        TransformedUnivariate(bases(dtype)[kind], MAPS[name])
        for dtype in (torch.float32, torch.float64)
    )
    assert_close(crps(single, Y.float()).double(), crps(double, Y), rel=1e-3)


@pytest.mark.parametrize("df", [2.1, 30.0])
def test_it_is_the_integral_of_its_definition(df):
    df, loc, scale = (torch.tensor(value, dtype=torch.float64) for value in (df, 0.3, 0.7))
    base = StudentT(df, loc, scale)
    law, y = TransformedUnivariate(base, MAPS["asinh"]), 1.1

    def gap(x):
        return (float(law.cdf(torch.tensor(x, dtype=torch.float64))) - (x >= y)) ** 2

    ends = [-np.inf, -30.0, -3.0, 0.0, y, 3.0, 30.0, np.inf]
    expected = sum(quad(gap, a, b, limit=200)[0] for a, b in itertools.pairwise(ends))
    found = crps(law, torch.tensor(y, dtype=torch.float64))
    assert_close(found, torch.tensor(expected, dtype=torch.float64), rel=1e-3)
