r"""Units of the target: the map :math:`y' = a + b\,y` per coordinate, which beliefs follow."""

from __future__ import annotations

from torch import Size, Tensor

from priornet.checks import (
    broadcast_batch,
    check_finite,
    check_greater,
    common_tensors,
    values_visible,
)

__all__ = ["affine_map"]


def affine_map(
    shift: Tensor | float, scale: Tensor | float, loc: Tensor, batch: Size
) -> tuple[Tensor, Tensor, Size]:
    """Check a shift and a positive scale per coordinate against what they are to move.

    Args:
        shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
        scale: Positive, likewise.
        loc: A location of the distribution: its last axis, dtype and device count.
        batch: Batch shape of the distribution.

    Returns:
        Shift, scale, and the batch shape of the result.
    """
    _, shift, scale = common_tensors(**{"the distribution": loc, "shift": shift, "scale": scale})
    k_dim = loc.shape[-1]
    parts = {
        name: value.expand(k_dim) if value.dim() == 0 else value
        for name, value in (("shift", shift), ("scale", scale))
    }
    for name, value in parts.items():
        if value.shape[-1] != k_dim:
            raise ValueError(
                f"`{name}` must have shape ({k_dim},) or (*batch, {k_dim}), one value per "
                f"coordinate of the target; got {tuple(value.shape)}."
            )
    shapes = {name: value.shape[:-1] for name, value in parts.items()}
    common = broadcast_batch(**shapes, distribution=batch)
    shift, scale = parts.values()
    if values_visible(shift, scale):
        check_finite("shift", shift)
        check_greater("scale", scale, 0.0)
    return shift, scale, common
