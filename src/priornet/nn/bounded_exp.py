"""Maps from unconstrained outputs to positive parameters, bounded on both sides."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class BoundedExp:
    r"""Smooth map of the real line onto ``(low, high)``, an exponential in between.

    .. math:: \ln f(z) = \ln low + \ln(high/low)\;\sigma\!\left(\frac{4 (z -
    z_0)}{\ln(high/low)}\right)

    with :math:`z_0` such that :math:`f(0)` is ``initial``. Halfway (in logs) between the bounds
    one unit of z is one e-fold; towards a bound the slope fades, so a network that runs away
    saturates instead of overflowing, and for an ensemble of equal members the best value is
    ``high``, not infinity.

    Args:
        low: Lower bound, positive.
        high: Upper bound.
        initial: Value at z = 0, strictly between the bounds.
    """

    def __init__(self, low: float, high: float, initial: float) -> None:
        if not 0 < low < initial < high < math.inf:
            raise ValueError(
                f"bounds must satisfy 0 < low < initial < high; got low = {low:g}, initial = "
                f"{initial:g}, high = {high:g}."
            )
        self.low, self.high, self.initial = low, high, initial
        self._log_low, self._range = math.log(low), math.log(high / low)
        share = math.log(initial / low) / self._range
        self._shift = math.log(share / (1 - share))  # logit: f(0) = initial

    @property
    def constants(self) -> tuple[float, float, float, float]:
        """Return slope and shift of the logit, range and lower end of the logarithm."""
        return 4 / self._range, self._shift, self._range, self._log_low

    def log(self, z: Tensor) -> Tensor:
        """Compute the logarithm of the value."""
        return self._log_low + self._range * torch.sigmoid(z * (4 / self._range) + self._shift)

    def __call__(self, z: Tensor) -> Tensor:
        """Compute the value."""
        return torch.exp(self.log(z))


class BoundedExps:
    """Several such maps, a column each, in one pass: of small batches every operation costs time.

    Args:
        maps: One per column.
    """

    def __init__(self, *maps: BoundedExp) -> None:
        self.maps = maps
        self._cache: dict[tuple[torch.dtype, torch.device], tuple[Tensor, ...]] = {}

    def __call__(self, z: Tensor) -> Tensor:
        """Compute the values of columns, ``(*batch, n)`` both."""
        if torch.compiler.is_compiling():  # a compiler fuses by itself, and must not see the cache
            columns = zip(self.maps, z.unbind(-1), strict=True)
            return torch.stack([one(column) for one, column in columns], -1)
        slope, shift, log_range, log_low = self._constants(z)
        share = torch.sigmoid(torch.addcmul(shift, z, slope))
        return torch.exp(torch.addcmul(log_low, share, log_range))

    def apply_(self, z: Tensor) -> Tensor:
        """Write the values of columns over them, without a graph, and return the derivatives."""
        slope, shift, log_range, log_low = self._constants(z)
        share = torch.addcmul(shift, z, slope).sigmoid_()
        values = torch.exp(torch.addcmul(log_low, share, log_range), out=z)
        # The sigmoid's derivative times the value; slope times range is 4.
        return torch.ops.aten.sigmoid_backward(values, share).mul_(4)

    def _constants(self, z: Tensor) -> tuple[Tensor, ...]:
        key = (z.dtype, z.device)
        if key not in self._cache:
            rows = [one.constants for one in self.maps]
            self._cache[key] = tuple(z.new_tensor(row) for row in zip(*rows, strict=True))
        return self._cache[key]
