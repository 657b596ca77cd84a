"""Gamma functions of a one-dimensional Wishart against 50 digits and against the longer series."""

from __future__ import annotations

import mpmath as mp
import pytest
import torch
from mpmath import mpf
from torch import Tensor

from _asserts import assert_close
from priornet.losses._kernels import gamma_gaps, student_constant, wishart_divergence
from priornet.special import gamma
from priornet.special.elementwise import phi_value

EXCESSES = (
    *(-1.9, -1.5, -1.0, -0.5, -0.01, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 6.0, 11.0, 18.0),
    *(55.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8),
)
STEPS = (1e-6, -1e-5, 1e-3, -0.01, 0.1, -0.3, 0.5)
PRECISION = {torch.float64: 2e-13, torch.float32: 1e-6}
# With and without arguments below 1, which take a unit step.
LOWEST = pytest.mark.parametrize("lowest", [-1.9, 0.0])
DTYPES = pytest.mark.parametrize("dtype", PRECISION, ids=str)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def halves(excess: Tensor) -> list:
    """The exact n = d/2 + 1 of numbers as they were rounded."""
    return [mpf(v) / 2 + 1 for v in excess.double().tolist()]


def numbers(values: list) -> Tensor:
    return torch.tensor([float(v) for v in values], dtype=torch.float64)


@LOWEST
@DTYPES
def test_gaps_match_fifty_digits(dtype, lowest):
    excess = torch.tensor([d for d in (0.0, *EXCESSES) if d >= lowest], dtype=dtype)
    psi, df, rest = gamma_gaps(excess)
    points = halves(excess)
    rel = PRECISION[dtype]
    assert_close(psi, numbers([mp.digamma(n) - mp.log(n) for n in points]), rel=rel)
    assert_close(df, excess + 2, rel=0.0)
    stirling = [n * mp.log(n) - n - mp.loggamma(n) for n in points]
    logs = [mp.log(n / (2 * mp.pi)) for n in points]
    expected = [log + 2 - 2 * r for log, r in zip(logs, stirling, strict=True)]
    assert_close(rest, numbers(expected), rel=2 * rel)


@DTYPES
def test_constant_of_a_student_t_matches_fifty_digits(dtype):
    """Eq. (21) with K = 1."""
    excess = torch.tensor(EXCESSES, dtype=dtype)
    value, slope = student_constant(excess)
    points = halves(excess)
    half = mpf(1) / 2
    rel = PRECISION[dtype]
    expected = [mp.loggamma(n + half) - mp.loggamma(n) - mp.log(n) / 2 for n in points]
    assert_close(value, numbers(expected), rel=rel, abs=rel)
    expected = [mp.digamma(n + half) - mp.digamma(n) - 1 / (2 * n) for n in points]
    assert_close(slope, numbers(expected), rel=2 * rel)


def pairs(dtype: torch.dtype, lowest: float) -> tuple[Tensor, Tensor]:
    """Every excess against every other, and against neighbours."""
    excesses = [d for d in EXCESSES if d >= lowest]
    far = [(a, b) for a in excesses for b in excesses]
    near = [(a + s * (a + 2), a) for a in excesses for s in STEPS]
    near = [(a, b) for a, b in near if a >= lowest]
    first, second = zip(*far, *near, strict=True)
    return torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)


@LOWEST
@DTYPES
def test_divergence_matches_fifty_digits_near_and_far(dtype, lowest):
    """Eq. (28) with equal means."""
    excess0, excess = pairs(dtype, lowest)
    (value,), psi, slope = wishart_divergence(excess0, excess)

    def divergence(n0, n):
        def f(x):
            return mp.loggamma(x) - x * mp.log(x) + x

        return f(n0) - f(n) - (mp.digamma(n) - mp.log(n)) * (n0 - n)

    points = halves(excess)
    expected = numbers([divergence(a, b) for a, b in zip(halves(excess0), points, strict=True)])
    assert_close(value, expected, rel=5 * PRECISION[dtype])
    assert (value >= 0).all()
    rel = PRECISION[dtype]
    assert_close(psi, numbers([mp.digamma(n) - mp.log(n) for n in points]), rel=rel)
    assert_close(slope, numbers([mp.polygamma(1, n) - 1 / n for n in points]), rel=rel)


@DTYPES
def test_divergence_takes_a_reference_that_broadcasts(dtype):
    excess = torch.tensor(EXCESSES, dtype=dtype).reshape(11, 2)
    for excess0 in (torch.tensor(0.3, dtype=dtype), excess[:, :1] + 0.5):
        (value,), *slopes = wishart_divergence(excess0, excess)
        (expected,), *expected_slopes = wishart_divergence(
            excess0.expand_as(excess).contiguous(), excess
        )
        assert_close(value, expected, rel=1e-6)
        for a, b in zip(slopes, expected_slopes, strict=True):
            assert_close(a, b, rel=1e-6)
        reference = gamma.stirling_bregman(excess0.double().expand_as(excess), excess.double(), 1)
        assert_close(value, reference, rel=5 * PRECISION[dtype])


@DTYPES
def test_further_arguments_of_phi_come_back_unchanged(dtype):
    excess = torch.tensor(EXCESSES, dtype=dtype)
    delta = torch.linspace(-0.9, 3.0, len(EXCESSES), dtype=dtype)
    for d in (excess, excess.abs()):  # with a unit step, and without
        (_, value, last), _, _ = wishart_divergence(
            d + 1, d, (delta, 1 + delta), (2 * delta + 1, 2 * delta + 2)
        )
        rel = 4e-15 if dtype == torch.float64 else 1e-6
        assert_close(value, phi_value(delta, 1 + delta), rel=rel)
        assert_close(last, phi_value(2 * delta + 1, 2 * delta + 2), rel=rel)
