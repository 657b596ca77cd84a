"""Divergences against draws, torch's gammas and Gaussians, and 50 digits.

Eqs. (26) to (28) of arXiv:2006.11590v2.
"""

from __future__ import annotations

import mpmath as mp
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    leaves,
    normal_wishart_of,
    random_gaussian,
    random_normal_wishart,
    random_product,
    random_uniform,
    random_wishart,
)
from priornet.distributions import Gaussian, NormalWishart, Wishart

EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)
N_DRAWS = 40_000


def torch_twin(gaussian: Gaussian) -> MultivariateNormal:
    tril = gaussian.precision_tril
    return MultivariateNormal(gaussian.loc, precision_matrix=tril @ tril.mT)


# -- Normal-Wisharts -------------------------------------------------------------------------------


@EVERY_K
def test_divergence_is_the_mean_log_ratio_of_draws(k_dim, generator):
    """Eqs. (26) to (28), both ways round."""
    p, q = random_normal_wishart(k_dim, seed=1), random_normal_wishart(k_dim, seed=6)
    for first, second in ((p, q), (q, p)):
        draws = first.sample((N_DRAWS,), generator)
        ratio = first.log_prob(draws) - second.log_prob(draws)
        assert_mean_close(ratio, kl_divergence(first, second))


@EVERY_K
def test_divergence_of_wisharts_is_the_mean_log_ratio_of_draws(k_dim, generator):
    """Eq. (28)."""
    p, q = random_wishart(k_dim, seed=1), random_wishart(k_dim, seed=6)
    draws = p.rsample_tril((N_DRAWS,), generator)
    ratio = p.log_prob_tril(draws) - q.log_prob_tril(draws)
    assert_mean_close(ratio, kl_divergence(p, q))


@EVERY_K
def test_divergence_is_zero_from_itself_and_not_symmetric(k_dim):
    """Eqs. (27) and (28)."""
    p, q = random_normal_wishart(k_dim, (3,), seed=1), random_normal_wishart(k_dim, (3,), seed=6)
    assert_close(kl_divergence(p, p), torch.zeros(3))
    assert (kl_divergence(p, q) > 0).all()
    assert ((kl_divergence(p, q) - kl_divergence(q, p)).abs() > 1e-3).all()


@given(
    k_dim=st.sampled_from(DIMENSIONS),
    seeds=st.tuples(st.integers(0, 2**20), st.integers(0, 2**20)),
    log_belief=st.floats(-6, 8),
    log_excess=st.floats(-6, 8),
)
def test_divergence_is_never_negative(k_dim, seeds, log_belief, log_excess):
    """Eqs. (27) and (28), in both precisions."""
    for dtype in (torch.float64, torch.float32):
        p, q = (random_normal_wishart(k_dim, seed=seed, dtype=dtype) for seed in seeds)
        far = NormalWishart.from_excess(q.loc, q.precision_tril, 10**log_belief, 10**log_excess)
        for divergence in (kl_divergence(p, far), kl_divergence(far, p)):
            assert divergence >= 0
            assert divergence.isfinite()


@EVERY_K
def test_divergence_adds_up_over_mean_and_precision(k_dim):
    """Eqs. (26) to (28): the KL between the conditional normals, plus that of the Wisharts."""
    p, q = random_normal_wishart(k_dim, (3,), seed=1), random_normal_wishart(k_dim, (3,), seed=6)
    off = p.loc - q.loc
    square = torch.einsum("bi,bij,bj->b", off, p.mean.precision, off)
    ratio = q.belief / p.belief
    normal = 0.5 * (q.belief * square + k_dim * (ratio - torch.log(ratio) - 1))
    assert_close(kl_divergence(p, q), normal + kl_divergence(p.wishart, q.wishart))


def test_one_dimension_is_normal_gamma():
    """Eq. (28) at K = 1: torch's KL between gammas."""
    p, q = random_wishart(1, (4,), seed=1), random_wishart(1, (4,), seed=6)

    def gamma(w: Wishart) -> torch.distributions.Gamma:
        return torch.distributions.Gamma(0.5 * w.df, 0.5 * w.df / w.mean[..., 0, 0])

    assert_close(kl_divergence(p, q), kl_divergence(gamma(p), gamma(q)), rel=1e-8)


