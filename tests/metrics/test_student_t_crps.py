"""CRPS of the standard Student-T: against its definition, through df = 1 and down to 1/2."""

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate, stats

from _asserts import assert_close
from priornet.metrics.student_t_crps import standard_student_t_crps

DF = (0.6, 0.9, 0.99, 1.0, 1 + 1e-9, 1.0624, 1.0626, 1.5, 2.0, 3.0, 30.0, 1e6)


def by_quadrature(z: float, df: float) -> float:
    """The definition; sinh spreads the nodes over tails that fall slowly."""
    t = stats.t(df)

    def below(s: float) -> float:
        return t.cdf(-np.sinh(s)) ** 2 * np.cosh(s)

    edges = [(at, 6.0) for at in np.arcsinh([-z, z])] + 2 * [(6.0, 300.0)]
    return sum(integrate.quad(below, *edge, limit=2000)[0] for edge in edges)


@pytest.mark.parametrize("df", DF)
@pytest.mark.parametrize("z", [0.0, 0.4, -3.0, 25.0])
def test_matches_its_definition(z, df):
    excess = torch.tensor(df - 2, dtype=torch.float64)
    crps = standard_student_t_crps(torch.tensor(z, dtype=torch.float64), excess)
    assert_close(crps, by_quadrature(z, df), rel=1e-9)


@pytest.mark.parametrize("df", [1.2, 2.5, 7.0, 80.0])
@pytest.mark.parametrize("z", [0.0, 1.3, -6.0])
def test_matches_the_textbook_form_at_high_precision(z, df):
    with mpmath.workdps(40):
        nu, x = mpmath.mpf(df), mpmath.mpf(z)
        half = mpmath.mpf("0.5")
        beta = mpmath.beta(half, nu / 2)
        density = (1 + x * x / nu) ** (-(nu + 1) / 2) / (mpmath.sqrt(nu) * beta)
        inside = mpmath.betainc(half, nu / 2, 0, x * x / (nu + x * x), regularized=True)
        expected = (
            abs(x) * inside
            + 2 * density * (nu + x * x) / (nu - 1)
            - 2 * mpmath.sqrt(nu) / (nu - 1) * mpmath.beta(half, nu - half) / beta**2
        )
    excess = torch.tensor(df, dtype=torch.float64) - 2
    crps = standard_student_t_crps(torch.tensor(z, dtype=torch.float64), excess)
    assert_close(crps, float(expected), rel=1e-13)


def test_cauchy_at_its_centre_is_two_ln_two_over_pi():
    crps = standard_student_t_crps(
        torch.zeros((), dtype=torch.float64), torch.tensor(-1.0).double()
    )
    assert_close(crps, 2 * np.log(2) / np.pi, rel=1e-15)


def test_is_infinite_from_one_half_down_only():
    excess = torch.tensor([-1.49999, -1.5, -1.7, -1.999], dtype=torch.float64)
    crps = standard_student_t_crps(torch.ones(4, dtype=torch.float64), excess)
    assert crps.isinf().tolist() == [False, True, True, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_degrees_of_freedom_are_a_gaussian(dtype):
    z = torch.linspace(-8, 8, 33, dtype=dtype)
    gaussian = z.double() * torch.erf(z.double() / 2**0.5) - np.pi**-0.5
    gaussian += (2 / np.pi) ** 0.5 * torch.exp(-0.5 * z.double() ** 2)
    for excess in (1e12, 1e30, torch.inf):
        crps = standard_student_t_crps(z, torch.tensor(excess, dtype=dtype))
        assert_close(crps, gaussian, rel=3e-6 if dtype == torch.float32 else 1e-10)


def test_float32_agrees_with_float64():
    z = torch.linspace(-50, 50, 41)
    excess = torch.tensor(DF)[:, None] - 2
    exact = standard_student_t_crps(z.double(), excess.double())
    assert_close(standard_student_t_crps(z, excess), exact, rel=2e-6)


@pytest.mark.parametrize("z", [1e25, -1e25])
@pytest.mark.parametrize("excess", [-1.2, -1.0, 1.0, 1e8])
def test_far_targets_cost_their_distance_in_float32(z, excess):
    crps = standard_student_t_crps(torch.tensor(z), torch.tensor(excess))
    assert_close(crps, 1e25, rel=2e-2 if excess < -1 else 1e-6)


@pytest.mark.parametrize("df", [0.7, 1.0, 1.03, 1.0624, 1.0626, 2.0, 5.0, 1e3])
def test_gradients_in_both_arguments(df):
    z = torch.tensor([-2.0, 0.0, 0.1, 7.0], dtype=torch.float64, requires_grad=True)
    excess = torch.full((4,), df - 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(standard_student_t_crps, (z, excess))


def test_impossible_degrees_of_freedom_leave_no_nan_in_the_gradient():
    z = torch.ones(2, dtype=torch.float64, requires_grad=True)
    excess = torch.tensor([-1.8, 1.0], dtype=torch.float64, requires_grad=True)
    standard_student_t_crps(z, excess)[1].backward()
    assert z.grad is not None
    assert excess.grad is not None
    assert z.grad.isfinite().all()
    assert excess.grad.isfinite().all()
