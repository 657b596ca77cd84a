"""Distributions over vectors of one coordinate, seen as distributions over numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from _asserts import assert_close, assert_mean_close
from _beliefs import (
    BATCHES,
    random_ensemble,
    random_gaussian,
    random_normal,
    random_product,
    random_student_t,
    random_uniform,
)
from priornet.distributions import Gaussian, Normal, NormalMixture, StudentT

PREDICTIVES = {
    "MultivariateStudentT": (random_student_t, StudentT),
    "Gaussian": (random_gaussian, Normal),
    "GaussianMixture": (lambda k, b: random_ensemble(5, k, b).predictive(), NormalMixture),
    "ProductStudentT": (lambda k, b: random_product(k, b).predictive(), StudentT),
}
EVERY_PREDICTIVE = pytest.mark.parametrize("name", PREDICTIVES)
EVERY_BATCH = pytest.mark.parametrize("batch", BATCHES)


@EVERY_BATCH
@EVERY_PREDICTIVE
def test_univariate_answers_as_the_vector_of_one(name, batch):
    build, kind = PREDICTIVES[name]
    vector = build(1, batch)
    number = vector.univariate()
    assert type(number) is kind
    assert (number.batch_shape, number.event_shape) == (batch, ())
    y, p = random_normal((*batch, 1), 9), random_uniform(0.02, 0.98, batch, 8)
    assert_close(number.log_prob(y[..., 0]), vector.log_prob(y), rel=1e-12, abs=1e-12)
    assert_close(number.cdf(y[..., 0]), vector.cdf(y), rel=1e-12)
    assert_close(number.icdf(p), vector.icdf(p)[..., 0], rel=1e-12, abs=1e-12)
    for moment in ("mean", "variance", "stddev"):
        assert_close(getattr(number, moment), getattr(vector, moment)[..., 0], rel=1e-12)
    if name != "GaussianMixture":
        assert_close(number.entropy(), vector.entropy(), rel=1e-12)


@EVERY_BATCH
@EVERY_PREDICTIVE
def test_univariate_draws_follow_its_distribution(name, batch, generator):
    """Probability integral transform: the vector's cdf of the draws is uniform."""
    vector = PREDICTIVES[name][0](1, batch)
    number = vector.univariate()
    draws = number.sample((20_000,), generator=generator)
    assert draws.shape == (20_000, *batch)
    u = vector.cdf(draws.unsqueeze(-1))
    for power in (1, 2, 4):
        expected = torch.full(batch, 1 / (power + 1), dtype=torch.float64)
        assert_mean_close(u**power, expected)


@EVERY_PREDICTIVE
def test_univariate_refuses_values_that_would_make_a_square(name):
    number = PREDICTIVES[name][0](1, (4,)).univariate()
    for ask in (number.log_prob, number.cdf, number.icdf):
        with pytest.raises(ValueError, match=r"batch shapes do not fit together"):
            ask(torch.full((4, 1), 0.5, dtype=torch.float64))


@pytest.mark.parametrize("k_dim", [2, 3, 5])
@EVERY_PREDICTIVE
def test_univariate_of_several_coordinates_names_the_marginals(name, k_dim):
    vector = PREDICTIVES[name][0](k_dim, (4,))
    with pytest.raises(ValueError, match=rf"K = {k_dim} coordinates .*`marginals\(\)`"):
        vector.univariate()
    assert vector.marginals().batch_shape == (4, k_dim)


@EVERY_PREDICTIVE
def test_one_probability_serves_a_batch(name):
    number = PREDICTIVES[name][0](1, (4,)).univariate()
    one = torch.tensor(0.9, dtype=torch.float64)
    assert_close(number.icdf(one), number.icdf(one.expand(4)), rel=1e-14)


def test_univariate_keeps_its_gradients():
    loc, tril = random_normal((4, 1)), random_uniform(0.5, 1.5, (4, 1, 1))
    leaves = loc.requires_grad_(), tril.requires_grad_()
    p = random_uniform(0.1, 0.9, (4,), 8)

    def quantiles(loc: Tensor, tril: Tensor) -> Tensor:
        return Gaussian(loc, precision_tril=tril).univariate().icdf(p)

    assert gradcheck(quantiles, leaves)
