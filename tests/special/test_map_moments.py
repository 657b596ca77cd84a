"""Moments of mapped normals and Student-Ts against adaptive quadrature, limits and draws."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from _asserts import assert_close
from _maps import KNOTS, MAPS, plain_inverse
from priornet.special.map_moments import map_moments, normal_tails, student_t_tails
from priornet.special.map_shares import knowledge_share
from priornet.special.maps import AsinhMap, LogMap

EVERY = pytest.mark.parametrize("own", MAPS.values(), ids=MAPS.keys())
CASES = [(-5.0, 0.5), (0.3, 1e-4), (0.3, 3.0)]


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def adaptive(own, loc, scale, excess):
    """Mean and variance by adaptive quadrature over w, x = sinh w, between breaks."""
    law: Any = stats.norm() if excess is None else stats.t(excess + 2)
    knots = KNOTS if own.kind == "quantile" else (own.low, 0.0, own.high)
    breaks = [math.asinh((knot - loc) / scale) for knot in knots if knot > -math.inf]
    edges = sorted({*breaks, *np.arange(-46.0, 47.0, 2.0 if excess is None else 1.0)})
    centre = plain_inverse(own, loc)

    def integral(power):
        def value(w):
            x = math.sinh(w)
            return (plain_inverse(own, loc + scale * x) - centre) ** power * law.pdf(x)

        def weighted(w):
            return value(w) * math.cosh(w)

        return math.fsum(quad(weighted, a, b, epsrel=1e-10)[0] for a, b in pairwise(edges))

    first, second = integral(1), integral(2)
    return centre + first, second - first**2


@EVERY
@pytest.mark.parametrize(("loc", "scale"), CASES)
def test_moments_of_a_normal_are_those_of_adaptive_quadrature(own, loc, scale):
    found = map_moments(own, tensor(loc), tensor(scale))
    mean, variance = adaptive(own, loc, scale, None)
    assert_close(found.variance, [variance], rel=1e-6)
    assert_close(found.mean, [mean], rel=1e-12, abs=1e-6 * math.sqrt(variance))


@EVERY
@pytest.mark.parametrize(("loc", "scale", "excess"), [(0.3, 0.3, 1.5), (-5.0, 1e-3, 6.0)])
def test_moments_of_a_student_t_are_those_of_adaptive_quadrature(own, loc, scale, excess):
    found = map_moments(own, tensor(loc), tensor(scale), tensor(excess))
    mean, variance = adaptive(own, loc, scale, excess)
    assert_close(found.variance, [variance], rel=1e-5)
    assert_close(found.mean, [mean], rel=1e-12, abs=1e-6 * math.sqrt(variance))


def test_a_log_normal_has_its_moments():
    own = LogMap(0.0, 1.0, high=40.0)
    found = map_moments(own, tensor(0.5), tensor(0.8))
    assert_close(found.mean, [math.exp(0.5 + 0.32)], rel=1e-7)
    assert_close(found.variance, [math.expm1(0.64) * math.exp(1.64)], rel=1e-7)
    assert_close(found.log_slope, [0.5], rel=1e-7)  # the entropy of a log-normal is m more


def test_sinh_of_a_normal_has_its_moments():
    own = AsinhMap(0.0, 1.0, -40.0, 40.0)
    found = map_moments(own, tensor(0.3), tensor(0.7))
    mean = math.sinh(0.3) * math.exp(0.245)
    assert_close(found.mean, [mean], rel=1e-7)
    assert_close(found.variance, [0.5 * (math.cosh(0.6) * math.exp(0.98) - 1) - mean**2], rel=1e-7)


@EVERY
def test_tiny_scales_move_by_the_slope(own):
    t = tensor(-1.7, 0.3, 1.2)
    for excess in (None, tensor(4.0).expand(3)):
        found = map_moments(own, t, torch.full_like(t, 1e-9), excess)
        factor = 1.0 if excess is None else 1.5
        expected = factor * 1e-18 * torch.exp(2 * own.log_slope(t))
        # Rounding of y, of 1e-16, is 1e-7 of these deviations.
        assert_close(found.variance, expected, rel=1e-4)


@EVERY
def test_a_student_t_of_many_degrees_is_a_normal(own):
    loc, scale = tensor(-3.0, 0.4, 3.0), tensor(0.1, 0.5, 4.0)
    normal = map_moments(own, loc, scale)
    limit = map_moments(own, loc, scale, torch.full_like(loc, 1e9))
    for one, two in zip(normal, limit, strict=True):
        assert_close(two, one, rel=1e-6, abs=1e-9)


def test_moments_that_do_not_exist_say_so():
    own, one = MAPS["asinh"], tensor(1.0, 1.0, 1.0)
    found = map_moments(own, one, one, tensor(-1.5, -0.5, 1e-3))
    assert found.mean.isnan().tolist() == [True, False, False]
    assert found.variance.isnan().tolist() == [True, False, False]
    assert found.variance[1] == math.inf
    assert found.variance[2] > 1e3


def test_variance_near_two_degrees_grows_as_that_of_the_linear_ends():
    """The tail of h is linear: as the excess d falls to 0, d times the variance converges."""
    own = MAPS["asinh"]
    scaled = [
        map_moments(own, tensor(0.5), tensor(1.0), tensor(d)).variance * d for d in (1e-4, 1e-5)
    ]
    assert_close(scaled[0], scaled[1], rel=1e-3)
    # Both ends together: E[h^2] of slopes a and b is the mean of their squares, times s^2 nu / d.
    ends = torch.exp(2 * own.log_slope(tensor(own.low - 1, own.high + 1))).mean()
    assert_close(scaled[1], 2 * ends.reshape(1), rel=1e-3)


@EVERY
def test_float32_is_as_good(own):
    loc, scale = torch.tensor([0.3, -4.0, 5.0]), torch.tensor([0.5, 2.0, 1e-3])
    for excess in (None, torch.tensor([0.5, 3.0, 10.0])):
        wide = None if excess is None else excess.double()
        exact = map_moments(own, loc.double(), scale.double(), wide)
        for one, two in zip(map_moments(own, loc, scale, excess), exact, strict=True):
            assert one.dtype == torch.float32
            assert_close(one, two, rel=1e-6, abs=1e-30)


@pytest.mark.parametrize("df", [None, 2.2, 5.0, 1e6])
@pytest.mark.parametrize("u", [0.0, 0.7, 9.0])
def test_partial_moments_are_integrals(u, df):
    law: Any = stats.norm() if df is None else stats.t(df)
    found = normal_tails(tensor(u)) if df is None else student_t_tails(tensor(u), tensor(df))
    last = {None: 4.5, 2.2: 150.0, 5.0: 12.0, 1e6: 4.5}[df]  # of w, x = sinh w

    def integral(power):
        def weighted(w):
            return math.sinh(w) ** power * law.pdf(math.sinh(w)) * math.cosh(w)

        edges = np.linspace(math.asinh(u), last, 12)
        return math.fsum(quad(weighted, a, b, epsrel=1e-11)[0] for a, b in pairwise(edges))

    for power, value in enumerate(found):
        assert_close(value, [integral(power)], rel=1e-7)


def nested(own, loc, scale, excess, belief):
    """The share by brute force: over the precision and the mean, with exact moments inside."""
    half = 0.5 * excess + 1
    w = np.linspace(-14.0, 4.0, 120)
    mass = np.exp(half * (w - np.exp(w)) + half)
    x = np.linspace(-8.0, 8.0, 161)
    weight = np.exp(-0.5 * x**2)
    weight, mass = (torch.from_numpy(part / part.sum()) for part in (weight, mass))
    deviation = scale * torch.exp(-0.5 * torch.from_numpy(w))[:, None]
    mean = loc + deviation / math.sqrt(1 + belief) * torch.from_numpy(x)
    own_scale = (deviation * math.sqrt(belief / (1 + belief))).expand_as(mean)
    found = map_moments(own, mean, own_scale)
    expected = (found.mean * weight).sum(-1)
    spread = ((found.mean - expected[:, None]).square() * weight).sum(-1)
    average = (mass * expected).sum()
    knowledge = (mass * (spread + (expected - average) ** 2)).sum()
    return knowledge / (knowledge + (mass * (found.variance * weight).sum(-1)).sum())


@EVERY
@pytest.mark.parametrize(
    ("scale", "excess", "belief"), [(0.3, 6.0, 0.2), (0.5, 3.0, 50.0), (0.05, 20.0, 1e-2)]
)
def test_knowledge_share_is_that_of_brute_force(own, scale, excess, belief):
    found = knowledge_share(own, *(tensor(v) for v in (0.3, scale, excess, belief)))
    expected = nested(own, 0.3, scale, excess, belief)
    assert_close(found, expected.reshape(1), rel=0.05)
    assert_close(1 - found, 1 - expected.reshape(1), rel=0.05)


@EVERY
def test_knowledge_share_is_that_of_t_where_the_map_is_linear(own):
    """At tiny scales every map is linear: 1 / (1 + belief), to the last digits of large beliefs."""
    belief = tensor(1e-6, 0.5, 1e8)
    loc, scale = torch.full_like(belief, 0.3), torch.full_like(belief, 1e-8)
    found = knowledge_share(own, loc, scale, torch.full_like(belief, 5.0), belief)
    assert_close(found, 1 / (1 + belief), rel=1e-4)
