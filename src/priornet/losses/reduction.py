"""What every loss shares: target checks and masks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import check_batch, check_mask, check_same_kind, lifted, values_visible

__all__ = ["hidden", "masked", "prepare_target"]


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
    if y.device.type == "cpu" and values_visible(y, like):
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
