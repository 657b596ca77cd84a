"""Schedules: functions of the share of training that is done, 0 to 1.

Schedules of losses take the share as a number or as a tensor, which a CUDA graph can change.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor


def cosine(share: float, final: float = 0.0) -> float:
    """Compute the factor of the learning rate: from 1 to ``final`` along half a cosine.

    Example:
        >>> cosine(0.0), cosine(0.5), cosine(1.0)
        (1.0, 0.5, 0.0)
    """
    return final + (1 - final) * (1 + math.cos(math.pi * share)) / 2


Share = TypeVar("Share", float, Tensor)


def _clipped(value: Share) -> Share:
    """Clip to [0, 1]."""
    if isinstance(value, Tensor):
        return torch.clamp(value, 0.0, 1.0)
    return min(max(value, 0.0), 1.0)


def linear_ramp(share: Share, until: float) -> Share | float:
    """Compute the factor of the out-of-domain weight: from 0 to 1 until a share, then 1.

    Example:
        >>> linear_ramp(0.1, until=0.2), linear_ramp(0.5, until=0.2)
        (0.5, 1.0)
    """
    return _clipped(share / until) if until > 0 else 1.0


def temperature(
    share: Share, start: float | Tensor, hold: float = 0.2, decay: float = 0.6
) -> Share | Tensor:
    """Compute the temperature of a distillation: ``start`` for 20 %, to 1 over 60 %, then 1.

    Paper: the monocular depth experiments, arXiv:2006.11590v2.

    Example:
        >>> temperature(0.1, 10.0), temperature(0.5, 10.0), temperature(0.9, 10.0)
        (10.0, 5.5, 1.0)
    """
    return start + (1.0 - start) * _clipped((share - hold) / decay)
