"""What changes while training goes on, as functions of the share of it that is done, 0 to 1."""

from __future__ import annotations

import math

__all__ = ["cosine", "linear_ramp", "temperature"]


def cosine(share: float, final: float = 0.0) -> float:
    """Factor of the learning rate: from 1 down to ``final`` along half a cosine.

    Example:
        >>> cosine(0.0), cosine(0.5), cosine(1.0)
        (1.0, 0.5, 0.0)
    """
    return final + (1 - final) * (1 + math.cos(math.pi * share)) / 2


def linear_ramp(share: float, until: float) -> float:
    """Factor of the out-of-domain weight: from 0 to 1 over the share ``until``, then 1.

    Example:
        >>> linear_ramp(0.1, until=0.2), linear_ramp(0.5, until=0.2)
        (0.5, 1.0)
    """
    return min(1.0, share / until) if until > 0 else 1.0


def temperature(share: float, start: float, hold: float = 0.2, decay: float = 0.6) -> float:
    """Temperature of a distillation: ``start`` for 20 %, linear to 1 over 60 %, then 1.

    Paper: the monocular depth experiments, arXiv:2006.11590v2.

    Example:
        >>> temperature(0.1, 10.0), temperature(0.5, 10.0), temperature(0.9, 10.0)
        (10.0, 5.5, 1.0)
    """
    done = min(max((share - hold) / decay, 0.0), 1.0)
    return start + (1.0 - start) * done
