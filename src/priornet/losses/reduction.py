"""What every loss shares: checks of targets and weights, and masks."""

from __future__ import annotations

import math

import torch
from torch import Size, Tensor
from torch.distributions import Distribution

from priornet.checks import (
    check_batch,
    check_mask,
    check_not_negative,
    check_same_kind,
    check_setting,
    check_values,
    lifted,
    values_visible,
)

__all__ = ["check_weight", "hidden", "masked", "prepare_target"]


def check_weight(name: str, value: Tensor | float, batch: Size, like: Tensor) -> None:
    """A weight of the loss, zero or more: a number, or a tensor that broadcasts with the batch.

    The values of a tensor are looked at on the CPU only, like those of targets.
    """
    if not isinstance(value, Tensor):
        check_not_negative(name, value)
        return
    check_setting(name, value, batch, like)
    if value.device.type == "cpu" and values_visible(value):
        check_values(name, value, (value >= 0) & torch.isfinite(value), "finite and not negative")


def prepare_target(
    distribution: Distribution, like: Tensor, y: Tensor, mask: Tensor | None
) -> Tensor:
    """Check a target against its prediction; hide masked entries so that no nan can leak.

    Values are looked at only on the CPU and outside of transforms: on an accelerator it would force
    a synchronisation in every step.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"`y` must be a tensor; got {type(y).__name__}.")
    y = lifted(y)
    check_same_kind("y", y, "the prediction", like)
    check_batch("y", y, distribution.batch_shape, distribution.event_shape)
    if mask is not None:
        check_mask(mask, distribution.batch_shape)
        y = torch.where(mask.unsqueeze(-1), y, torch.zeros_like(y))
    # A sum is finite only if every value is (or it overflowed): one cheap look is mostly enough.
    if y.device.type == "cpu" and values_visible(y, like) and not math.isfinite(y.sum().item()):
        finite = torch.isfinite(y)
        if not bool(finite.all()):
            count = int((~finite).sum())
            raise ValueError(
                f"`y` must be finite; {count} of {y.numel()} values are nan or inf. Pass `mask` "
                "(true where the target counts) for missing targets."
            )
    return y


def hidden(mask: Tensor | None, **parameters: Tensor) -> dict[str, Tensor]:
    """Teacher parameters with harmless numbers where masked: a teacher may be nan there.

    Masking the loss alone is not enough: the gradient of what was masked would be 0 times nan.
    Factors become the identity, beliefs and excesses 1, everything else 0.
    """
    if mask is None:
        return parameters
    return {name: _hide(name, value, mask) for name, value in parameters.items()}


def _hide(name: str, value: Tensor, mask: Tensor) -> Tensor:
    mask = mask.reshape(mask.shape + (1,) * (value.dim() - mask.dim()))
    if name == "precision_tril":
        neutral = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
    else:
        neutral = value.new_tensor(1.0 if name in ("belief", "excess") else 0.0)
    return torch.where(mask, value, neutral)


def masked(loss: Tensor, mask: Tensor | None) -> Tensor:
    """Zero where masked, with zero gradient wherever the loss there is finite."""
    if mask is None:
        return loss
    return torch.where(mask, loss, torch.zeros_like(loss))
