"""The Wishart against scipy, quadrature and its own draws: Eq. (19) of arXiv:2006.11590v2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from torch import Tensor
from torch.autograd import gradcheck

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    random_normal_wishart,
    random_tril,
    random_wishart,
    seeded,
)
from priornet.distributions import Wishart

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats
special: Any = scipy.special
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def scale_of(wishart: Wishart) -> Tensor:
    return wishart.scale_tril @ wishart.scale_tril.mT


def with_excess(k_dim: int, excess: float, batch: tuple[int, ...] = ()) -> Wishart:
    tril = random_tril(k_dim, batch, seed=11)
    return Wishart.from_excess(tril, torch.full(batch, excess, dtype=torch.float64))


@EVERY_K
def test_log_prob_and_entropy_match_scipy(k_dim):
    """Eq. (19), the Wishart density."""
    wishart = random_wishart(k_dim, (4,))
    points = random_tril(k_dim, (4,), seed=3)
    points = points @ points.mT
    log_prob, entropy = [], []
    for df, scale, point in zip(wishart.df, scale_of(wishart), points, strict=True):
        reference = stats.wishart(df.item(), scale.numpy(force=True))
        log_prob.append(float(reference.logpdf(point.numpy(force=True))))
        entropy.append(float(reference.entropy()))
    expected = torch.tensor([log_prob, entropy], dtype=torch.float64)
    assert_close(wishart.log_prob(points), expected[0], rel=1e-10)
    assert_close(wishart.entropy(), expected[1], rel=1e-10)


@EVERY_K
def test_normalizer_is_that_of_the_multivariate_gamma_function(k_dim):
    wishart = random_wishart(k_dim, (4,))
    nu = wishart.df
    log_gamma = torch.as_tensor(special.multigammaln(0.5 * nu.numpy(force=True), k_dim))
    logdet = torch.linalg.slogdet(scale_of(wishart)).logabsdet
    expected = 0.5 * nu * (k_dim * np.log(2) + logdet) + log_gamma
    assert_close(wishart.log_normalizer(), expected, rel=1e-11)


def test_one_dimension_is_a_gamma_distribution():
    wishart = random_wishart(1, (4,))
    scale = scale_of(wishart)[..., 0, 0]
    gamma = torch.distributions.Gamma(0.5 * wishart.df, 0.5 / scale)
    points = torch.linspace(0.1, 4, 4, dtype=torch.float64)
    assert_close(wishart.log_prob(points[:, None, None]), gamma.log_prob(points), rel=1e-11)
    assert_close(wishart.entropy(), gamma.entropy(), rel=1e-11)


def test_density_integrates_to_one_over_matrices_of_two_rows():
    """Eq. (19): a grid over Cholesky factors, with the Jacobian 4 a^2 c of C to C C'."""
    wishart = with_excess(2, 3.0)
    t = torch.linspace(-4.5, 1.8, 64, dtype=torch.float64)  # ln a and ln c
    b = torch.linspace(-6, 6, 81, dtype=torch.float64)
    log_a, below, log_c = torch.meshgrid(t, b, t, indexing="ij")
    a, c = log_a.exp(), log_c.exp()
    zero = torch.zeros_like(a)
    tril = torch.stack([torch.stack([a, zero], -1), torch.stack([below, c], -1)], -2)
    log_jacobian = np.log(4) + 2 * log_a + log_c + log_a + log_c  # and da = a d(ln a)
    density = (wishart.log_prob(tril @ tril.mT) + log_jacobian).exp()
    total = density.sum() * (t[1] - t[0]) ** 2 * (b[1] - b[0])
    assert_close(total, torch.ones(()), rel=1e-6)


@EVERY_K
def test_draws_have_the_right_moments(k_dim, generator):
    """Mean P; variance nu (L_ij^2 + L_ii L_jj); and the expected log-determinant."""
    wishart = with_excess(k_dim, 2.5)
    draws = wishart.rsample((N_DRAWS,), generator)
    scale, nu = scale_of(wishart), wishart.df
    diagonal = scale.diagonal()
    variance = nu * (scale.square() + diagonal.outer(diagonal))
    assert_mean_close(draws, wishart.mean)
    assert_mean_close((draws - wishart.mean).square(), variance)
    assert_mean_close(torch.linalg.slogdet(draws).logabsdet, wishart.expected_logdet())
    assert_close(wishart.mean, nu * scale)


