"""What a training of a stack reports of the rows that it holds out."""

from __future__ import annotations

import math

import pytest
import torch

from priornet import losses
from priornet.nn import GaussianHead
from priornet.nn.stacked import StackedMLP
from priornet.training import Rows
from priornet.training.stack_training import Plan, TrainingSettings, predictive_nll, train_stack


def nll(gaussian, batch, share):
    return losses.gaussian_nll(gaussian, batch.targets)


def test_the_validation_loss_is_that_of_weighted_rows():
    """By hand: at a rate of zero a network says N(0, 1), and a target y costs (y^2 + ln 2 pi) / 2.

    Each network holds out two rows, with targets 0 and 2, of weights 1 and 3; or 2 and 4, 3 and 0.
    """
    targets = torch.tensor([[0.0], [2.0], [4.0], [1.0]])
    data = Rows(torch.zeros(4, 1), targets, torch.tensor([1.0, 3.0, 0.0, 1.0]))
    held = [torch.tensor([0, 1]), torch.tensor([1, 2])]
    stack = StackedMLP(1, (4,), GaussianHead(4), [0, 1])
    found = train_stack(
        stack,
        data,
        [torch.tensor([3])] * 2,
        held,
        nll,
        predictive_nll,
        [0, 1],
        TrainingSettings(0.0, 0.0, Plan(1, 4, None)),
    )
    squares = [(1 * 0 + 3 * 4) / 4, (3 * 4 + 0 * 16) / 3]
    expected = [0.5 * (square + math.log(2 * math.pi)) for square in squares]
    assert found["validation_loss"] == pytest.approx(expected, rel=1e-5)


def test_networks_that_diverge_are_counted():
    data = Rows(torch.ones(8, 1), torch.ones(8, 1), torch.ones(8))
    stack = StackedMLP(1, (4,), GaussianHead(4), [0, 1])
    rows = [torch.arange(4)] * 2
    settings = TrainingSettings(1e38, 0.0, Plan(3, 4, None))
    with pytest.warns(UserWarning, match="diverged in 2 of 2 networks.*smaller `learning_rate`"):
        train_stack(stack, data, rows, rows, nll, predictive_nll, [0, 1], settings)
