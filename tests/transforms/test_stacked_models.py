"""Stacked models: networks whose weights are mapped over equal a loop over the networks."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from _asserts import assert_close
from _beliefs import random_normal
from _transforms import EVERY_BATCH, EVERY_K, MODELS, tolerance
from priornet import losses
from priornet.distributions import NormalWishart


@EVERY_BATCH
@EVERY_K
@pytest.mark.parametrize("name", list(MODELS))
def test_stacked_models_equal_a_loop(name, k_dim, batch, device, dtype):
    """An ensemble trained as one: vmap of functional_call over stacked weights."""
    models = [MODELS[name](k_dim).to(device, dtype) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    x = random_normal((*batch, 3)).to(device, dtype)

    def measures(weights, buffers):
        out = functional_call(models[0], (weights, buffers), (x,))
        return out.expected_entropy(), out.total_covariance(), out.expected_pairwise_kl()

    found = vmap(measures)(weights, buffers)
    for row, model in enumerate(models):
        out = model(x)
        expected = (out.expected_entropy(), out.total_covariance(), out.expected_pairwise_kl())
        for value, want in zip(found, expected, strict=True):
            assert_close(value[row].detach(), want.detach(), **tolerance(dtype))


@EVERY_BATCH
@EVERY_K
def test_stacked_training_steps_equal_a_loop(k_dim, batch, device, dtype):
    models = [MODELS["nw"](k_dim).to(device, dtype) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    x, y = (random_normal((*batch, n), n).to(device, dtype) for n in (3, k_dim))
    eye = torch.eye(k_dim, device=device, dtype=dtype)
    prior = NormalWishart.from_excess(torch.zeros_like(eye[0]), eye, 0.1, 0.1)

    def loss(weights, buffers):
        out = functional_call(models[0], (weights, buffers), (x,))
        return losses.reverse_kl(out, y, prior, beta=3.0).mean()

    gradients, values = vmap(grad_and_value(loss))(weights, buffers)
    for row, model in enumerate(models):
        expected = losses.reverse_kl(model(x), y, prior, beta=3.0).mean()
        expected.backward()
        assert_close(values[row].detach(), expected.detach(), **tolerance(dtype))
        for key, parameter in model.named_parameters():
            assert_close(gradients[key][row].detach(), parameter.grad, **tolerance(dtype))
