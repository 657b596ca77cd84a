"""Denormal numbers are rounded to zero for a while only."""

from __future__ import annotations

import pytest
import torch

from priornet.nn import GaussianHead, StackedMLP
from priornet.training import Batches, Rows, StackedAdam, fit
from priornet.training.threads import flushed

TINY = torch.tensor([1e-40, 1e-30])


@pytest.fixture
def can_flush():
    can = torch.set_flush_denormal(True)
    torch.set_flush_denormal(False)
    if not can:
        pytest.skip("this processor keeps denormal numbers")


@pytest.mark.usefixtures("can_flush")
def test_denormal_numbers_are_zero_inside_only():
    with flushed():
        assert (TINY * 1).tolist()[0] == 0
        assert (TINY * 1).tolist()[1] > 0
    assert (TINY * 1).tolist()[0] > 0


@pytest.mark.usefixtures("can_flush")
def test_flushing_that_was_on_before_stays_on():
    torch.set_flush_denormal(True)
    try:
        with flushed():
            pass
        assert (TINY * 1).tolist()[0] == 0
    finally:
        torch.set_flush_denormal(False)


def test_an_error_inside_puts_the_setting_back():
    with pytest.raises(ZeroDivisionError), flushed():
        _ = 1 / 0
    assert (TINY * 1).tolist()[0] > 0


@pytest.mark.usefixtures("can_flush")
def test_training_flushes_in_its_steps_and_nowhere_else():
    seen = {"loss": set(), "validation": set(), "progress": set()}

    def look(where):
        seen[where].add((TINY * 1).tolist()[0] == 0)

    def loss(gaussian, batch, share):
        look("loss")
        return (gaussian.loc - batch.targets).square().sum(-1)

    def validation(stack):
        look("validation")
        return torch.zeros(2)

    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    stack = StackedMLP(3, (4,), GaussianHead(4), range(2))
    batches = Batches(Rows(x, x[:, :1], torch.ones(20)), [torch.arange(20)] * 2, range(2), 8)
    optimizer = StackedAdam(stack.weights, 1e-2)
    fit(
        stack,
        loss,
        batches,
        optimizer,
        epochs=2,
        validation=validation,
        progress=lambda _: look("progress"),
    )
    look("progress")
    assert seen == {"loss": {True}, "validation": {False}, "progress": {False}}
