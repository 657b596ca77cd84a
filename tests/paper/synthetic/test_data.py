"""The synthetic task: the curve, its noise, and where inputs fall."""

import math

import pytest
import torch

from _asserts import assert_close, assert_mean_close
from priornet_paper.synthetic.data import sample_inputs, sample_targets, true_mean, true_std


def test_mean_and_noise_at_points_worked_out_by_hand():
    x = torch.tensor([0.0, 9.0, -9.0, math.pi / 2], dtype=torch.float64)
    assert_close(true_std(x), [1.01, 0.11, 0.11, 1 / (1 + math.pi / 2) + 0.01])
    sine = math.sin(9.0)
    assert_close(true_mean(x), [0.0, sine + 0.9, -sine - 0.9, 1 + math.pi / 20])


@pytest.mark.parametrize("at", [0.0, -3.0, 10.0])
def test_targets_have_the_stated_mean_and_standard_deviation(at):
    x = torch.full((20_000, 1), at, dtype=torch.float64)
    y = sample_targets(x, torch.Generator().manual_seed(0))
    assert_mean_close(y, true_mean(x[0]))
    assert_mean_close((y - true_mean(x)).square(), true_std(x[0]).square())


@pytest.mark.parametrize(("low", "high"), [(0.0, 10.0), (20.0, 25.0)])
def test_inputs_are_uniform_on_both_sides(low, high):
    x = sample_inputs(20_000, low, high, torch.Generator().manual_seed(0))
    assert x.shape == (20_000, 1)
    assert x.abs().min() >= low
    assert x.abs().max() <= high
    assert_mean_close((x > 0).double(), [0.5])
    assert_mean_close(x.abs().double(), [(low + high) / 2])
    variance = (high - low) ** 2 / 12
    assert_mean_close((x.abs().double() - (low + high) / 2).square(), [variance])


def test_generator_alone_decides_the_draw():
    draws = [sample_inputs(5, 0.0, 1.0, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(draws[0], draws[1])


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (2.0, 2.0), (3.0, 1.0)])
def test_impossible_range_is_refused(low, high):
    with pytest.raises(ValueError, match="0 <= low < high"):
        sample_inputs(5, low, high, torch.Generator())
