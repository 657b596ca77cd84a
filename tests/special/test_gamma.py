"""Gamma-function combinations against mpmath at 60 digits, values and derivatives.

The references are the textbook forms, with every cancellation left in: at 60 digits they can afford
it. Eqs. (33), (35) and (36) of arXiv:2006.11590v2 are the ones behind ``entropy_gap``.
"""

from __future__ import annotations

from functools import cache

import mpmath as mp
import pytest
import torch
from mpmath import mpf
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from _asserts import assert_close
from priornet.distributions import NormalWishart
from priornet.special import gamma
from priornet.special.elementwise import phi

DIMENSIONS = (1, 2, 3, 5, 8)
EXCESSES = (
    *(-1.9, -1.5, -1.0, -0.5, -0.01, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.9, 6.0, 6.1, 11.0, 17.9),
    *(18.0, 18.1, 20.0, 55.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8),
)
ARGUMENTS = (1e-2, 0.1, 0.5, 1.0, 2.0, 3.9, 4.0, 7.0, 9.9, 10.0, 30.0, 1e3, 1e5, 1e8)
# Largest relative error that is allowed: a few units of the last digit of each dtype.
PRECISION = {torch.float64: 2e-13, torch.float32: 2e-6}
DTYPES = pytest.mark.parametrize("dtype", PRECISION, ids=str)
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mp.workdps(60):
        yield


# -- references ------------------------------------------------------------------------------------


def psi_gap(x):
    return mp.digamma(x) - mp.log(x)


def log_gamma_gap(x):
    return mp.loggamma(x + mpf(1) / 2) - mp.loggamma(x) - mp.log(x) / 2


def delta_psi(x):
    return mp.digamma(x + mpf(1) / 2) - mp.digamma(x)


def half_df(excess, k_dim):
    return (excess + k_dim + 1) / 2


def log_multigamma(n, k_dim):
    total = mpf(k_dim * (k_dim - 1)) / 4 * mp.log(mp.pi)
    return total + sum(mp.loggamma(n + mpf(1 - i) / 2) for i in range(1, k_dim + 1))


def multidigamma(n, k_dim):
    return sum(mp.digamma(n + mpf(1 - i) / 2) for i in range(1, k_dim + 1))


@cache
def entropy_gap(excess, k_dim):
    """Eq. (33) minus Eq. (35) at an infinite belief, with L = I."""
    nu = excess + k_dim + 1
    df = nu - k_dim + 1
    total = (nu + 1) / 2 * (mp.digamma((nu + 1) / 2) - mp.digamma(df / 2))
    total += mp.loggamma(df / 2) - mp.loggamma((nu + 1) / 2)
    total += mpf(k_dim) / 2 * (mp.log(mp.pi * df) - mp.log(df))
    return total - (k_dim * mp.log(mp.pi * mp.e) - multidigamma(nu / 2, k_dim)) / 2


@cache
def digamma_gap(excess, k_dim):
    n = half_df(excess, k_dim)
    return multidigamma(n, k_dim) - k_dim * mp.log(n)


@cache
def trigamma_gap(excess, k_dim):
    n = half_df(excess, k_dim)
    return sum(mp.polygamma(1, n + mpf(1 - i) / 2) for i in range(1, k_dim + 1)) - k_dim / n


@cache
def stirling_gap(excess, k_dim):
    n = half_df(excess, k_dim)
    return k_dim * (n * mp.log(n) - n) - log_multigamma(n, k_dim)


def stirling_bregman(excess0, excess, k_dim):
    slope = digamma_gap(excess, k_dim)  # of lnGamma_K(n) - K (n ln n - n)
    rise = stirling_gap(excess, k_dim) - stirling_gap(excess0, k_dim)
    return rise - slope * (excess0 - excess) / 2


def derivative(function, x):
    """Central difference whose error, 1e-40 relative to x, is far below any tolerance here."""
    return mp.diff(function, x, h=mpf(10) ** -20 * (abs(x) if abs(x) > mpf("1e-9") else 1))


def exact(values: Tensor) -> list:
    return [mpf(v) for v in values.detach().double().tolist()]


def grid(values, dtype) -> Tensor:
    return torch.tensor(values, dtype=dtype).requires_grad_()


def assert_agrees(actual: Tensor, reference: list, rel: float, floor: float = 0.0) -> None:
    assert_close(actual, rounded(reference), rel=rel, abs=floor)


def rounded(values: list) -> Tensor:
    return torch.tensor([float(v) for v in values], dtype=torch.float64)


