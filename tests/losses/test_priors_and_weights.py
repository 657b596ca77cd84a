"""Priors and weights of losses: those that do not fit are refused by name."""

from __future__ import annotations

import math

import pytest
import torch

from _losses import gaussian, nw, product
from priornet import losses

PRIOR_LOSSES = [losses.reverse_kl, losses.forward_kl]


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
@pytest.mark.parametrize("beta", [-1.0, math.nan])
def test_a_negative_beta_is_refused(loss, beta):
    with pytest.raises(ValueError, match=rf"`beta` must not be negative, nan or inf; got {beta:g}"):
        loss(nw(), torch.zeros(4, 2), nw(batch=()), beta=beta)


def test_a_target_may_be_left_out_only_for_the_out_of_domain_term():
    assert losses.reverse_kl(nw(), None, nw(batch=()), beta=0.0).shape == (4,)
    with pytest.raises(ValueError, match=r"`y` is needed unless `beta` is 0"):
        losses.reverse_kl(nw(), None, nw(batch=()), beta=1.0)
    with pytest.raises(TypeError, match=r"`y` must be a tensor; got NoneType"):
        losses.forward_kl(nw(), None, nw(batch=()), beta=1.0)  # pyright: ignore[reportArgumentType] (on purpose)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
@pytest.mark.parametrize("batch", [(4, 1), (3,), (2, 4)])
def test_a_prior_with_more_than_the_batch_of_the_prediction_is_refused(loss, batch):
    with pytest.raises(ValueError, match=r"batch"):
        loss(nw(), torch.zeros(4, 2), nw(batch=batch), beta=1.0)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_a_batch_of_priors_does_not_multiply_one_prediction(beta):
    with pytest.raises(ValueError, match=r"batch"):
        losses.reverse_kl(nw(batch=()), torch.zeros(2), nw(batch=(4,)), beta=beta)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_dimension_is_refused(loss):
    for prediction, prior in ((nw(2), nw(3, ())), (product(2), product(1, ()))):
        with pytest.raises(ValueError, match=r"event shape"):
            loss(prediction, torch.zeros(4, 2), prior, beta=1.0)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_dtype_is_refused(loss):
    with pytest.raises(TypeError, match=r"torch\.float64.*torch\.float32|float32.*float64"):
        loss(nw(), torch.zeros(4, 2), nw(batch=(), dtype=torch.float64), beta=1.0)


@pytest.mark.parametrize("loss", PRIOR_LOSSES)
def test_a_prior_of_another_kind_is_refused(loss):
    message = r"`prior` must be a NormalWishart, like the prediction; got ProductNormalWishart"
    with pytest.raises(TypeError, match=message):
        loss(nw(), torch.zeros(4, 2), product(batch=()), beta=1.0)
    with pytest.raises(TypeError, match=r"`prior` must be a NormalWishart.*got Tensor"):
        loss(nw(), torch.zeros(4, 2), torch.zeros(2), beta=1.0)


def test_beta_nll_takes_a_beta_between_zero_and_one():
    for beta in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"`beta` must lie in \[0, 1\]; got"):
            losses.beta_nll(gaussian(), torch.zeros(4, 2), beta=beta)


@pytest.mark.parametrize("coefficient", [-0.1, math.nan])
def test_evidential_refuses_a_negative_coefficient(coefficient):
    message = rf"`coefficient` must not be negative, nan or inf; got {coefficient:g}"
    with pytest.raises(ValueError, match=message):
        losses.evidential(nw(1), torch.zeros(4, 1), coefficient=coefficient)


@pytest.mark.parametrize("gamma", [-0.1, math.nan])
def test_multi_task_refuses_a_negative_gamma(gamma):
    with pytest.raises(
        ValueError, match=rf"`gamma` must not be negative, nan or inf; got {gamma:g}"
    ):
        losses.multi_task(torch.ones(3), torch.ones(2), gamma=gamma)


def test_multi_task_returns_the_total_and_detached_terms():
    inside, outside = torch.tensor([1.0, 3.0], requires_grad=True), torch.tensor([4.0])
    total, terms = losses.multi_task(inside, outside, gamma=0.5)
    assert total.requires_grad
    assert {name: value.item() for name, value in terms.items()} == {
        "in_domain": 2.0,
        "out_domain": 4.0,
    }
    assert not any(value.requires_grad for value in terms.values())
