"""Batch norms written into the convolutions before them."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["fold_norm"]


@torch.no_grad()
def fold_norm(parent: nn.Module, conv_name: str, norm_name: str) -> None:
    """Let a convolution without bias do what the norm behind it does with its statistics.

    Nothing stays in the norm's place; where nothing is there already, nothing is done.
    """
    conv, norm = getattr(parent, conv_name), getattr(parent, norm_name)
    if not isinstance(norm, nn.BatchNorm2d):
        return
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    conv.weight.mul_(scale.reshape(-1, 1, 1, 1))
    shift = norm.bias - norm.running_mean * scale
    conv.bias = nn.Parameter(shift, requires_grad=norm.bias.requires_grad)
    setattr(parent, norm_name, nn.Identity())
