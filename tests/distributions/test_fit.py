"""The closed-form fit as the optimum of EnD2: Eq. (15) of arXiv:2006.11590v2."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from _asserts import assert_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    normal_wishart_of,
    random_ensemble,
    random_normal,
    random_normal_wishart,
    random_tril,
)
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.special.gamma import digamma_gap, excess_of_gap

EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


def likelihood(nw: NormalWishart, ensemble: GaussianEnsemble) -> Tensor:
    """Eq. (15), member by member: mean log-density, shape ``(*batch,)``."""
    precisions = torch.linalg.inv(ensemble.covariances)
    return nw.log_prob((ensemble.means, precisions)).mean(0)


@pytest.mark.parametrize("diagonal", [False, True])
@EVERY_K
def test_likelihood_is_flat_at_the_fit(k_dim, diagonal):
    """Eq. (15): the gradient vanishes in every parameter."""
    ensemble = random_ensemble(6, k_dim, (4,), diagonal=diagonal)
    parameters = leaves(NormalWishart.fit(ensemble))
    total = likelihood(normal_wishart_of(*parameters), ensemble).sum()
    for slope in torch.autograd.grad(total, parameters):
        assert_close(slope, torch.zeros_like(slope), abs=1e-8)


@EVERY_K
def test_nothing_near_the_fit_is_more_likely(k_dim):
    """Eq. (15): 40 perturbations of every parameter at once, at three distances."""
    ensemble = random_ensemble(6, k_dim, (4,))
    fit = NormalWishart.fit(ensemble)
    best = likelihood(fit, ensemble)
    for seed in range(40):
        size = (0.01, 0.1, 0.5)[seed % 3]
        moved = NormalWishart.from_excess(
            fit.loc + size * random_normal((4, k_dim), seed),
            fit.precision_tril
            * (1 + 0.5 * size * random_normal((4, k_dim, k_dim), seed + 100).tanh()),
            fit.belief * torch.exp(size * random_normal((4,), seed + 200)),
            -2 + (fit.excess + 2) * torch.exp(size * random_normal((4,), seed + 300)),
        )
        assert (likelihood(moved, ensemble) < best).all()


@EVERY_K
def test_fit_finds_the_belief_that_drew_the_members(k_dim, generator):
    """50 000 draws: parameters within a few standard errors, each of order n^-1/2."""
    nw = random_normal_wishart(k_dim, seed=4)
    mean, precision = nw.sample((50_000,), generator)
    fit = NormalWishart.fit(
        GaussianEnsemble.from_precision_tril(mean, torch.linalg.cholesky(precision))
    )
    assert_close(fit.belief, nw.belief, rel=5 * math.sqrt(2 / k_dim / 50_000))
    assert_close(fit.df, nw.df, rel=0.05)
    assert_close(fit.loc, nw.loc, abs=0.05)
    assert_close(fit.mean.precision, nw.mean.precision, rel=0.05, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@EVERY_K
def test_coinciding_members_stop_at_the_bounds(k_dim, dtype):
    """Eq. (15) has no maximum there: belief and excess take the largest value allowed."""
    one = random_ensemble(1, k_dim, (3,), dtype=dtype)
    ensemble = GaussianEnsemble(
        one.means.expand(4, 3, k_dim), one.covariances.expand(4, 3, k_dim, k_dim)
    )
    fit = NormalWishart.fit(ensemble, max_belief=1e5, max_excess=1e6)
    assert_close(fit.belief, torch.full((3,), 1e5))
    assert_close(fit.excess, torch.full((3,), 1e6))
    assert_close(fit.loc, one.means[0])


@EVERY_K
def test_single_member_is_returned_as_a_certain_belief(k_dim):
    one = random_ensemble(1, k_dim)
    fit = NormalWishart.fit(one)
    assert_close(fit.belief, torch.tensor(1e8))
    assert_close(fit.excess, torch.tensor(1e8))
    assert_close(fit.mean.precision, torch.linalg.inv(one.covariances[0]), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@EVERY_K
def test_members_that_disagree_wildly_have_a_fit(k_dim, dtype):
    """Precisions over twelve decades: df just above K - 1, everything finite and proper."""
    scales = torch.logspace(-6, 6, 7, dtype=torch.float64)[:, None, None]
    tril = random_tril(k_dim)
    covariances = (scales * (tril @ tril.mT)).to(dtype)
    means = 100 * random_normal((7, k_dim), dtype=dtype)
    fit = NormalWishart.fit(GaussianEnsemble(means, covariances))
    assert -2 < fit.excess < 0
    assert 0 < fit.belief < 1
    assert fit.entropy().isfinite()
    assert fit.precision_tril.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("k_dim", [1, 2, 3, 5, 8])
def test_newton_solves_for_the_degrees_of_freedom(k_dim, dtype):
    """Gaps over fourteen decades, against the function that defines them."""
    gap = torch.logspace(-8, 6, 113, dtype=torch.float64).to(dtype)
    excess = excess_of_gap(gap, k_dim, max_excess=1e12)
    assert (excess > -2).all()
    # How finely d is spaced near -2 limits how well any d can answer a large gap.
    eps = torch.finfo(dtype).eps
    spacing = 4 * eps / (excess.double() + 2).clamp(max=1)
    error = (-digamma_gap(excess, k_dim) - gap).abs().double() / gap.double()
    assert (error <= 40 * eps + 2 * spacing).all()


def test_fit_is_batched():
    ensemble = random_ensemble(5, 2, (2, 3))
    fit = NormalWishart.fit(ensemble)
    assert fit.batch_shape == (2, 3)
    alone = NormalWishart.fit(
        GaussianEnsemble(ensemble.means[:, 1, 2], ensemble.covariances[:, 1, 2])
    )
    assert_close(fit.belief[1, 2], alone.belief)
    assert_close(fit.excess[1, 2], alone.excess)
    assert_close(fit.precision_tril[1, 2], alone.precision_tril)


@pytest.mark.parametrize(
    ("n_members", "belief", "dof"), [(5, 2.0, 6.0), (5, 50.0, 100.0), (10, 10.0, 20.0)]
)
def test_few_members_make_a_fit_too_sure(n_members, belief, dof):
    """Members drawn without the library; what is left of the bias is O(1 / M) of one degree."""
    rng = np.random.default_rng(0)
    precisions = rng.gamma(dof / 2, 2 / dof, (n_members, 40_000))
    means = rng.standard_normal(precisions.shape) / np.sqrt(belief * precisions)
    tril = torch.from_numpy(np.sqrt(precisions))[..., None, None]
    fit = NormalWishart.fit(
        GaussianEnsemble.from_precision_tril(torch.from_numpy(means)[..., None], tril)
    )
    factor = n_members / (n_members - 3)
    assert float(fit.belief.mean()) == pytest.approx(factor * belief, rel=0.03)
    assert float(fit.excess.mean() + 2) == pytest.approx(factor * dof, rel=0.07)
