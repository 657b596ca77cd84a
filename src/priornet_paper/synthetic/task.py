r"""The paper's synthetic task: a rising sine whose noise fades away from the origin.

.. math:: y \sim \mathcal N\left(\sin x + \tfrac{x}{10},\; \left(\tfrac{1}{|x|+1} +
0.01\right)^2\right)

Paper: section 4 and its appendix, arXiv:2006.11590v2. What the text writes as the second argument
of the normal is a standard deviation: that is what its figure shows.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def true_mean(x: Tensor) -> Tensor:
    """Mean of the target at ``x``, elementwise.

    Example:
        >>> true_mean(torch.tensor([0.0, torch.pi]))
        tensor([0.0000, 0.3142])
    """
    return torch.sin(x) + x / 10


def true_std(x: Tensor) -> Tensor:
    """Standard deviation of the target at ``x``, elementwise: 1.01 at the origin, then falling.

    Example:
        >>> true_std(torch.tensor([0.0, -9.0]))
        tensor([1.0100, 0.1100])
    """
    return 1 / (x.abs() + 1) + 0.01


def sample_inputs(n: int, low: float, high: float, generator: Generator) -> Tensor:
    """Inputs uniform on ``low <= |x| <= high``, on both sides of the origin.

    Args:
        n: Number of inputs.
        low: Smallest distance from the origin; 0 for an interval around it.
        high: Largest distance from the origin.
        generator: Source of randomness.

    Returns:
        Inputs, shape ``(n, 1)``.
    """
    if not 0 <= low < high:
        raise ValueError(
            f"distances must satisfy 0 <= low < high; got low = {low:g}, high = {high:g}."
        )
    signed = torch.empty(n, 1).uniform_(low - high, high - low, generator=generator)
    return signed + torch.where(signed < 0, -low, low)


def sample_targets(x: Tensor, generator: Generator) -> Tensor:
    """One noisy target for each input, of the same shape."""
    noise = torch.randn(x.shape, dtype=x.dtype, generator=generator)
    return true_mean(x) + true_std(x) * noise