@pytest.mark.parametrize("excess", [-1.5, 0.5, 20.0])
@EVERY_K
def test_entropy_is_the_mean_surprise_of_draws(k_dim, excess, generator):
    wishart = with_excess(k_dim, excess)
    # By their factors: near excess -2 the matrices themselves are singular to rounding.
    draws = wishart.rsample_tril((N_DRAWS,), generator)
    assert_mean_close(-wishart.log_prob_tril(draws), wishart.entropy())


@EVERY_K
def test_factors_of_draws_are_cholesky_factors(k_dim):
    wishart = with_excess(k_dim, 1.0, (3,))
    tril = wishart.rsample_tril((5,), seeded(1))
    draws = wishart.rsample((5,), seeded(1))
    assert_close(torch.linalg.cholesky(draws), tril, rel=1e-8, abs=1e-12)


@EVERY_K
def test_density_is_flat_at_the_mode(k_dim):
    wishart = random_wishart(k_dim, (4,))
    mode = wishart.mode.requires_grad_()
    (slope,) = torch.autograd.grad(wishart.log_prob(mode).sum(), mode)
    assert_close(slope, torch.zeros_like(slope), abs=1e-10)


def test_mode_is_undefined_where_the_density_has_a_pole():
    wishart = with_excess(2, -0.5)
    assert wishart.mode.isnan().all()


@EVERY_K
def test_gradients_in_every_parameter(k_dim):
    _, tril, _, excess = leaves(random_normal_wishart(k_dim))
    point = random_tril(k_dim, seed=3)

    def values(tril: Tensor, excess: Tensor, point: Tensor) -> tuple[Tensor, ...]:
        wishart = Wishart.from_excess(tril.tril(), excess)
        point = point.tril() @ point.tril().mT
        return (
            wishart.log_prob(point),
            wishart.entropy(),
            wishart.expected_logdet(),
            wishart.log_normalizer(),
            wishart.mean,
            wishart.mode,
        )

    assert gradcheck(values, (tril, excess, point.requires_grad_()))


@EVERY_K
def test_draws_are_differentiable_in_the_scale(k_dim):
    _, tril, _, excess = leaves(random_normal_wishart(k_dim, (2,)))

    def draw(tril: Tensor) -> Tensor:
        wishart = Wishart.from_excess(tril.tril(), excess.detach())
        return wishart.rsample((2,), seeded(3))

    assert gradcheck(draw, tril)


@pytest.mark.parametrize("excess", [-1.0, 0.5, 6.0, 60.0])
def test_draws_move_with_df_along_their_quantile(excess):
    """K = 1: d(draw)/d(df) is that of scipy's quantile function at the draw's own probability.

    torch's gradient of a gamma draw is good to about three digits; so is this test.
    """
    tril = torch.tensor([[1.3]], dtype=torch.float64)
    free = torch.full((2000,), excess, dtype=torch.float64).requires_grad_()
    draws = Wishart.from_excess(tril, free).rsample((), seeded(5))
    draws = draws[..., 0, 0]
    (slope,) = torch.autograd.grad(draws.sum(), free)

    def quantile(df: float, u: np.ndarray) -> np.ndarray:
        return 1.3**2 * 2 * special.gammaincinv(0.5 * df, u) / df

    df, step = excess + 2, 1e-5
    u = special.gammainc(0.5 * df, 0.5 * df * draws.numpy(force=True) / 1.3**2)
    keep = u < 1 - 1e-6  # further out, the probability itself has lost its digits
    expected = (quantile(df + step, u) - quantile(df - step, u)) / (2 * step)
    scale = np.abs(expected).max()
    assert_close(slope[keep], torch.as_tensor(expected)[keep], rel=3e-3, abs=1e-3 * scale)


def test_expected_gradient_in_df_is_the_gradient_of_the_expectation(generator):
    """K = 2: E[Lambda_ij^2] = P_ij^2 + (P_ij^2 + P_ii P_jj)/nu, differentiated in nu."""
    tril = random_tril(2, seed=4)
    excess = torch.full((N_DRAWS,), 3.0, dtype=torch.float64).requires_grad_()
    draws = Wishart.from_excess(tril, excess).rsample((), generator)
    mean = tril @ tril.mT
    diagonal = mean.diagonal()
    expected = -(mean.square() + diagonal.outer(diagonal)) / 6.0**2
    for i, j in ((0, 0), (0, 1), (1, 1)):
        (slopes,) = torch.autograd.grad(draws[:, i, j].square().sum(), excess, retain_graph=True)
        assert_mean_close(slopes, expected[i, j])
