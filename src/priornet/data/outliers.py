"""Single values that hold most of a column's variance, as typing errors do.

Mean and deviation of such a column say where that value is, and nothing of the others. A column
with only one or two other values is left alone: a rare 0/1 column holds all its variance in a few
rows, and is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLIPPED", "Dominant", "find_dominant"]

FloatArray = NDArray[np.float64]

CLIPPED = 100.0
"""Training clips a value that is so many times as far from the median as the farthest other one.

Wrong decimal points, units and filled-in codes are that far. Of 1000 columns of 500 lognormal
numbers with a logarithm of standard deviation 2 none is, of 1000 Cauchy columns some ten.
"""
_NAMED = 10.0  # times as far as the others: named, and kept
_MOST_SHARE = 0.5  # of the variance
_MOST_VALUES, _ROWS_PER_VALUE = 5, 100  # a handful: one, or one in a hundred rows, at most five
_LEAST_ROWS, _LEAST_DISTINCT = 10, 3  # fewer say nothing about what is far


@dataclass(frozen=True)
class Dominant:
    """A handful of values that hold most of a column's variance.

    Attributes:
        rows: Where they stand.
        values: The values.
        times: How many times as far from the median they are as any other value.
        share: Their share of the variance.
        low: Smallest of the other values.
        high: Largest of the other values.
    """

    rows: tuple[int, ...]
    values: tuple[float, ...]
    times: float
    share: float
    low: float
    high: float

    @property
    def is_clipped(self) -> bool:
        """Whether training takes the ends of the other values for them."""
        return self.times >= CLIPPED

    def taken(self, values: FloatArray) -> FloatArray:
        """Values as training takes them."""
        return np.clip(values, self.low, self.high) if self.is_clipped else values


def find_dominant(values: FloatArray) -> Dominant | None:
    """Find the values that hold most of a column's variance, far from all others.

    Args:
        values: Numbers, none of them missing.
    """
    n = len(values)
    if n < _LEAST_ROWS:
        return None
    most = min(_MOST_VALUES, max(1, n // _ROWS_PER_VALUE))
    middle = np.median(values)
    with np.errstate(over="ignore"):
        distances = np.abs(values - middle)
    farthest = np.sort(np.partition(distances, n - most - 1)[n - most - 1 :])[::-1]
    if not np.isfinite(farthest[0]) or farthest[-1] == 0:
        return None
    times = farthest[:-1] / farthest[1:]
    clipped = np.flatnonzero(times >= CLIPPED)
    last = int(clipped[-1] if len(clipped) else np.argmax(times))
    if times[last] < _NAMED:
        return None
    is_far = distances > farthest[last + 1]
    others = values[~is_far]
    if len(np.unique(others)) < _LEAST_DISTINCT:
        return None
    scaled = (values - middle) / farthest[0]
    squares = np.square(scaled - scaled.mean())
    share = float(squares[is_far].sum() / squares.sum())
    if share <= _MOST_SHARE:
        return None
    rows = np.flatnonzero(is_far)
    return Dominant(
        tuple(rows.tolist()),
        tuple(values[rows].tolist()),
        float(times[last]),
        share,
        float(others.min()),
        float(others.max()),
    )
