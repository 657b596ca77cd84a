"""The bar shows the loss of the weights that are kept, or nothing at all."""

from __future__ import annotations

from priornet.training import Tick
from priornet.training.progress import progress_bar


def test_the_bar_ends_at_the_best_validation_loss(capfd):
    with progress_bar("ensemble") as report:
        assert report is not None
        report(Tick(1, 50, loss=1.25, best=1.25))
        report(Tick(2, 50, loss=10.49, best=1.25))
    shown = capfd.readouterr()
    assert "best loss 1.2500" in shown.err
    assert "10.49" not in shown.err
    assert "2/2" in shown.err  # stopped early: nothing is left to do
    assert shown.out == ""


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
