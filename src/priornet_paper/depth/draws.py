"""Random numbers per image, drawn on the CPU: they are the same on every device."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

__all__ = ["draw", "matrices"]


def draw(n: int, low: float, high: float, generator: Generator, like: Tensor) -> Tensor:
    """A number per image, uniform, ``(n, 1, 1, 1)``."""
    drawn = low + (high - low) * torch.rand(n, generator=generator)
    return drawn.to(like.device, non_blocking=True).reshape(n, 1, 1, 1)


def matrices(*rows: tuple[Tensor, ...]) -> Tensor:
    """For ``affine_grid``, ``(B, 2, 3)``, from numbers per image, ``(B, 1, 1, 1)`` each."""
    return torch.cat([torch.cat(row, -1) for row in rows], -2).squeeze(1)
