"""Student-Ts against scipy, quadrature and their own draws.

Eqs. (21), (32) and (33) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    random_normal,
    random_student_t,
    random_tril,
    random_uniform,
    seeded,
)
from priornet.distributions import MultivariateStudentT, StudentT
from priornet.distributions.factors import Factor

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def float64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def with_df(df: float, k_dim: int, batch: tuple[int, ...] = ()) -> MultivariateStudentT:
    loc = random_normal((*batch, k_dim))
    return MultivariateStudentT(df, loc, random_tril(k_dim, batch, seed=5))


# -- one number ------------------------------------------------------------------------------------

DFS = (0.3, 1.0, 2.5, 7.0, 60.0, 1e4, 1e8)


def test_log_prob_and_entropy_of_a_number_match_scipy():
    """Eq. (21) at K = 1, and Eq. (32)."""
    df = float64(*DFS)
    t = StudentT(df, 0.3, 1.7)
    reference = stats.t(df.numpy(force=True), 0.3, 1.7)
    y = torch.linspace(-20, 20, 41, dtype=torch.float64).unsqueeze(-1).expand(41, len(DFS))
    assert_close(t.log_prob(y), torch.as_tensor(reference.logpdf(y.numpy(force=True))), rel=1e-8)
    # scipy's entropy subtracts large digammas: it is the weaker of the two at large df.
    assert_close(t.entropy(), torch.as_tensor(reference.entropy()), rel=1e-7)


@pytest.mark.parametrize("df", [0.7, 3.0, 40.0])
def test_density_and_entropy_of_a_number_match_quadrature(df):
    """Eqs. (21) and (32)."""
    t = StudentT(float64(df)[0], 0.3, 1.7)

    def log_density(x: float) -> float:
        return t.log_prob(torch.tensor(x, dtype=torch.float64)).item()

    def at(v: float, surprise: bool) -> float:
        """Integrand over v, x = 0.3 + sinh(v)."""
        log_p = log_density(0.3 + math.sinh(v))
        return math.exp(log_p) * (-log_p if surprise else 1.0) * math.cosh(v)

    for surprise, expected in ((False, float64(1.0)[0]), (True, t.entropy())):
        value = 2 * scipy.integrate.quad(at, 0, 60, args=(surprise,), points=(1, 5), limit=200)[0]
        assert_close(float64(value)[0], expected, rel=1e-7)


def test_quantiles_match_scipy():
    df = float64(*DFS[1:])
    t = StudentT(df, 0.3, 1.7)
    reference = stats.t(df.numpy(force=True), 0.3, 1.7)
    p = float64(1e-6, 0.02, 0.3, 0.5, 0.9, 0.999).unsqueeze(-1).expand(6, len(df))
    y = torch.as_tensor(reference.ppf(p.numpy(force=True)))
    assert_close(t.icdf(p), y, rel=1e-8, abs=1e-10)
    assert_close(t.cdf(y), p, rel=1e-8)


@pytest.mark.parametrize("df", [0.8, 1.5, 2.0, 5.0])
def test_moments_exist_where_mathematics_says(df):
    """Mean for df > 1; variance finite for df > 2, infinite for 1 < df <= 2, undefined below."""
    expected_mean = 0.3 if df > 1 else math.nan
    expected_variance = math.nan if df <= 1 else (math.inf if df <= 2 else df / (df - 2))
    number = StudentT(float64(df)[0], 0.3, 1.0)
    vector = MultivariateStudentT(float64(df)[0], float64(0.3, 0.3), torch.eye(2).double())
    for t in (number, vector):
        assert_close(t.mean, torch.full_like(t.mean, expected_mean), equal_nan=True)
        assert_close(t.variance, torch.full_like(t.variance, expected_variance), equal_nan=True)
    off = vector.covariance_matrix[0, 1]
    assert off == 0 if df > 2 else off.isnan()


def test_draws_of_a_number_follow_the_distribution(generator):
    """Probability integral transform: scipy's cdf of the draws is uniform."""
    t = StudentT(float64(0.9, 3.0, 50.0), 0.3, 1.7)
    u = stats.t(t.df.numpy(force=True), 0.3, 1.7).cdf(
        t.rsample((N_DRAWS,), generator).numpy(force=True)
    )
    for power in (1, 2, 4):
        moment = torch.as_tensor(u**power)
        assert_mean_close(moment, torch.full((3,), 1 / (power + 1), dtype=torch.float64))


# -- vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("df", [0.5, 3.0, 40.0, 1e4])
@EVERY_K
def test_log_prob_and_entropy_match_scipy(k_dim, df):
    """Eqs. (21) and (32)."""
    t = with_df(df, k_dim)
    reference = stats.multivariate_t(t.loc.numpy(force=True), t.scale_matrix.numpy(force=True), df)
    y = 3 * random_normal((20, k_dim), seed=9)
    expected = torch.as_tensor(np.reshape(reference.logpdf(y.numpy(force=True)), 20))
    assert_close(t.log_prob(y), expected, rel=1e-9)
    assert_close(t.entropy(), float64(float(reference.entropy()))[0], rel=1e-7)


def test_density_integrates_to_one_and_to_its_marginals():
    """Eq. (21) at K = 2, over y = m + sinh(v) per coordinate."""
    t = with_df(3.0, 2)
    v = torch.linspace(-9, 9, 721, dtype=torch.float64)
    offsets, weight = v.sinh(), v.cosh() * (v[1] - v[0])
    y = t.loc + torch.cartesian_prod(offsets, offsets)
    density = t.log_prob(y).exp().reshape(721, 721)
    assert_close((density * weight.outer(weight)).sum(), torch.ones(()), rel=1e-5)
    middle = slice(240, 481, 40)
    for axis, marginal in enumerate(((density @ weight), (weight @ density))):
        exact = t.marginals().log_prob(t.loc + offsets[middle].unsqueeze(-1).expand(-1, 2))
        assert_close(marginal[middle], exact[:, axis].exp(), rel=1e-4)


