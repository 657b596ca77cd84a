"""Mixtures of Gaussians against torch, scipy and quadrature.

The predictive of the ensemble of Eq. (14), arXiv:2006.11590v2.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import scipy.optimize
import scipy.stats
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal, Normal

from _asserts import assert_close, assert_mean_close
from _beliefs import DIMENSIONS, random_ensemble, random_normal, random_tril, random_uniform
from priornet.distributions import GaussianMixture, NormalMixture

# Partly typed, partly wrongly: checked by the tests themselves.
stats: Any = scipy.stats
optimize: Any = scipy.optimize
EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def float64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# -- vectors ---------------------------------------------------------------------------------------


@EVERY_K
def test_log_prob_and_moments_match_torch(k_dim):
    """Eq. (14), averaged over members."""
    ensemble = random_ensemble(5, k_dim, (4,))
    mixture = ensemble.predictive()
    means, covariances = ensemble.means.movedim(0, 1), ensemble.covariances.movedim(0, 1)
    twin = MixtureSameFamily(
        Categorical(logits=torch.zeros(4, 5, dtype=torch.float64)),
        MultivariateNormal(means, covariances),
    )
    y = random_normal((7, 4, k_dim), seed=9)
    assert_close(mixture.log_prob(y), twin.log_prob(y))
    assert_close(mixture.mean, twin.mean, abs=1e-12)
    assert_close(mixture.variance, twin.variance)


@EVERY_K
def test_draws_have_the_right_moments(k_dim, generator):
    mixture = random_ensemble(3, k_dim).predictive()
    draws = mixture.sample((N_DRAWS,), generator)
    centred = draws - mixture.mean
    assert_mean_close(draws, mixture.mean)
    assert_mean_close(centred.unsqueeze(-1) * centred.unsqueeze(-2), mixture.covariance_matrix)


def test_density_integrates_to_one_and_to_its_marginals():
    mixture = random_ensemble(3, 2).predictive()
    axis = torch.linspace(-14, 14, 561, dtype=torch.float64)
    step = axis[1] - axis[0]
    density = mixture.log_prob(torch.cartesian_prod(axis, axis)).exp().reshape(561, 561)
    assert_close(density.sum() * step**2, torch.ones(()), rel=1e-8)
    marginals = mixture.marginals().log_prob(axis.unsqueeze(-1).expand(-1, 2)).exp()
    assert_close(density.sum(1) * step, marginals[:, 0], rel=1e-6, abs=1e-10)
    assert_close(density.sum(0) * step, marginals[:, 1], rel=1e-6, abs=1e-10)


# -- numbers ---------------------------------------------------------------------------------------


def test_mixture_of_numbers_matches_torch():
    means, scales = random_normal((5, 4)), random_uniform(0.3, 2.0, (5, 4))
    mixture = NormalMixture(means, scales)
    weights = Categorical(logits=torch.zeros(4, 5, dtype=torch.float64))
    twin = MixtureSameFamily(weights, Normal(means.T, scales.T))
    y = random_normal((7, 4), seed=9)
    assert_close(mixture.log_prob(y), twin.log_prob(y))
    assert_close(mixture.cdf(y), twin.cdf(y))
    assert_close(mixture.mean, twin.mean)
    assert_close(mixture.variance, twin.variance)


def test_draws_of_numbers_follow_the_distribution(generator):
    """Probability integral transform: the cdf of the draws is uniform."""
    mixture = NormalMixture(float64(-2.0, 0.5, 3.0), float64(0.3, 1.0, 0.7))
    u = mixture.cdf(mixture.sample((N_DRAWS,), generator))
    for power in (1, 2, 4):
        assert_mean_close(u**power, float64(1 / (power + 1))[0])


def test_cdf_is_the_integral_of_the_density():
    mixture = NormalMixture(float64(-2.0, 0.5, 3.0), float64(0.3, 1.0, 0.7))
    axis = torch.linspace(-14, 2.0, 3201, dtype=torch.float64)
    total = torch.trapezoid(mixture.log_prob(axis).exp(), axis)
    assert_close(mixture.cdf(float64(2.0)[0]), total, rel=1e-6)


def reference_cdf(means, scales, y: Tensor) -> Tensor:
    values = [stats.norm(means, scales).cdf(v).mean() for v in y.detach().double().tolist()]
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_cdf_keeps_its_digits_in_the_lower_tail(dtype, rel):
    """Five, eight, twelve deviations below every component, relative to the probability itself."""
    means, scales = [-1.0, 0.0, 0.5], [1.0, 0.5, 2.0]
    mixture = NormalMixture(torch.tensor(means, dtype=dtype), torch.tensor(scales, dtype=dtype))
    y = torch.tensor([-6.0, -9.5, -17.0, -23.5], dtype=dtype)
    assert_close(mixture.cdf(y), reference_cdf(means, scales, y), rel=rel)


MIXTURES = {
    "one": ([0.3], [1.7]),
    "near": ([-1.0, 0.0, 0.5], [1.0, 0.5, 2.0]),
    "far": ([-50.0, 0.0, 80.0], [1.0, 0.5, 2.0]),
    "spike": ([0.0, 0.0, 0.0], [1e-3, 1.0, 1e3]),
}
PROBABILITIES = (1e-12, 1e-6, 1e-3, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.999, 1 - 1e-6)


@pytest.mark.parametrize("name", MIXTURES)
def test_quantiles_match_a_root_found_by_scipy(name):
    means, scales = MIXTURES[name]
    mixture = NormalMixture(float64(*means), float64(*scales))
    normals = stats.norm(means, scales)
    expected = []
    for p in PROBABILITIES:
        # Where the tail is thin, solve for its own (small) probability.
        tail, level = (normals.cdf, p) if p < 0.5 else (normals.sf, 1 - p)
        expected.append(
            optimize.brentq(
                lambda x, tail=tail, level=level: math.log(max(tail(x).mean(), 1e-320) / level),
                -1e5,
                1e5,
                xtol=1e-13,
                rtol=1e-14,
            )
        )
    assert_close(mixture.icdf(float64(*PROBABILITIES)), float64(*expected), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("name", MIXTURES)
def test_quantiles_in_float32_have_the_probability_asked_for(name):
    means, scales = MIXTURES[name]
    mixture = NormalMixture(torch.tensor(means), torch.tensor(scales))
    p = torch.tensor([1e-6, 1e-3, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.999])
    y = mixture.icdf(p)
    # The quantile is rounded to float32; the probability may move by its density times that.
    density = NormalMixture(float64(*means), float64(*scales)).log_prob(y.double()).exp()
    error = (reference_cdf(means, scales, y) - p.double()).abs()
    assert (error <= 1e-5 * torch.minimum(p, 1 - p) + 2e-7 * y.abs() * density).all()


@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 20.0), (torch.float32, 8.0)])
def test_median_of_two_far_members_lies_halfway(dtype, far):
    """Both halves weigh the same: what decides are the tails, far below rounding of the cdf."""
    mixture = NormalMixture(torch.tensor([-far, far], dtype=dtype), torch.ones(2, dtype=dtype))
    assert_close(mixture.icdf(torch.tensor(0.5, dtype=dtype)), torch.zeros(()), abs=1e-4)


@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 20.0), (torch.float32, 8.0)])
def test_median_of_two_far_members_of_unlike_width_balances_their_tails(dtype, far):
    """As many deviations from one as from the other: (x + far)/1 = (far - x)/2."""
    scales = torch.tensor([1.0, 2.0], dtype=dtype)
    mixture = NormalMixture(torch.tensor([-far, far], dtype=dtype), scales)
    median = mixture.icdf(torch.tensor(0.5, dtype=dtype))
    assert_close(median, torch.tensor(-far / 3), rel=1e-5)


def test_quantiles_at_the_ends_are_infinite():
    mixture = NormalMixture(float64(-1.0, 2.0), float64(1.0, 3.0))
    assert mixture.icdf(float64(0.0, 1.0)).tolist() == [-math.inf, math.inf]


def test_gradients_of_cdf_and_quantiles():
    """``icdf`` against finite differences, in the probability and in every component."""
    means = float64(-2.0, 0.5, 3.0).unsqueeze(-1).expand(3, 5).clone().requires_grad_()
    scales = float64(0.3, 1.0, 0.7).unsqueeze(-1).expand(3, 5).clone().requires_grad_()
    p = float64(0.001, 0.1, 0.4, 0.8, 0.999).requires_grad_()
    assert gradcheck(lambda m, s, p: NormalMixture(m, s).icdf(p), (means, scales, p))
    y = float64(-3.0, -1.0, 0.2, 2.0, 5.0).requires_grad_()

    def values(means: Tensor, scales: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        mixture = NormalMixture(means, scales)
        return mixture.cdf(y), mixture.log_prob(y), mixture.mean, mixture.variance

    assert gradcheck(values, (means, scales, y))


def test_one_dimensional_vectors_have_quantiles():
    ensemble = random_ensemble(4, 1, (3,))
    mixture = ensemble.predictive()
    p = float64(0.05, 0.5, 0.8)
    y = mixture.icdf(p)
    assert y.shape == (3, 1)
    assert_close(mixture.cdf(y), p, rel=1e-10)
    numbers = NormalMixture(ensemble.means[..., 0], ensemble.covariances[..., 0, 0].sqrt())
    assert_close(y[..., 0], numbers.icdf(p), rel=1e-10)


def test_equal_components_are_one_gaussian():
    tril = random_tril(3)
    mixture = GaussianMixture(torch.zeros(4, 3, dtype=torch.float64), tril.expand(4, 3, 3))
    gaussian = MultivariateNormal(
        torch.zeros(3, dtype=torch.float64), precision_matrix=tril @ tril.T
    )
    y = random_normal((6, 3), seed=9)
    assert_close(mixture.log_prob(y), gaussian.log_prob(y))


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_quantiles_of_members_of_very_unlike_width_are_found(dtype, rel):
    """Spikes and plateaus, on which Newton's method runs to and fro; against scipy's cdf."""
    means = (10 * random_normal((6, 400), 1)).to(dtype)
    scales = (3 * random_normal((6, 400), 2)).exp().to(dtype)
    p = random_uniform(0.001, 0.999, (400,), 3).to(dtype)
    y = NormalMixture(means, scales).icdf(p).double()
    means, scales, p = means.double(), scales.double(), p.double()
    parts = (part.numpy(force=True) for part in (y, means, scales))
    found = torch.as_tensor(stats.norm.cdf(*parts).mean(0))
    # The quantile is rounded; the probability may move by its density times that.
    slack = 4 * torch.finfo(dtype).eps * y.abs() * NormalMixture(means, scales).log_prob(y).exp()
    assert ((found - p).abs() <= rel * torch.minimum(p, 1 - p) + slack).all()


def test_quantiles_do_not_depend_on_who_else_is_asked():
    """Rows leave the search at different times; alone, each takes the same steps."""
    means, scales = 10 * random_normal((6, 50), 1), (2 * random_normal((6, 50), 2)).exp()
    p = random_uniform(0.001, 0.999, (50,), 3)
    together = NormalMixture(means, scales).icdf(p)
    alone = [NormalMixture(means[:, i], scales[:, i]).icdf(p[i]) for i in range(50)]
    assert_close(together, torch.stack(alone), rel=1e-12, abs=1e-13)
