"""Adam per network is torch's Adam; the average of weights over the last steps; the cosine."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from priornet.training import StackedAdam, cosine
from priornet.training.optimiser import WeightAverage

RATES, DECAYS = [1e-2, 3e-3, 1e-1], [0.0, 1e-2, 0.3]


def gradients(n_steps: int, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        scale * torch.randn(3, 5, generator=generator, dtype=torch.float64) for _ in range(n_steps)
    ]


def start() -> torch.Tensor:
    return torch.randn(3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(("rates", "decays"), [(RATES, DECAYS), ([1e-2] * 3, [0.3] * 3)])
@pytest.mark.parametrize("clip", [None, 0.5])
def test_each_row_moves_as_under_torch(clip, rates, decays):
    weights = nn.Parameter(start())
    optimizer = StackedAdam(weights, rates, decays, clip)
    rows = [nn.Parameter(row) for row in start()]
    references = [
        torch.optim.Adam([row], lr=rate, weight_decay=decay)
        for row, rate, decay in zip(rows, rates, decays, strict=True)
    ]
    for step, grad in enumerate(gradients(20)):
        factor = 1 / (1 + step)
        weights.grad = grad.clone()
        optimizer.step(factor)
        for row, g, reference, rate in zip(rows, grad, references, rates, strict=True):
            row.grad = g.clone()
            if clip is not None:
                nn.utils.clip_grad_norm_([row], clip)
            reference.param_groups[0]["lr"] = rate * factor
            reference.step()
    torch.testing.assert_close(
        weights.detach(), torch.stack([*rows]).detach(), rtol=1e-6, atol=1e-9
    )


def test_a_network_that_skips_steps_keeps_its_own_count():
    weights, alone = nn.Parameter(start()), nn.Parameter(start())
    optimizer, reference = StackedAdam(weights, RATES, DECAYS), StackedAdam(alone, RATES, DECAYS)
    for step, grad in enumerate(gradients(10)):
        active = torch.tensor([True, step % 2 == 0, True])
        weights.grad = grad.clone()
        before = weights.detach().clone()
        optimizer.step(active=active)
        assert torch.equal(weights[1], before[1]) != bool(active[1])
        if active[1]:
            alone.grad = grad.clone()
            reference.step()
    torch.testing.assert_close(weights[1], alone[1], rtol=0, atol=0)


def test_networks_that_fall_out_of_step_go_on_from_common_steps():
    weights, alone = nn.Parameter(start()), nn.Parameter(start())
    optimizer, reference = StackedAdam(weights, 1e-2, 0.3), StackedAdam(alone, 1e-2, 0.3)
    for step, grad in enumerate(gradients(12)):
        waits = 4 <= step < 8
        weights.grad = grad.clone()
        optimizer.step(active=torch.tensor([True, False, True]) if waits else None)
        if not waits:
            alone.grad = grad.clone()
            reference.step()
    torch.testing.assert_close(weights[1], alone[1], rtol=1e-12, atol=1e-12)


def test_a_huge_gradient_of_one_network_leaves_the_others_alone():
    weights, calm = nn.Parameter(start()), nn.Parameter(start())
    optimizer, reference = StackedAdam(weights, 1e-2, clip=1.0), StackedAdam(calm, 1e-2, clip=1.0)
    (grad,) = gradients(1)
    calm.grad = grad.clone()
    grad[0] *= 1e6
    weights.grad = grad
    optimizer.step()
    reference.step()
    assert torch.equal(weights[1:], calm[1:])


def test_wrong_number_of_rates_is_refused():
    with pytest.raises(ValueError, match=r"`learning_rate` must be one number or one per network"):
        StackedAdam(nn.Parameter(start()), [1e-2, 1e-3])


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


def test_cosine_falls_to_its_final_value():
    values = [cosine(i / 10, final=0.1) for i in range(11)]
    assert values[0] == 1
    assert values[-1] == pytest.approx(0.1)
    assert all(a > b for a, b in itertools.pairwise(values))