@EVERY_K
def test_either_factor_gives_the_same_distribution(k_dim):
    t = with_df(4.0, k_dim, (3,))
    precision = torch.linalg.cholesky(torch.linalg.inv(t.scale_matrix))
    other = MultivariateStudentT.from_excess(t.excess, t.loc, Factor(precision, of_precision=True))
    y = random_normal((3, k_dim), seed=9)
    assert_close(other.log_prob(y), t.log_prob(y))
    assert_close(other.entropy(), t.entropy())
    assert_close(other.scale_tril, t.scale_tril, abs=1e-12)
    assert_close(other.covariance_matrix, t.covariance_matrix, abs=1e-12)
    same = MultivariateStudentT.from_excess(
        t.excess, t.loc, Factor(t.scale_tril, of_precision=False)
    )
    assert_close(same.log_prob(y), t.log_prob(y))


@EVERY_K
def test_draws_have_the_right_moments(k_dim, generator):
    """Eq. (21): mean, covariance S df/(df - 2), and entropy as mean surprise, Eq. (32)."""
    t = with_df(11.0, k_dim)
    draws = t.rsample((N_DRAWS,), generator)
    centred = draws - t.loc
    assert_mean_close(draws, t.mean)
    assert_mean_close(centred.unsqueeze(-1) * centred.unsqueeze(-2), t.scale_matrix * 11 / 9)
    assert_close(t.covariance_matrix, t.scale_matrix * 11 / 9)
    assert_mean_close(-t.log_prob(draws), t.entropy())


@EVERY_K
def test_many_degrees_of_freedom_make_a_gaussian(k_dim):
    """Eq. (21) as df grows."""
    t = with_df(1e10, k_dim, (4,))
    gaussian = MultivariateNormal(t.loc, scale_tril=t.scale_tril)
    y = random_normal((4, k_dim), seed=9)
    assert_close(t.log_prob(y), gaussian.log_prob(y), rel=1e-7, abs=1e-8)
    assert_close(t.entropy(), gaussian.entropy(), rel=1e-7, abs=1e-8)


@EVERY_K
def test_marginals_are_scipys_student_ts(k_dim):
    t = random_student_t(k_dim, (4,))
    scale = t.scale_matrix.diagonal(dim1=-2, dim2=-1).sqrt().numpy(force=True)
    reference = stats.t(t.df.unsqueeze(-1).numpy(force=True), t.loc.numpy(force=True), scale)
    p = random_uniform(0.01, 0.99, (4, k_dim))
    y = torch.as_tensor(reference.ppf(p.numpy(force=True)))
    assert_close(t.marginals().icdf(p), y, rel=1e-8, abs=1e-10)
    assert_close(t.marginals().cdf(y), p, rel=1e-8)
    if k_dim == 1:
        assert_close(t.cdf(y), p[..., 0], rel=1e-8)
        assert_close(t.icdf(p[..., 0]), y, rel=1e-8, abs=1e-10)


# -- gradients -------------------------------------------------------------------------------------


@EVERY_K
def test_gradients_in_every_parameter(k_dim):
    df = float64(3.4)[0].requires_grad_()
    loc = random_normal((k_dim,)).requires_grad_()
    tril = random_tril(k_dim, seed=5).requires_grad_()
    y = random_normal((k_dim,), seed=9).requires_grad_()

    def values(df: Tensor, loc: Tensor, tril: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        t = MultivariateStudentT(df, loc, tril.tril())
        return t.log_prob(y), t.entropy(), t.variance, t.marginals().cdf(y)

    assert gradcheck(values, (df, loc, tril, y), check_undefined_grad=False)


@EVERY_K
def test_draws_are_differentiable_in_location_and_scale(k_dim):
    loc = random_normal((k_dim,)).requires_grad_()
    tril = random_tril(k_dim, seed=5).requires_grad_()

    def draw(loc: Tensor, tril: Tensor) -> Tensor:
        t = MultivariateStudentT(3.4, loc, tril.tril())
        return t.rsample((3,), seeded(3))

    assert gradcheck(draw, (loc, tril))


@pytest.mark.parametrize("df", [1.5, 6.0])
@pytest.mark.parametrize("k_dim", [1, 2])
def test_expected_gradient_in_df_is_the_gradient_of_the_expectation(k_dim, df, generator):
    """E[ln(1 + y'y/df)] = psi((df + K)/2) - psi(df/2), differentiated in df through the draws."""
    free = torch.full((N_DRAWS,), df, dtype=torch.float64).requires_grad_()
    loc, eye = torch.zeros(k_dim, dtype=torch.float64), torch.eye(k_dim, dtype=torch.float64)
    y = MultivariateStudentT(free, loc, eye).rsample((), generator)
    growth = torch.log1p(y.square().sum(-1) / free)
    half = float64(df / 2)[0].requires_grad_()
    exact = torch.digamma(half + k_dim / 2) - torch.digamma(half)
    (slope,) = torch.autograd.grad(exact, half)
    (slopes,) = torch.autograd.grad(growth.sum(), free)
    assert_mean_close(growth, exact)
    assert_mean_close(slopes, 0.5 * slope)
