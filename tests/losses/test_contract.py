"""The promises of every loss: shape, dtype, batches, and precision."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import torch

from _asserts import assert_close
from _contract import LOSSES, cast, every, select, settings, spread
from _losses import EVERY, assert_same, draw, loss_and_gradients
from priornet import losses

EVERY_K = spread(LOSSES)  # about dtypes, whatever the shapes


DENSE_DEPTH = {"dense_depth", "depth_of", "inverse_depth"}  # of whole maps: see test_depth.py


def test_every_public_loss_has_a_case():
    functions = {name for name in losses.__all__ if name.islower()} - {"multi_task", *DENSE_DEPTH}
    assert functions == {case.name.split("(")[0] for case in LOSSES}


@every(EVERY)
def test_one_loss_per_element_with_finite_gradients(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    assert (loss.shape, loss.dtype, loss.device.type) == (batch, dtype, device.type)
    assert loss.isfinite().all()
    for name, gradient in gradients.items():
        assert (gradient.shape, gradient.dtype) == (parameters[name].shape, dtype)
        assert gradient.isfinite().all(), name
        assert (gradient != 0).any(), name


@every(settings(LOSSES, batches=((2, 3),)))
def test_a_batch_is_a_loop_over_its_elements(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    together = case.call(parameters, target)
    for index in itertools.product(*map(range, batch)):
        one = case.call(
            select(parameters, index, case.lead), select(target, index, case.target_lead)
        )
        rel = 1e-10 if dtype == torch.float64 else 1e-4
        assert_close(together[index], one, rel=rel, abs=rel)


@every(settings(LOSSES, (1, 3, 5), ((0,),)))
def test_an_empty_batch_gives_an_empty_loss(case, k_dim, batch, device, dtype):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    assert loss.shape == (0,)
    assert all(gradient.numel() == 0 for gradient in gradients.values())


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)
@every(EVERY_K)
def test_half_precision_is_computed_in_float32(case, k_dim, batch, half, device):
    parameters, target = draw(case, k_dim, batch, device, half)
    loss = case.call(parameters, target)
    assert loss.dtype == torch.float32
    assert_same(loss, case.call(cast(parameters, torch.float32), cast(target, torch.float32)))


@every(EVERY_K)
@pytest.mark.parametrize("backward", ["outside", "inside"])
def test_autocast_rounds_nothing(case, k_dim, batch, backward, device):
    parameters, target = draw(case, k_dim, batch, device, torch.float32)
    expected, gradients = loss_and_gradients(case, parameters, target)
    leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
    autocast = torch.autocast(device.type, dtype=torch.bfloat16)
    with autocast:
        loss = case.call(leaves, target)
    with autocast if backward == "inside" else contextlib.nullcontext():
        found = torch.autograd.grad(loss.sum(), list(leaves.values()))
    assert_same(loss, expected)
    for gradient, name in zip(found, leaves, strict=True):
        assert_same(gradient, gradients[name])
