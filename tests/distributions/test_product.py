"""The product of one-dimensional Normal-Wisharts against its factors: arXiv:2006.11590v2.

Eqs. (2), (4), (9), (25), (33), (35), (36), (40) and (42) to (44), coordinate by coordinate.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    DIMENSIONS,
    random_normal,
    random_product,
    random_uniform,
    seeded,
)
from priornet.distributions import NormalWishart, ProductNormalWishart


def product_of(loc: Tensor, precision: Tensor, belief: Tensor, excess: Tensor):
    return ProductNormalWishart(loc, precision, belief, excess)


EVERY_K = pytest.mark.parametrize("k_dim", DIMENSIONS)


def coordinate(product: ProductNormalWishart, k: int) -> NormalWishart:
    """One coordinate, built by the ordinary constructor from (m, L, kappa, nu)."""
    df = product.excess[..., k] + 2
    scale_tril = (product.precision[..., k] / df).sqrt()[..., None, None]
    return NormalWishart(product.loc[..., k, None], scale_tril, product.belief[..., k], df)


@EVERY_K
def test_every_measure_is_the_sum_over_coordinates(k_dim):
    """Eqs. (33), (35), (36) and (40)."""
    product = random_product(k_dim, (4,))
    parts = [coordinate(product, k) for k in range(k_dim)]
    for name in (
        "entropy",
        "predictive_entropy",
        "expected_entropy",
        "mutual_information",
        "expected_pairwise_kl",
    ):
        expected = torch.stack([getattr(part, name)() for part in parts]).sum(0)
        assert_close(getattr(product, name)(), expected, abs=1e-11)
    for name in ("covariance_logdet", "covariance_trace"):
        for kind in ("total", "data", "knowledge"):
            expected = torch.stack([getattr(getattr(part, name)(), kind) for part in parts])
            assert_close(getattr(getattr(product, name)(), kind), expected.sum(0), abs=1e-11)


@EVERY_K
def test_densities_are_sums_over_coordinates(k_dim):
    """Eqs. (2), (4) and (25)."""
    product = random_product(k_dim, (4,))
    mean, precision = random_normal((4, k_dim), seed=9), random_uniform(0.2, 3, (4, k_dim), seed=4)
    y = random_normal((4, k_dim), seed=8)
    expected = torch.zeros(3, 4, dtype=torch.float64)
    for k in range(k_dim):
        part = coordinate(product, k)
        point = mean[:, k, None], precision[:, k, None, None]
        target = y[:, k, None]
        expected[0] += part.log_prob(point)
        expected[1] += part.predictive().log_prob(target)
        expected[2] += part.expected_log_prob(target)
    assert_close(product.log_prob((mean, precision)), expected[0])
    assert_close(product.predictive().log_prob(y), expected[1])
    assert_close(product.expected_log_prob(y), expected[2])


@pytest.mark.parametrize("beta", [0.3, 1.0])
@EVERY_K
def test_posterior_updates_each_coordinate(k_dim, beta):
    """Eq. (9)."""
    product = random_product(k_dim, (4,))
    y = random_normal((4, k_dim), seed=8)
    after = product.posterior(y, beta)
    for k in range(k_dim):
        expected = coordinate(product, k).posterior(y[:, k, None], beta)
        assert_close(after.loc[:, k], expected.loc[:, 0])
        assert_close(after.precision[:, k], expected.mean.precision[:, 0, 0])
        assert_close(after.belief[:, k], expected.belief)
        assert_close(after.excess[:, k], expected.excess, abs=1e-12)
    per_element = product.posterior(y, torch.full((4,), beta, dtype=torch.float64))
    assert_close(per_element.precision, after.precision)


@EVERY_K
def test_covariances_are_diagonal_with_those_of_the_coordinates(k_dim):
    """Eqs. (42) to (44)."""
    product = random_product(k_dim, (4,))
    for name in ("data_covariance", "knowledge_covariance", "total_covariance"):
        variances = torch.stack(
            [getattr(coordinate(product, k), name)()[..., 0, 0] for k in range(k_dim)], -1
        )
        assert_close(getattr(product, name)(), torch.diag_embed(variances))
    assert_close(
        product.marginals().variance, product.total_covariance().diagonal(dim1=-2, dim2=-1)
    )


@EVERY_K
def test_draws_have_the_right_moments(k_dim, generator):
    """Eqs. (2), (42) and (43), with excess 9 so that standard errors exist."""
    given = random_product(k_dim)
    product = ProductNormalWishart(
        given.loc, given.precision, given.belief, torch.full_like(given.excess, 9.0)
    )
    mean, precision = product.sample((40_000,), generator)
    assert_mean_close(mean, product.loc)
    assert_mean_close(precision, product.precision)
    assert_mean_close(precision.reciprocal(), product.data_covariance().diagonal())
    square = (mean - product.loc).square()
    assert_mean_close(square, product.knowledge_covariance().diagonal())
    assert_mean_close(-product.log_prob((mean, precision)), product.entropy())


def test_product_is_normalised_where_a_full_wishart_on_the_diagonal_is_not():
    """Eq. (2): two coordinates, the precisions' density integrated over a grid."""
    product = product_of(
        *(
            torch.tensor(v, dtype=torch.float64)
            for v in ([0.0, 0.0], [1.0, 2.0], [1.0, 1.0], [3.0, 3.0])
        )
    )
    t = torch.linspace(-12, 4, 321, dtype=torch.float64)
    step = t[1] - t[0]
    lam = torch.cartesian_prod(t, t).exp()  # (N, 2)
    mean = torch.zeros_like(lam)
    # At its mode the normal has density prod sqrt(kappa lambda / 2 pi): divide it out.
    normal = 0.5 * torch.log(product.belief * lam / (2 * torch.pi)).sum(-1)
    jacobian = torch.log(lam).sum(-1)
    mass = (product.log_prob((mean, lam)) - normal + jacobian).exp().sum() * step**2
    assert_close(mass, torch.ones(()), rel=1e-6)
    full = NormalWishart.from_excess(
        product.loc, torch.diag(product.precision.sqrt()), product.belief[0], 3.0
    ).wishart
    wrong = (full.log_prob(torch.diag_embed(lam)) + jacobian).exp().sum() * step**2
    assert abs(wrong.item() - 1) > 0.1


@EVERY_K
def test_gradients_in_every_parameter(k_dim):
    product = random_product(k_dim)
    y = random_normal((k_dim,), seed=8).requires_grad_()
    parameters = [
        t.clone().requires_grad_()
        for t in (product.loc, product.precision, product.belief, product.excess)
    ]

    def measures(*inputs: Tensor) -> tuple[Tensor, ...]:
        *parameters, y = inputs
        p = product_of(*parameters)
        return (
            p.entropy(),
            p.predictive_entropy(),
            p.expected_pairwise_kl(),
            p.mutual_information(),
            p.total_covariance().diagonal(dim1=-2, dim2=-1),
            p.predictive().log_prob(y),
            p.expected_log_prob(y),
            p.log_prob((y, y.square() + 0.1)),
        )

    assert gradcheck(measures, (*parameters, y), check_undefined_grad=False)


@EVERY_K
def test_draws_are_differentiable_in_loc_precision_and_belief(k_dim):
    product = random_product(k_dim)
    parameters = [
        t.clone().requires_grad_() for t in (product.loc, product.precision, product.belief)
    ]

    def draw(loc: Tensor, precision: Tensor, belief: Tensor) -> tuple[Tensor, Tensor]:
        p = ProductNormalWishart(loc, precision, belief, product.excess)
        return p.rsample((3,), seeded(3))

    assert gradcheck(draw, parameters)
