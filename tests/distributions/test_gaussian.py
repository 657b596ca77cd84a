"""The Gaussian against scipy and torch: Eqs. (1) and (19) of arXiv:2006.11590v2."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats
import torch
from torch.distributions import MultivariateNormal, kl_divergence
from torch.distributions import Normal as TorchNormal

from _asserts import assert_close, assert_mean_close
from _beliefs import DIMENSIONS, random_gaussian, random_normal, random_tril, random_uniform
from priornet.distributions import Gaussian, Normal

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def torch_twin(gaussian: Gaussian) -> MultivariateNormal:
    tril = gaussian.precision_tril
    return MultivariateNormal(gaussian.loc, precision_matrix=tril @ tril.mT)


@EVERY_K
def test_log_prob_and_entropy_match_scipy(k_dim):
    """Eq. (19), the Normal density with the constant (2 pi)^(K/2)."""
    gaussian = random_gaussian(k_dim, (4,))
    y = random_normal((4, k_dim), seed=9)
    twin = torch_twin(gaussian)
    references = [
        stats.multivariate_normal(m, c)
        for m, c in zip(
            gaussian.loc.numpy(force=True), twin.covariance_matrix.numpy(force=True), strict=True
        )
    ]
    log_prob = [float(r.logpdf(v)) for r, v in zip(references, y.numpy(force=True), strict=True)]
    entropy = [float(r.entropy()) for r in references]
    expected = torch.tensor([log_prob, entropy], dtype=torch.float64)
    assert_close(gaussian.log_prob(y), expected[0])
    assert_close(gaussian.entropy(), expected[1])


@EVERY_K
def test_every_way_to_give_the_matrix_means_the_same(k_dim):
    """Eq. (1)."""
    gaussian = random_gaussian(k_dim, (4,))
    twin = torch_twin(gaussian)
    other = Gaussian(gaussian.loc, scale_tril=twin.scale_tril)
    y = random_normal((4, k_dim), seed=9)
    for same in (gaussian, other):
        assert_close(same.log_prob(y), twin.log_prob(y))
        assert_close(same.covariance_matrix, twin.covariance_matrix, abs=1e-12)
        assert_close(same.scale_tril, twin.scale_tril, abs=1e-12)
        assert_close(same.precision_tril, gaussian.precision_tril, abs=1e-12)
        assert_close(same.variance, twin.variance)
        assert_close(same.entropy(), twin.entropy())


@EVERY_K
def test_variances_mean_independent_coordinates(k_dim):
    """Eq. (1) with a diagonal covariance."""
    loc, variance = random_normal((4, k_dim)), random_uniform(0.2, 3.0, (4, k_dim))
    gaussian = Gaussian(loc, variance=variance)
    y = random_normal((4, k_dim), seed=9)
    normal = torch.distributions.Normal(loc, variance.sqrt())
    assert_close(gaussian.log_prob(y), normal.log_prob(y).sum(-1))
    assert_close(gaussian.entropy(), normal.entropy().sum(-1))


@pytest.mark.parametrize("by_precision", [True, False])
@EVERY_K
def test_draws_have_the_right_moments(k_dim, by_precision, generator):
    """Eq. (1)."""
    loc, tril = random_normal((k_dim,)), random_tril(k_dim, seed=5)
    gaussian = Gaussian(loc, precision_tril=tril) if by_precision else Gaussian(loc, None, tril)
    draws = gaussian.rsample((N_DRAWS,), generator)
    centred = draws - gaussian.loc
    assert_mean_close(draws, gaussian.mean)
    products = centred.unsqueeze(-1) * centred.unsqueeze(-2)
    assert_mean_close(products, torch_twin(gaussian).covariance_matrix)
    assert_mean_close(-gaussian.log_prob(draws), gaussian.entropy())


@EVERY_K
def test_marginals_are_scipys_normals(k_dim):
    gaussian = random_gaussian(k_dim, (4,))
    marginals = gaussian.marginals()
    scale = torch_twin(gaussian).variance.sqrt()
    reference = stats.norm(gaussian.loc.numpy(force=True), scale.numpy(force=True))
    p = random_uniform(0.01, 0.99, (4, k_dim))
    y = torch.as_tensor(reference.ppf(p.numpy(force=True)))
    assert_close(marginals.cdf(y), p)
    assert_close(marginals.icdf(p), y, abs=1e-12)
    if k_dim == 1:
        assert_close(gaussian.cdf(y), p[..., 0])
        assert_close(gaussian.icdf(p[..., 0]), y, abs=1e-12)


@pytest.mark.parametrize(
    ("dtype", "rel", "levels"),
    [(torch.float64, 1e-10, [1e-300, 1e-30, 1e-12, 1e-6]), (torch.float32, 1e-5, [1e-20, 1e-6])],
)
def test_quantiles_keep_their_digits_in_the_lower_tail(dtype, rel, levels):
    """Relative to the probability itself, against scipy."""
    gaussian = Gaussian(torch.zeros(1, dtype=dtype), variance=torch.ones(1, dtype=dtype))
    p = torch.tensor(levels, dtype=dtype)
    expected = torch.as_tensor(stats.norm.ppf(p.double().numpy(force=True)))
    y = gaussian.icdf(p)
    assert_close(y[..., 0], expected, rel=rel)
    level = torch.as_tensor(stats.norm.cdf(y[..., 0].double().numpy(force=True)))
    assert_close(gaussian.cdf(y), level, rel=10 * rel)


@EVERY_K
def test_single_gaussian_knows_its_parameters(k_dim):
    """Eqs. (5) and (7): all of its uncertainty is data uncertainty."""
    gaussian = random_gaussian(k_dim, (4,))
    zero = torch.zeros(4)
    assert_close(gaussian.mutual_information(), zero)
    assert_close(gaussian.expected_pairwise_kl(), zero)
    assert_close(gaussian.predictive_entropy(), gaussian.expected_entropy())
    assert_close(gaussian.total_covariance(), gaussian.data_covariance())
    assert_close(gaussian.knowledge_covariance(), torch.zeros(4, k_dim, k_dim))
    covariance = torch_twin(gaussian).covariance_matrix
    logdet, trace = gaussian.covariance_logdet(), gaussian.covariance_trace()
    assert_close(logdet.total, torch.linalg.slogdet(covariance).logabsdet, abs=1e-12)
    assert_close(trace.total, covariance.diagonal(dim1=-2, dim2=-1).sum(-1))
    assert_close(trace.knowledge, zero)
    assert (logdet.knowledge == -torch.inf).all()


def test_every_answer_of_the_normal_matches_torch():
    loc, scale = random_normal((4,)), random_uniform(0.3, 2.0, (4,))
    normal, twin = Normal(loc, scale), TorchNormal(loc, scale)
    y, p = random_normal((7, 4), 9), random_uniform(0.01, 0.99, (7, 4), 8)
    assert_close(normal.log_prob(y), twin.log_prob(y))
    assert_close(normal.cdf(y), twin.cdf(y))
    assert_close(normal.icdf(p), twin.icdf(p), abs=1e-12)
    assert_close(normal.entropy(), twin.entropy())
    for moment in ("mean", "mode", "variance", "stddev"):
        assert_close(getattr(normal, moment), getattr(twin, moment))


def test_torchs_divergence_knows_the_normal():
    p, q = Normal(random_normal((4,)), 1.5), Normal(random_normal((4,), 1), 0.7)
    expected = kl_divergence(TorchNormal(p.loc, p.scale), TorchNormal(q.loc, q.scale))
    assert_close(kl_divergence(p, q), expected)


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_cdf_of_the_normal_keeps_its_digits_in_the_lower_tail(dtype, rel):
    normal = Normal(torch.zeros((), dtype=dtype), 1.0)
    y = torch.tensor([-5.0, -8.0, -12.0], dtype=dtype)
    assert_close(normal.cdf(y), stats.norm.cdf(y.double().numpy(force=True)), rel=rel)


def test_draws_of_the_normal_have_the_right_moments(generator):
    normal = Normal(random_normal((3,)), random_uniform(0.3, 2.0, (3,)))
    draws = normal.rsample((40_000,), generator)
    assert_mean_close(draws, normal.mean)
    assert_mean_close((draws - normal.mean).square(), normal.variance)
