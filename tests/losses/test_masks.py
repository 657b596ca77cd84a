"""Masks of every loss: what is masked out is zero, missing or not, and the rest does not change."""

from __future__ import annotations

import math

import pytest
import torch

from _asserts import assert_close
from _contract import LOSSES, every, settings
from _losses import EVERY, WITH_TARGETS, assert_same, draw, loss_and_gradients

FROM_TEACHERS = [case for case in LOSSES if case.target_lead]


def gaps(batch, device):
    """Masks to try: a pattern with both values, or either value where there is one element."""
    if not batch:
        return [torch.tensor(kept, device=device) for kept in (True, False)]
    return [(torch.arange(math.prod(batch), device=device) % 2 == 0).reshape(batch)]


def masked_out(mask, value, lead=0):
    """Fill a tensor of leading axes, batch and event where the mask is false."""
    return value.movedim(0, -1)[~mask] if lead else value[~mask]


@every(EVERY)
def test_a_masked_element_is_exactly_zero_and_the_others_do_not_change(
    case, k_dim, batch, device, dtype
):
    parameters, target = draw(case, k_dim, batch, device, dtype)
    loss, gradients = loss_and_gradients(case, parameters, target)
    for mask in gaps(batch, device):
        found, found_gradients = loss_and_gradients(case, parameters, target, mask)
        assert_same(found, torch.where(mask, loss, 0.0))
        for name, gradient in gradients.items():
            event = gradient.dim() - case.lead - len(batch)
            keep = mask.reshape((1,) * case.lead + batch + (1,) * event)
            expected = torch.where(keep, gradient, 0.0)
            assert_close(found_gradients[name], expected, rel=1e-5, abs=1e-6)
            assert (masked_out(mask, found_gradients[name], case.lead) == 0).all()


@pytest.mark.parametrize("missing", [math.nan, math.inf])
@every(settings(WITH_TARGETS))
def test_a_masked_missing_target_gives_zero_loss_and_zero_gradient(
    case, k_dim, batch, missing, device, dtype
):
    for mask in gaps(batch, device):
        parameters, target = draw(case, k_dim, batch, device, dtype)
        target["y"][~mask] = missing
        loss, gradients = loss_and_gradients(case, parameters, target, mask)
        assert (loss[~mask] == 0).all()
        assert loss.isfinite().all()
        for name, gradient in gradients.items():
            assert gradient.isfinite().all(), name
            assert (gradient[~mask] == 0).all(), name
            assert (gradient[mask] != 0).any() or not mask.any(), name


@every(settings(FROM_TEACHERS))
def test_a_masked_missing_teacher_gives_zero_loss_and_zero_gradient(
    case, k_dim, batch, device, dtype
):
    """Built with values unseen, as on an accelerator: the mask alone keeps the nan out."""
    for mask in gaps(batch, device):
        parameters, target = draw(case, k_dim, batch, device, dtype)
        target["means"][:, ~mask] = math.nan
        unchecked = {**target, "validate_args": False}
        loss, gradients = loss_and_gradients(case, parameters, unchecked, mask)
        assert (loss[~mask] == 0).all()
        assert loss.isfinite().all()
        for name, gradient in gradients.items():
            assert gradient.isfinite().all(), name
            assert (masked_out(mask, gradient, case.lead) == 0).all(), name


@every(settings(LOSSES, (1, 2), ((4,),)))
@pytest.mark.parametrize(
    ("mask", "kind", "message"),
    [
        (torch.ones(4), TypeError, r"`mask` must be boolean.*got torch\.float32"),
        (torch.ones(4, dtype=torch.int64), TypeError, r"`mask` must be boolean.*got torch\.int64"),
        (
            torch.ones(4, 1, dtype=torch.bool),
            ValueError,
            r"`mask` must have shape \(4,\); got \(4, 1\)",
        ),
        (torch.ones((), dtype=torch.bool), ValueError, r"`mask` must have shape \(4,\); got \(\)"),
        (torch.ones(3, dtype=torch.bool), ValueError, r"`mask` must have shape \(4,\); got \(3,\)"),
    ],
    ids=["float", "integer", "column", "scalar", "short"],
)
def test_a_mask_of_the_wrong_kind_is_refused(case, k_dim, batch, mask, kind, message):
    parameters, target = draw(case, k_dim, batch)
    with pytest.raises(kind, match=message):
        case.call(parameters, target, mask=mask.to(torch.get_default_device()))