# -- one argument ----------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize(
    ("name", "reference"),
    [("psi_gap", psi_gap), ("log_gamma_gap", log_gamma_gap), ("delta_psi", delta_psi)],
)
def test_gap_and_its_slope_match_sixty_digits(name, reference, dtype):
    x = grid(ARGUMENTS, dtype)
    value = getattr(gamma, name)(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    assert_agrees(value, [reference(v) for v in exact(x)], PRECISION[dtype])
    assert_agrees(slope, [derivative(reference, v) for v in exact(x)], PRECISION[dtype])


@DTYPES
@EVERY_K
@pytest.mark.parametrize(
    ("name", "reference", "floor"),
    [
        ("entropy_gap", entropy_gap, 0.0),
        ("digamma_gap", digamma_gap, 0.0),
        ("trigamma_gap", trigamma_gap, 0.0),
        ("stirling_gap", stirling_gap, 1.0),  # it has a zero: there the error is absolute
    ],
)
def test_grouped_gap_matches_sixty_digits(name, reference, floor, k_dim, dtype):
    """Eqs. (33), (35) and (36) through ``entropy_gap``."""
    excess = grid(EXCESSES, dtype)
    value = getattr(gamma, name)(excess, k_dim)
    expected = [reference(v, k_dim) for v in exact(excess)]
    assert_agrees(value, expected, PRECISION[dtype], floor * PRECISION[dtype])


@DTYPES
@EVERY_K
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("entropy_gap", entropy_gap),
        ("digamma_gap", digamma_gap),
        ("stirling_gap", stirling_gap),
    ],
)
def test_slope_of_grouped_gap_matches_sixty_digits(name, reference, k_dim, dtype):
    excess = grid(EXCESSES, dtype)
    (slope,) = torch.autograd.grad(getattr(gamma, name)(excess, k_dim).sum(), excess)
    expected = [derivative(lambda v: reference(v, k_dim), v) for v in exact(excess)]
    # Where the series of D takes over, at d = 6, its slope has lost a digit in float32.
    loss = 4 if name == "entropy_gap" and dtype == torch.float32 else 1
    assert_agrees(slope, expected, loss * PRECISION[dtype])


@EVERY_K
def test_gaps_have_the_documented_limits(k_dim):
    excess = torch.tensor([1e6], dtype=torch.float64)
    nu, n = excess + k_dim + 1, half_df(excess, k_dim)
    pairs = k_dim * (k_dim + 1) / 4
    assert_close(gamma.entropy_gap(excess, k_dim), pairs / nu, rel=1e-5)
    assert_close(gamma.digamma_gap(excess, k_dim), -pairs / n, rel=1e-5)
    rise = gamma.stirling_gap(2 * excess, k_dim) - gamma.stirling_gap(excess, k_dim)
    assert_close(rise, pairs * torch.log(half_df(2 * excess, k_dim) / n), rel=1e-5)


@pytest.mark.parametrize("name", ["psi_gap", "log_gamma_gap", "delta_psi"])
def test_gap_has_first_and_second_derivatives(name):
    x = grid((0.05, 0.7, 3.0, 9.0, 12.0, 80.0), torch.float64)
    assert gradcheck(getattr(gamma, name), x)
    assert gradgradcheck(getattr(gamma, name), x)


@pytest.mark.parametrize("k_dim", [1, 2, 5])
@pytest.mark.parametrize("name", ["entropy_gap", "digamma_gap", "trigamma_gap", "stirling_gap"])
def test_grouped_gap_has_first_and_second_derivatives(name, k_dim):
    excess = grid((-1.5, 0.3, 21.0), torch.float64)
    assert gradcheck(getattr(gamma, name), (excess, k_dim))
    assert gradgradcheck(getattr(gamma, name), (excess, k_dim))


# -- two arguments ---------------------------------------------------------------------------------


def pairs(values, steps, dtype, lowest: float = 0.0) -> tuple[Tensor, Tensor]:
    """Every value against every other, and against neighbours: steps relative to the lowest end."""
    far = [(a, b) for a in values for b in values]
    near = [(a + s * (a - lowest), a) for a in values for s in steps]
    first, second = zip(*far, *near, strict=True)
    return grid(first, dtype), grid(second, dtype)


STEPS = (1e-6, -1e-5, 1e-3, -0.01, 0.1, -0.3, 0.5)


@DTYPES
def test_phi_and_its_slopes_match_sixty_digits(dtype):
    values = (1e-6, 1e-2, 0.3, 1.0, 3.0, 1e3, 1e8)
    a, b = pairs(values, STEPS, dtype)
    value = phi(a, b)
    slope_a, slope_b = torch.autograd.grad(value.sum(), (a, b))
    ratios = list(zip(exact(a), exact(b), strict=True))
    rel = PRECISION[dtype]
    assert_agrees(value, [u / v - 1 - mp.log(u / v) for u, v in ratios], rel)
    assert_agrees(slope_a, [1 / v - 1 / u for u, v in ratios], rel)
    assert_agrees(slope_b, [1 / v - u / v**2 for u, v in ratios], rel)