def exact_divergence(p: dict, q: dict) -> float:
    """Eqs. (27) and (28) at K = 1 as printed, at 50 digits."""
    with mp.workdps(50):
        m, prec, kappa, d = (mpf(v) for v in p.values())
        m0, prec0, kappa0, d0 = (mpf(v) for v in q.values())
        nu, nu0 = d + 2, d0 + 2
        scale, scale0 = prec / nu, prec0 / nu0
        ratio = scale / scale0
        total = kappa0 * nu / 2 * (m - m0) ** 2 * scale
        total += (kappa0 / kappa - mp.log(kappa0 / kappa) - 1) / 2
        total += nu / 2 * (ratio - 1) - nu0 / 2 * mp.log(ratio)
        total += mp.loggamma(nu0 / 2) - mp.loggamma(nu / 2) + (nu - nu0) / 2 * mp.digamma(nu / 2)
        return float(total)


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-11), (torch.float32, 1e-5)])
@pytest.mark.parametrize("distance", [1e-5, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4, 1e8])
def test_divergence_keeps_its_digits_near_and_far(size, distance, dtype, rel):
    """Eqs. (27) and (28) at K = 1: beliefs of every strength, however near."""
    names = ("loc", "root", "belief", "excess")
    p = dict(zip(names, (0.3, 1.1, size, size), strict=True))
    q = {name: value * (1 + distance * (i + 1)) for i, (name, value) in enumerate(p.items())}
    p, q = (
        {n: torch.tensor(v, dtype=torch.float64).to(dtype) for n, v in side.items()}
        for side in (p, q)
    )
    sides = [
        NormalWishart.from_excess(
            s["loc"].reshape(1), s["root"].reshape(1, 1), s["belief"], s["excess"]
        )
        for s in (p, q)
    ]
    exact = [{n: v.double().item() for n, v in s.items()} for s in (p, q)]
    with mp.workdps(50):
        exact = [{n: mpf(v) ** 2 if n == "root" else mpf(v) for n, v in s.items()} for s in exact]
    expected = torch.tensor(exact_divergence(*exact), dtype=torch.float64)
    assert_close(kl_divergence(*sides), expected, rel=rel)


@EVERY_K
def test_gradients_in_every_parameter_of_both(k_dim):
    """Eqs. (27) and (28)."""
    p, q = (leaves(random_normal_wishart(k_dim, seed=seed)) for seed in (1, 6))

    def divergence(*parameters: Tensor) -> Tensor:
        return kl_divergence(normal_wishart_of(*parameters[:4]), normal_wishart_of(*parameters[4:]))

    assert gradcheck(divergence, (*p, *q))


# -- products --------------------------------------------------------------------------------------


@EVERY_K
def test_divergence_of_products_is_the_sum_over_coordinates(k_dim):
    """Eqs. (27) and (28) per coordinate."""
    p, q = random_product(k_dim, (3,), seed=1), random_product(k_dim, (3,), seed=6)
    total = torch.zeros(3, dtype=torch.float64)
    for k in range(k_dim):
        sides = [
            NormalWishart.from_excess(
                s.loc[:, k : k + 1],
                s.precision[:, k].sqrt()[:, None, None],
                s.belief[:, k],
                s.excess[:, k],
            )
            for s in (p, q)
        ]
        total = total + kl_divergence(*sides)
    assert_close(kl_divergence(p, q), total)


# -- Gaussians -------------------------------------------------------------------------------------


@EVERY_K
def test_divergence_of_gaussians_matches_torch(k_dim):
    """By either factor, and in every pairing with torch's own Gaussians."""
    p, q = random_gaussian(k_dim, (3,), seed=1), random_gaussian(k_dim, (3,), seed=6)
    twins = torch_twin(p), torch_twin(q)
    expected = kl_divergence(*twins)
    by_scale = Gaussian(p.loc, scale_tril=twins[0].scale_tril)
    for first, second in ((p, q), (p, twins[1]), (twins[0], q), (by_scale, q)):
        assert_close(kl_divergence(first, second), expected)


@EVERY_K
def test_diagonal_gaussians_mix_with_full_ones(k_dim):
    p = random_gaussian(k_dim, (3,), seed=1)
    scale = random_uniform(0.4, 2.0, (3, k_dim), seed=2)
    diagonal = Independent(Normal(p.loc + 0.3, scale), 1)
    full = MultivariateNormal(p.loc + 0.3, scale_tril=torch.diag_embed(scale))
    ours = Gaussian(p.loc + 0.3, variance=scale.square())
    twin = torch_twin(p)
    there, back = kl_divergence(twin, full), kl_divergence(full, twin)
    for first in (p, twin):
        for second in (diagonal, full, ours):
            assert_close(kl_divergence(first, second), there)
            assert_close(kl_divergence(second, first), back)


@EVERY_K
def test_divergence_of_torchs_own_pairs_is_left_alone(k_dim):
    scale = random_uniform(0.4, 2.0, (2, k_dim), seed=2)
    loc = torch.zeros(2, k_dim, dtype=torch.float64)
    p, q = Independent(Normal(loc, scale), 1), Independent(Normal(loc + 1, 2 * scale), 1)
    by_hand = kl_divergence(p.base_dist, q.base_dist).sum(-1)
    assert_close(kl_divergence(p, q), by_hand)


@EVERY_K
def test_gradients_of_the_divergence_of_gaussians(k_dim):
    p, q = random_gaussian(k_dim, seed=1), random_gaussian(k_dim, seed=6)
    inputs = [t.clone().requires_grad_() for g in (p, q) for t in (g.loc, g.precision_tril)]

    def divergence(a: Tensor, c: Tensor, b: Tensor, e: Tensor) -> Tensor:
        first, second = Gaussian(a, precision_tril=c.tril()), Gaussian(b, scale_tril=e.tril())
        return kl_divergence(first, second)

    assert gradcheck(divergence, inputs)
