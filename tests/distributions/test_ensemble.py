"""Ensembles of Gaussians against torch's divergences, quadrature and draws.

Eqs. (5) to (7), (12) and (14) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    random_ensemble,
    random_normal,
    random_normal_wishart,
    seeded,
)
from priornet.distributions import GaussianEnsemble, ensemble_information

EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


def torch_members(ensemble: GaussianEnsemble) -> list[MultivariateNormal]:
    return [
        MultivariateNormal(mean, covariance)
        for mean, covariance in zip(ensemble.means, ensemble.covariances, strict=True)
    ]


@pytest.mark.parametrize("diagonal", [False, True])
@EVERY_K
def test_pairwise_kl_is_the_double_loop_over_members(k_dim, diagonal):
    """Eq. (6) over all ordered pairs, equal ones included."""
    ensemble = random_ensemble(4, k_dim, (3,), diagonal=diagonal)
    members = torch_members(ensemble)
    pairs = torch.stack([kl_divergence(p, q) for p in members for q in members])
    assert_close(ensemble.expected_pairwise_kl(), pairs.mean(0))


@EVERY_K
def test_pairwise_kl_of_near_members_keeps_its_digits_in_float32(k_dim):
    """Eq. (6): members a thousandth apart, far from the origin."""
    base = random_ensemble(1, k_dim, (5,))
    means = (100 + 1e-3 * random_normal((6, 5, k_dim))).float()
    stretch = 1 + 1e-2 * random_normal((6, 5, 1, 1), seed=3)
    covariances = (base.covariances * stretch).float()
    single = GaussianEnsemble(means, covariances).expected_pairwise_kl()
    double = GaussianEnsemble(means.double(), covariances.double()).expected_pairwise_kl()
    assert single.dtype == torch.float32
    assert_close(single, double, rel=1e-3)


@EVERY_K
def test_average_likelihood_and_entropy_are_those_of_torchs_members(k_dim):
    """Eq. (14): the empirical averages."""
    ensemble = random_ensemble(4, k_dim, (3,))
    members = torch_members(ensemble)
    y = random_normal((3, k_dim), seed=9)
    log_prob = torch.stack([member.log_prob(y) for member in members])
    entropy = torch.stack([member.entropy() for member in members])
    assert_close(ensemble.expected_log_prob(y), log_prob.mean(0))
    assert_close(ensemble.expected_entropy(), entropy.mean(0))


@EVERY_K
def test_covariances_obey_the_law_of_total_variance(k_dim):
    """Eq. (7), and the scalar forms."""
    ensemble = random_ensemble(k_dim + 3, k_dim, (3,))
    # The 1/M covariance of the means, by NumPy-like arithmetic of its own.
    between = torch.stack(
        [torch.cov(ensemble.means[:, i].T, correction=0).reshape(k_dim, k_dim) for i in range(3)]
    )
    data = ensemble.covariances.mean(0)
    named = {"data": data, "knowledge": between, "total": data + between}
    logdet, trace = ensemble.covariance_logdet(), ensemble.covariance_trace()
    for name, expected in named.items():
        assert_close(getattr(ensemble, f"{name}_covariance")(), expected, rel=1e-10, abs=1e-12)
        assert_close(
            getattr(logdet, name), torch.linalg.slogdet(expected).logabsdet, rel=1e-9, abs=1e-9
        )
        assert_close(getattr(trace, name), expected.diagonal(dim1=-2, dim2=-1).sum(-1))
    assert_close(ensemble.predictive().covariance_matrix, data + between, abs=1e-12)


@pytest.mark.parametrize("k_dim", [2, 3, 5])
def test_few_members_span_no_volume(k_dim):
    """M <= K: the covariance of the means is singular, its trace is not."""
    ensemble = random_ensemble(k_dim, k_dim, (3,))
    assert (ensemble.covariance_logdet().knowledge == -torch.inf).all()
    assert (ensemble.covariance_trace().knowledge > 0).all()


def test_variance_of_close_means_is_not_lost_in_float32():
    """Differences first: E[mu^2] - E[mu]^2 would give noise of either sign here."""
    means = torch.tensor([[4096.0], [4096.0009765625], [4096.001953125]])  # exact in float32
    ensemble = GaussianEnsemble(means, torch.ones(3, 1))
    expected = torch.tensor([[2 / 3 * 0.0009765625**2]], dtype=torch.float64)
    assert_close(ensemble.knowledge_covariance(), expected, rel=1e-6)


def entropy_by_quadrature(ensemble: GaussianEnsemble) -> Tensor:
    """Entropy of a K = 1 mixture on a grid that covers every component."""
    axis = torch.linspace(-30, 30, 12001, dtype=torch.float64)
    log_p = ensemble.predictive().log_prob(
        axis[:, None, None].expand(-1, *ensemble.means.shape[1:])
    )
    return -torch.trapezoid(log_p.exp() * log_p, axis, dim=0)


def test_sampled_mutual_information_matches_quadrature():
    """Eq. (5): unbiased, within standard errors over 200 independent estimates."""
    ensemble = random_ensemble(4, 1, (3,))
    total = entropy_by_quadrature(ensemble)
    exact = total - ensemble.expected_entropy()
    generators = [seeded(seed) for seed in range(200)]
    draws = torch.stack([ensemble.mutual_information_mc(10, g) for g in generators])
    assert_mean_close(draws, exact)
    generators = [seeded(seed) for seed in range(200)]
    draws = torch.stack([ensemble.predictive_entropy_mc(10, g) for g in generators])
    assert_mean_close(draws, total)


@EVERY_K
def test_pairwise_kl_bounds_the_sampled_mutual_information(k_dim, generator):
    """Eqs. (5) and (6)."""
    ensemble = random_ensemble(4, k_dim, (3,))
    sampled = ensemble.mutual_information_mc(500, generator)
    assert (sampled <= ensemble.expected_pairwise_kl()).all()
    assert (sampled <= torch.log(torch.tensor(4.0)) + 1e-12).all()  # of four members, at most ln 4


@EVERY_K
def test_agreeing_members_leave_no_knowledge_uncertainty(k_dim, generator):
    """Eqs. (5) to (7)."""
    one = random_ensemble(1, k_dim, (3,))
    ensemble = GaussianEnsemble(
        one.means.expand(5, 3, k_dim), one.covariances.expand(5, 3, k_dim, k_dim)
    )
    zero = torch.zeros(3)
    assert_close(ensemble.expected_pairwise_kl(), zero, abs=1e-14)
    assert_close(ensemble.covariance_trace().knowledge, zero, abs=0)
    assert_close(ensemble.mutual_information_mc(3, generator), zero, abs=1e-13)
    assert_close(ensemble.data_covariance(), one.covariances[0], abs=1e-14)


@EVERY_K
def test_picked_members_are_the_members(k_dim, generator):
    """Eq. (14): each member equally often, mean and precision picked together."""
    ensemble = random_ensemble(3, k_dim, (2,))
    mean, precision = ensemble.sample((20_000,), generator)
    assert_mean_close(mean, ensemble.means.mean(0))
    inverses = torch.linalg.inv(ensemble.covariances)
    assert_mean_close(precision, inverses.mean(0))
    first = (mean[0] - ensemble.means).abs().amax(-1).argmin(0)  # which member, per batch element
    for i, m in enumerate(first.tolist()):
        assert_close(precision[0, i], inverses[m, i], abs=1e-10)


@EVERY_K
def test_moment_match_has_the_moments_of_the_mixture(k_dim):
    """Eq. (12): the optimum of EnD."""
    ensemble = random_ensemble(4, k_dim, (3,))
    matched = ensemble.moment_matched()
    assert_close(matched.mean, ensemble.predictive().mean)
    assert_close(matched.covariance_matrix, ensemble.total_covariance(), abs=1e-11)
    y = random_normal((3, k_dim), seed=9)
    assert_close(ensemble.moment_matched_log_prob(y), matched.log_prob(y))


@EVERY_K
def test_precision_factors_make_the_same_ensemble(k_dim):
    ensemble = random_ensemble(4, k_dim, (3,))
    tril = torch.linalg.cholesky(torch.linalg.inv(ensemble.covariances))
    other = GaussianEnsemble.from_precision_tril(ensemble.means, tril)
    assert_close(other.covariances, ensemble.covariances, abs=1e-11)
    assert_close(other.expected_pairwise_kl(), ensemble.expected_pairwise_kl(), rel=1e-8)
    assert_close(other.mean.precision, ensemble.mean.precision, abs=1e-11)


@EVERY_K
def test_many_drawn_members_have_the_measures_of_their_belief(k_dim, generator):
    """Eqs. (5) to (7): an ensemble of draws estimates every measure of the Normal-Wishart.

    Each draw of 64 members is one unbiased estimate (pairs of a member with itself add nothing to
    the EPKL, hence the factor); 400 of them give the standard error.
    """
    nw = random_normal_wishart(k_dim, seed=2)
    nw = type(nw).from_excess(nw.loc, nw.precision_tril, 1.7, 9.0)
    mean, precision = nw.sample((64, 400), generator)
    ensemble = GaussianEnsemble.from_precision_tril(mean, torch.linalg.cholesky(precision))
    unbiased = 64 / 63
    assert_mean_close(ensemble.expected_entropy(), nw.expected_entropy())
    assert_mean_close(unbiased * ensemble.expected_pairwise_kl(), nw.expected_pairwise_kl())
    assert_mean_close(ensemble.data_covariance(), nw.data_covariance())
    assert_mean_close(unbiased * ensemble.knowledge_covariance(), nw.knowledge_covariance())


def test_diagonal_members_split_into_coordinates():
    ensemble = random_ensemble(4, 3, (2,), diagonal=True)
    parts = ensemble.coordinates()
    assert_close(parts.expected_pairwise_kl().sum(-1), ensemble.expected_pairwise_kl())
    assert_close(parts.expected_entropy().sum(-1), ensemble.expected_entropy(), abs=1e-12)
    variances = ensemble.total_covariance().diagonal(dim1=-2, dim2=-1)
    assert_close(parts.total_covariance()[..., 0, 0], variances)


def by_integral(mean, spread) -> float:
    """Entropy of the mixture less the mean entropy of its members."""

    def entropy(y):
        p = stats.norm.pdf(y, mean, spread).mean()
        return -p * math.log(p) if p > 0 else 0.0

    low, high = (mean - 12 * spread).min(), (mean + 12 * spread).max()
    total = integrate.quad(entropy, low, high, points=sorted(mean), limit=500)[0]
    return total - stats.norm.entropy(mean, spread).mean()


@pytest.mark.parametrize("disagreement", [0.3, 3.0])
@pytest.mark.parametrize("unevenness", [0.1, 1.0])
def test_information_of_one_target_matches_the_integral(disagreement, unevenness):
    """Also where a narrow member stands inside a wide one, which a rule per member would miss."""
    mean = disagreement * random_normal((4, 6), 0)
    spread = torch.exp(unevenness * random_normal((4, 6), 1))
    found = ensemble_information(GaussianEnsemble(mean[..., None], spread[..., None] ** 2))
    for row, value in enumerate(found):
        expected = by_integral(mean[:, row].cpu().numpy(), spread[:, row].cpu().numpy())
        assert value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("k_dim", [1, 2])
def test_members_that_agree_have_no_information_and_far_ones_all(k_dim):
    means = torch.zeros(3, 2, k_dim, dtype=torch.float64)
    means[:, 1] = 1000.0 * torch.arange(3.0, dtype=torch.float64)[:, None]
    ensemble = GaussianEnsemble(means, torch.ones_like(means))
    assert_close(ensemble_information(ensemble), [0.0, math.log(3)], abs=1e-6)


def test_information_of_several_targets_agrees_with_another_sample(generator):
    ensemble = random_ensemble(4, 2, (50,), seed=1)
    other = ensemble.mutual_information_mc(4096, generator).cpu().numpy()
    # The integrand's spread is about its own size, below 2 nats here, over 4 x 512 draws.
    assert np.abs(ensemble_information(ensemble) - other).max() <= 5 * 2 / math.sqrt(4 * 512)


@pytest.mark.parametrize("k_dim", [1, 2])
def test_information_is_integrated_in_pieces_of_rows(k_dim):
    ensemble = random_ensemble(2, k_dim, (3,), seed=2)
    many = GaussianEnsemble(
        ensemble.means.repeat(1, 700, 1), ensemble.covariances.repeat(1, 700, 1, 1)
    )
    found = ensemble_information(many)
    assert found.shape == (2100,)
    if k_dim == 1:
        assert_close(found[-3:], ensemble_information(ensemble), rel=1e-9)
