"""The transfer set: noise on the scales asked for, labels left as labels."""

from __future__ import annotations

import math

import pytest
import torch

from priornet.distill import TransferSet

INPUTS = torch.cat([torch.randn(50, 2), torch.eye(2)[torch.arange(50) % 2]], -1)
CONTINUOUS = [True, True, False, False]


def draw(transfer: TransferSet, n: int = 20_000, continuous=None, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return transfer.sample(INPUTS, n, generator, continuous)


def test_every_row_is_a_centre_before_any_is_one_again():
    _, centre = draw(TransferSet(), n=130)
    counts = centre.bincount(minlength=50)
    assert counts.sum() == 130
    assert set(counts.tolist()) == {2, 3}


def test_noise_has_the_scales_asked_for():
    near, centre = draw(TransferSet(near=0.1, far_share=0.0))
    torch.testing.assert_close(
        (near - INPUTS[centre]).std(0), torch.full((4,), 0.1), rtol=0.05, atol=0
    )
    far, centre = draw(TransferSet(far=(0.5, 2.0), far_share=1.0))
    # Of a scale uniform in its logarithm the mean square is (b^2 - a^2) / (2 ln(b / a)).
    expected = torch.tensor((4 - 0.25) / (2 * math.log(4)))
    square = (far - INPUTS[centre]).square().mean(0)
    torch.testing.assert_close(square, expected.expand(4), rtol=0.05, atol=0)


def test_labels_stay_labels():
    x, centre = draw(TransferSet(far_share=1.0, exchange=0.5), continuous=CONTINUOUS)
    labels = x[:, 2:]
    assert bool(((labels == 0) | (labels == 1)).all())
    assert bool((labels.sum(1) == 1).all())
    changed = (labels != INPUTS[centre][:, 2:]).any(1).float().mean()
    assert 0.2 < float(changed) < 0.3  # half of the exchanges meet the same label
    same, centre = draw(TransferSet(far_share=1.0, exchange=0.0), continuous=CONTINUOUS)
    assert torch.equal(same[:, 2:], INPUTS[centre][:, 2:])


def test_same_seed_same_draw():
    assert torch.equal(draw(TransferSet())[0], draw(TransferSet())[0])
    assert not torch.equal(draw(TransferSet())[0], draw(TransferSet(), seed=1)[0])


@pytest.mark.parametrize(
    "bad", [{"near": -1.0}, {"far": (0.0, 1.0)}, {"far": (2.0, 1.0)}, {"far_share": 1.5}]
)
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        TransferSet(**bad)
