"""Single values that hold most of a column's variance, as typing errors do.

Mean and deviation of such a column say where that value is, and nothing of the others. A column
with only one other value is left alone, for a rare 0/1 column holds all its variance in a few rows,
and is right. So is one with two, unless both are common and a single third is far from them.
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
_MOST_CLIPPED, _ROWS_PER_CLIPPED = 3, 20  # of values so far away two, or one in twenty rows
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
    few = min(_MOST_VALUES, max(1, n // _ROWS_PER_VALUE))
    most = few if n < _ROWS_PER_CLIPPED else max(few, _clipped_at_most(n))
    middle = np.median(values)
    with np.errstate(over="ignore"):
        distances = np.abs(values - middle)
    farthest = np.sort(np.partition(distances, n - most - 1)[n - most - 1 :])[::-1]
    if not np.isfinite(farthest[0]) or farthest[few] == 0:
        return None
    farthest = farthest[farthest > 0]
    times = farthest[:-1] / farthest[1:]
    clipped = np.flatnonzero(times >= CLIPPED)
    last = int(clipped[-1] if len(clipped) else np.argmax(times[:few]))
    if times[last] < _NAMED:
        return None
    is_far = distances > farthest[last + 1]
    others = values[~is_far]
    if len(np.unique(others)) < _LEAST_DISTINCT and not _is_third(values[is_far], others):
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


def _clipped_at_most(n: int) -> int:
    """How many values may be clipped of a small column."""
    return min(_MOST_CLIPPED, max(2, n // _ROWS_PER_CLIPPED))


def _is_third(far: FloatArray, others: FloatArray) -> bool:
    """Whether one value is far from two others that both occur again, as 10 000 is from 0 and 1."""
    counts = np.unique(others, return_counts=True)[1]
    low, high = others.min(), others.max()
    apart = max(low - far[0], far[0] - high)
    is_common = len(counts) == 2 and bool(counts.min() >= 2)
    return len(far) == 1 and is_common and bool(apart >= CLIPPED * (high - low))
