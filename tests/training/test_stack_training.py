"""Training of a stack: the losses of held-out rows that it reports, and its progress bar."""

from __future__ import annotations

import math

import pytest
import torch

from priornet import losses
from priornet.nn import GaussianHead
from priornet.nn.stacked import StackedMLP
from priornet.training import Rows, Tick
from priornet.training.stack_training import (
    Plan,
    StackRows,
    TrainingSettings,
    progress_bar,
    stages,
    train_stack,
    validation_split,
)


def nll(gaussian, batch, share):
    return losses.gaussian_nll(gaussian, batch.targets)


def test_the_validation_loss_is_that_of_weighted_rows():
    """By hand: at rate 0 a network predicts N(0, 1), and a target y costs (y^2 + ln 2 pi) / 2.

    Each network holds out two rows, with targets 0 and 2, of weights 1 and 3; or 2 and 4, 3 and 0.
    """
    targets = torch.tensor([[0.0], [2.0], [4.0], [1.0]])
    data = Rows(torch.zeros(4, 1), targets, torch.tensor([1.0, 3.0, 0.0, 1.0]))
    held = [torch.tensor([0, 1]), torch.tensor([1, 2])]
    stack = StackedMLP(1, (4,), GaussianHead(4), [0, 1])
    rows = StackRows(data, [torch.tensor([3])] * 2, held)
    settings = TrainingSettings(0.0, 0.0, Plan(1, 4, None))
    found = train_stack(stack, rows, nll, [0, 1], settings)
    squares = [(1 * 0 + 3 * 4) / 4, (3 * 4 + 0 * 16) / 3]
    expected = [0.5 * (square + math.log(2 * math.pi)) for square in squares]
    assert found["validation_loss"] == pytest.approx(expected, rel=1e-5)


def test_networks_that_diverge_are_counted():
    data = Rows(torch.ones(8, 1), torch.ones(8, 1), torch.ones(8))
    stack = StackedMLP(1, (4,), GaussianHead(4), [0, 1])
    rows = [torch.arange(4)] * 2
    settings = TrainingSettings(1e38, 0.0, Plan(3, 4, None))
    with pytest.warns(UserWarning, match="diverged in 2 of 2 networks.*smaller `learning_rate`"):
        train_stack(stack, StackRows(data, rows, rows), nll, [0, 1], settings)


@pytest.mark.parametrize(
    ("n_rows", "n_held"), [(3, 0), (4, 1), (10, 3), (20, 4), (39, 4), (40, 4), (60, 6), (1000, 100)]
)
def test_few_rows_hold_out_enough_to_stop_by(n_rows, n_held):
    train, held = validation_split(torch.arange(n_rows), 0.1, [0, 1])
    assert [len(rows) for rows in train] == [n_rows - n_held] * 2
    if held is None:
        assert n_held == 0
        return
    for own, others in zip(train, held, strict=True):
        assert torch.equal(torch.cat([own, others]).sort().values, torch.arange(n_rows))
    assert n_held < 3 or not torch.equal(held[0].sort().values, held[1].sort().values)


def test_none_are_held_out_where_none_are_wanted():
    assert validation_split(torch.arange(30), 0.0, [0])[1] is None


def test_the_bar_shows_a_smooth_validation_loss_and_the_best(capfd):
    with progress_bar("ensemble") as report:
        assert report is not None
        for epoch, loss in enumerate((1.25, 1.5, 10.49), 1):
            report(Tick(epoch, 50, loss=loss, best=1.25))
    shown = capfd.readouterr()
    assert "ensemble" in shown.err
    assert "validation loss 1.5000, best 1.2500" in shown.err
    assert "10.49" not in shown.err
    assert "3/3" in shown.err  # stopped early: nothing is left to do
    assert shown.out == ""


def test_bars_of_one_task_are_numbered_as_its_stages(capfd):
    with stages(2):
        for name in ("ensemble", "endd"):
            with progress_bar(name) as report:
                assert report is not None
                report(Tick(1, 1, loss=0.5, best=None))
    with progress_bar("alone"):
        pass
    shown = capfd.readouterr().err
    assert shown.index("1 of 2: ensemble") < shown.index("2 of 2: endd") < shown.index("alone")
    assert "of 2: alone" not in shown


def test_without_validation_the_last_weights_are_kept_and_their_loss_is_shown(capfd):
    with progress_bar("endd") as report:
        assert report is not None
        report(Tick(1, 1, loss=0.5, best=None))
    shown = capfd.readouterr().err
    assert "loss 0.5000" in shown
    assert "best" not in shown


def test_no_bar_where_none_is_wanted(capfd):
    with progress_bar("ensemble", shown=False) as report:
        assert report is None
    assert capfd.readouterr() == ("", "")
