"""Gamma draws, reparameterised in their shape."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

__all__ = ["standard_gamma"]


def standard_gamma(shape: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws from Gamma(shape, 1), differentiable in the shape.

    ``torch.distributions.Gamma`` takes no generator; the function beneath it does. Its gradient is
    implicit reparameterisation, exact to about three digits. Like torch, a draw that underflows
    becomes the smallest positive number: zero would make a precision singular.
    """
    # Private, but the only gamma sampler that takes a generator.
    sampler = torch._standard_gamma  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
    draw: Tensor = sampler(shape.contiguous(), generator)
    return draw.clamp(min=torch.finfo(shape.dtype).tiny)
