"""What every loss shares: target checks and masks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import check_batch, check_mask, check_same_kind, values_visible

__all__ = ["masked", "prepare_target"]


def prepare_target(
    distribution: Distribution, like: Tensor, y: Tensor, mask: Tensor | None
) -> Tensor:
    """Check a target against its prediction; hide masked entries so that no nan can leak.

    Values are looked at only on the CPU and outside of transforms: on an accelerator it would force
    a synchronisation in every step.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"`y` must be a tensor; got {type(y).__name__}.")
    if y.dtype in (torch.bfloat16, torch.float16):
        y = y.float()
    check_same_kind("y", y, "the prediction", like)
    check_batch("y", y, distribution.batch_shape, distribution.event_shape)
    if mask is not None:
        check_mask(mask, distribution.batch_shape)
        y = torch.where(mask.unsqueeze(-1), y, torch.zeros_like(y))
    if y.device.type == "cpu" and values_visible(y, like):
        finite = torch.isfinite(y)
        if not bool(finite.all()):
            count = int((~finite).sum())
            raise ValueError(
                f"`y` must be finite; {count} of {y.numel()} values are nan or inf. Pass `mask` "
                "(true where the target counts) for missing targets."
            )
    return y


def masked(loss: Tensor, mask: Tensor | None) -> Tensor:
    """Zero where masked, with zero gradient even if the loss there is not finite."""
    if mask is None:
        return loss
    return torch.where(mask, loss, torch.zeros_like(loss))
