"""Adam per network is torch's Adam, network by network."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from priornet.training import StackedAdam

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