def test_phi_has_first_and_second_derivatives():
    a, b = grid((0.2, 1.0, 1.001, 4.0), torch.float64), grid((0.5, 1.2, 1.0, 0.4), torch.float64)
    assert gradcheck(phi, (a, b))
    assert gradgradcheck(phi, (a, b))


BREGMAN_EXCESSES = (-1.9, -1.0, 1e-3, 0.5, 3.0, 15.0, 1e2, 1e4, 1e6, 1e8)


@DTYPES
@EVERY_K
def test_stirling_bregman_matches_sixty_digits(k_dim, dtype):
    """Eq. (28) with equal means: the divergence of two Wisharts that differ in df alone."""
    excess0, excess = pairs(BREGMAN_EXCESSES, STEPS, dtype, lowest=-2.0)
    value = gamma.stirling_bregman(excess0, excess, k_dim)
    ends = zip(exact(excess0), exact(excess), strict=True)
    expected = [stirling_bregman(a, b, k_dim) for a, b in ends]
    assert_agrees(value, expected, 5 * PRECISION[dtype])
    assert (value >= 0).all()


@DTYPES
@EVERY_K
def test_slope_of_stirling_bregman_matches_sixty_digits(k_dim, dtype):
    excess0, excess = pairs(BREGMAN_EXCESSES, STEPS, dtype, lowest=-2.0)
    total = gamma.stirling_bregman(excess0, excess, k_dim).sum()
    slope0, slope = torch.autograd.grad(total, (excess0, excess))
    ends = list(zip(exact(excess0), exact(excess), strict=True))
    rel = 5 * PRECISION[dtype]
    assert_agrees(slope, [-trigamma_gap(b, k_dim) * (a - b) / 4 for a, b in ends], rel)
    # The slope in the first argument is a difference of two gaps, exact to their own rounding.
    gaps = [(digamma_gap(a, k_dim), digamma_gap(b, k_dim)) for a, b in ends]
    error = (slope0.double() - rounded([(u - v) / 2 for u, v in gaps])).abs()
    assert (error <= rel * rounded([max(abs(u), abs(v)) for u, v in gaps])).all()


@pytest.mark.parametrize("k_dim", [1, 2, 5])
def test_stirling_bregman_has_first_and_second_derivatives(k_dim):
    excess0 = grid((-1.0, 0.5, 3.0, 30.0), torch.float64)
    excess = grid((-0.8, 2.0, 3.1, 7.0), torch.float64)
    assert gradcheck(gamma.stirling_bregman, (excess0, excess, k_dim))
    assert gradgradcheck(gamma.stirling_bregman, (excess0, excess, k_dim))


# -- what the combinations are for -----------------------------------------------------------------


@cache
def mutual_information_parts(excess, k_dim):
    """Value and slope of the part of Eq. (36) that depends on the excess."""
    return (
        entropy_gap(excess, k_dim),
        derivative(lambda v: entropy_gap(v, k_dim), excess),
    )


@DTYPES
@pytest.mark.parametrize("k_dim", [1, 2, 3, 5])
def test_mutual_information_and_gradient_stay_accurate_over_fourteen_decades(k_dim, dtype):
    """Eq. (36) within 1e-5 relative of 60 digits in float32, and so its gradient."""
    decades = torch.logspace(-6, 8, 29, dtype=torch.float64).to(dtype)
    belief, excess = (
        t.flatten().requires_grad_() for t in torch.meshgrid(decades, decades, indexing="ij")
    )
    loc = torch.zeros(len(belief), k_dim, dtype=dtype)
    tril = torch.eye(k_dim, dtype=dtype).expand(len(belief), k_dim, k_dim)
    nw = NormalWishart.from_excess(loc, tril, belief, excess)
    value = nw.mutual_information()
    by_belief, by_excess = torch.autograd.grad(value.sum(), (belief, excess))
    half_k = mpf(k_dim) / 2
    # Eq. (33) minus Eq. (35): the belief enters through 1/2 ln|scale| alone.
    ends = list(zip(exact(belief), exact(excess), strict=True))
    gaps = [mutual_information_parts(d, k_dim) for _, d in ends]
    from_mean = [half_k * mp.log((b + 1) / b) for b, _ in ends]
    rel = 1e-5 if dtype == torch.float32 else 1e-12
    assert_agrees(value, [u + v for u, (v, _) in zip(from_mean, gaps, strict=True)], rel)
    assert_agrees(by_belief, [-half_k / (b * (b + 1)) for b, _ in ends], rel)
    assert_agrees(by_excess, [slope for _, slope in gaps], rel)


def test_arguments_may_be_named():
    x = torch.tensor([0.5, 3.0], dtype=torch.float64)
    assert torch.equal(gamma.digamma_gap(x, k_dim=2), gamma.digamma_gap(x, 2))
