"""Where the graph of a loss begins, and the way back from there to the outputs of a network."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from priornet.losses._kernels.autograd import kernel_gradient

__all__ = ["Leaf"]


class Leaf(NamedTuple):
    """A prediction in training, and what it is made of.

    A graph may begin at the outputs of a network. Where a head knows the derivatives of its maps,
    it begins behind them; and a loss that comes from a kernel needs none at all. On small batches
    that counts: autograd's engine takes longer than the arithmetic.
    """

    prediction: Any
    parameters: Tensor
    """``(*batch, n)``, a leaf: the outputs themselves, or the parameters that became of them."""
    slope: Tensor | None = None
    """Derivative of all parameters but the first, the mean; None where they are the outputs."""

    def gradient(self, loss: Tensor, weight: Tensor) -> Tensor:
        """Compute the gradient in the outputs of the weighted sum of a loss, ``(*batch, n)``.

        Args:
            loss: Of the prediction, ``(*batch,)``.
            weight: Of each element, ``(*batch,)``.
        """
        known = None if self.slope is None else kernel_gradient(loss, self.prediction)
        if known is not None:
            gradient = known.mul_(weight.unsqueeze(-1))
        else:
            torch.autograd.backward(loss, weight)
            gradient = self.parameters.grad
            assert gradient is not None
        if self.slope is not None:
            gradient[..., 1:].mul_(self.slope)
        return gradient
