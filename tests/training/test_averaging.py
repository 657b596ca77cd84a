"""The average of weights over the last steps."""

import pytest
import torch
from torch import nn

from priornet.training.averaging import WeightAverage


def averaged(values, horizon):
    """A network whose one weight takes these values, and what it is after all."""
    network = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        network.weight.fill_(values[0])
        average = WeightAverage(network.state_dict(), horizon)
        for value in values[1:]:
            network.weight.fill_(value)
            average.update()
    average.keep()
    return network.weight.item()


def test_weights_are_averaged_over_steps():
    """By hand: the n-th step has a share of 1 / (1 + n / 10): 10/11, then 10/12."""
    assert averaged([66.0, 132.0, 264.0], 20) == pytest.approx((66 + 1320 + 55 * 264) / 66)


def test_a_share_is_never_less_than_that_of_the_horizon():
    """By hand: over 1.15 steps the shares are 10/11, then 1 / 1.15 = 20/23."""
    assert averaged([0.0, 11.0, 46.0], 1.15) == pytest.approx(10 * 3 / 23 + 40, rel=1e-6)


def test_without_an_average_the_last_weights_stay():
    assert averaged([1.0, 2.0, 3.0], 0.0) == 3.0


def test_averages_take_the_weights_place_for_a_while():
    weights = nn.Parameter(torch.tensor([66.0]))
    average = WeightAverage({"weights": weights}, 20)
    weights.data.fill_(132.0)
    average.update()
    with average.in_place():
        assert weights.item() == pytest.approx(126.0)
    assert weights.item() == 132.0


def test_an_error_puts_the_weights_back():
    weights = nn.Parameter(torch.tensor([66.0]))
    average = WeightAverage({"weights": weights}, 20)
    weights.data.fill_(132.0)
    with pytest.raises(ZeroDivisionError), average.in_place():
        _ = 1 / 0
    assert weights.item() == 132.0
