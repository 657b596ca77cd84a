"""Standard normal distribution function that keeps its digits in the tails."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["normal_cdf"]


def normal_cdf(z: Tensor) -> Tensor:
    r"""Probability :math:`\Phi(z)`, with full relative precision for negative z.

    ``torch.special.ndtr`` and ``torch.distributions.Normal`` form :math:`(1 + \mathrm{erf})/2`,
    which is 0 below -6 in float32; the complementary error function does not cancel.
    """
    return 0.5 * torch.erfc(-math.sqrt(0.5) * z)
