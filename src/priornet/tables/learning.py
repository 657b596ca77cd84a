"""What training learns: medians, scales and labels of a column, and outliers to clip.

An outlier is one of a few values that hold most of a column's variance, as typing errors do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from priornet.tables.encoding import RawColumn, check_not_infinite
from priornet.tables.values import Column, FloatArray, Numbers, Texts, parse_labels, shown

CLIPPED = 100.0
"""Training clips a value that is this many times as far from the median as the farthest other one.

Wrong decimal points, units and filled-in codes are that far. In a simulation of 500 rows, none of
1000 lognormal columns (log standard deviation 2) had such a value, of 1000 Cauchy columns some ten.
"""
_NAMED = 10.0  # as CLIPPED, for a warning only
_MOST_SHARE = 0.5  # of the variance
_MOST_VALUES, _ROWS_PER_VALUE = 5, 100  # one value, or one in a hundred rows, at most five
_MOST_CLIPPED, _ROWS_PER_CLIPPED = 3, 20  # if clipped: two values, or one in twenty rows
_LEAST_ROWS, _LEAST_DISTINCT = 10, 3  # rows, and distinct other values, to compare with


@dataclass(frozen=True)
class Dominant:
    """A few values that hold most of a column's variance.

    Attributes:
        rows: Their rows.
        values: The values.
        times: Their distance from the median, in that of the farthest other value.
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
        """Check if training clips them to the range of the other values."""
        return self.times >= CLIPPED

    def taken(self, values: FloatArray) -> FloatArray:
        """Clip values as training does."""
        return np.clip(values, self.low, self.high) if self.is_clipped else values


@dataclass(frozen=True)
class Learned:
    """A column as training learnt it, and more about its training values.

    Attributes:
        column: The column.
        is_missing: Mask of the rows without a value.
        n_rows: Number of rows that count.
        n_missing: Number of rows without a value among them.
        dominant: Values that hold most of the variance.
        labels: All labels, the most frequent first.
        is_declared: True for a column of a categorical type.
    """

    column: RawColumn
    is_missing: NDArray[np.bool_]
    n_rows: int
    n_missing: int
    dominant: Dominant | None = None
    labels: tuple[str, ...] = ()
    is_declared: bool = False


def learn_column(
    label: str | int, column: Column, weight: FloatArray | None, max_categories: int
) -> Learned:
    """Learn from one column.

    Args:
        label: Its name, or its number where it has none.
        column: Its values.
        weight: Weight per row; rows of weight 0 do not count at all.
        max_categories: Largest number of output columns for labels.
    """
    if isinstance(column, Numbers):
        parser = "date" if column.is_date else "number"
        return _learn_numbers(label, column.values, weight, parser)
    if column.labels and not column.is_declared:
        parsed = parse_labels(column.labels)
        if parsed is not None:
            return _learn_numbers(label, column.lookup(parsed[1], np.nan), weight, parsed[0])
    return _learn_labels(label, column, weight, max_categories)


def _learn_numbers(
    label: str | int, values: FloatArray, weight: FloatArray | None, parser: str
) -> Learned:
    check_not_infinite(label, values)
    is_missing = np.isnan(values)
    counts = np.ones_like(is_missing) if weight is None else weight > 0
    rows = np.flatnonzero(counts & ~is_missing)
    if not len(rows):
        raise _all_missing(label)
    values, weight = values[rows], None if weight is None else weight[rows]
    dominant = find_dominant(values)
    if dominant is not None:
        values = dominant.taken(values)
        dominant = replace(dominant, rows=tuple(int(rows[row]) for row in dominant.rows))
    mean, scale = _scaling(label, values, weight)
    low, high = float(values.min()), float(values.max())
    if parser == "number" and low >= 0 and high <= 1 and bool(np.isin(values, (0, 1)).all()):
        parser = "boolean"
    n_missing = int((is_missing & counts).sum())
    learned = RawColumn(
        label if isinstance(label, str) else None,
        "numeric",
        parser,  # pyright: ignore[reportArgumentType] (a key of the parsers)
        median=_median(values, weight),
        mean=mean,
        scale=scale,
        minimum=low,
        maximum=high,
        has_missing=n_missing > 0,
    )
    return Learned(learned, is_missing, int(counts.sum()), n_missing, dominant)


def _scaling(
    label: str | int, values: FloatArray, weight: FloatArray | None
) -> tuple[float, float]:
    """Return the mean and the standard deviation, or 1 if that is 0 but for rounding."""
    mean, scale = _moments(values, weight)
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(scale):
        raise ValueError(
            f"column {shown(label)}: its values reach from {low:g} to {high:g}, too far to be "
            "standardised; rescale it."
        )
    if low == high:
        return low, 1.0
    is_constant = scale <= 1e-14 * abs(mean) or math.isinf(1 / scale)  # but for rounding
    return mean, 1.0 if is_constant else scale


def _moments(values: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Compute mean and standard deviation.

    In extended precision where the machine has it: a row of weight 3 then equals three rows to the
    last bit of the result, in any order of the sum.
    """
    exact = np.longdouble
    if weight is None:
        mean = values.sum(dtype=exact) / len(values)
        square = np.square(values - mean, dtype=exact).sum() / len(values)
    else:
        mass = weight.astype(exact)
        mean = (mass * values).sum() / mass.sum()
        square = (mass * np.square(values - mean)).sum() / mass.sum()
    return float(mean), float(np.sqrt(square))


def _median(values: FloatArray, weight: FloatArray | None) -> float:
    """Compute the median of the rows repeated by their weights."""
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    half = reached[-1] / 2
    low = values[order[np.searchsorted(reached, half, side="left")]]
    high = values[order[min(np.searchsorted(reached, half, side="right"), len(order) - 1)]]
    return float(np.mean([low, high]))


def _learn_labels(
    label: str | int, column: Texts, weight: FloatArray | None, limit: int
) -> Learned:
    mass = np.bincount(column.codes + 1, weight, minlength=len(column.labels) + 1)
    rows = {text: m for text, m in zip(column.labels, mass[1:], strict=True) if m > 0}
    if not rows:
        raise _all_missing(label)
    kept = list(rows)
    if len(rows) > limit:
        kept = sorted(rows, key=lambda text: (-rows[text], text))[: limit - 1]
    learned = RawColumn(
        label if isinstance(label, str) else None,
        "categorical",
        has_missing=bool(mass[0] > 0),
        categories=tuple(sorted(kept)),
        has_other=len(rows) > limit,
    )
    codes = column.codes if weight is None else column.codes[weight > 0]
    counts = np.bincount(codes + 1, minlength=len(column.labels) + 1)  # missing values first
    order = np.argsort(-counts[1:], kind="stable")
    present = [column.labels[i] for i in order if counts[i + 1] > 0]
    return Learned(
        learned,
        column.codes < 0,
        len(codes),
        int(counts[0]),
        labels=tuple(present),
        is_declared=column.is_declared,
    )


def _all_missing(label: str | int) -> ValueError:
    return ValueError(f"column {shown(label)} has no value at all; remove it or fill it.")


def find_dominant(values: FloatArray) -> Dominant | None:
    """Find the few values that hold most of a column's variance, far from all others.

    A column with one other value is left alone: a rare 0/1 column holds all its variance in a few
    rows. So is a column with two, unless both are common and a single third value is far from them.

    Args:
        values: Numbers, none of them missing.
    """
    if len(values) < _LEAST_ROWS:
        return None
    middle = np.median(values)
    with np.errstate(over="ignore"):
        distances = np.abs(values - middle)
    gap = _find_gap(distances)
    if gap is None:
        return None
    nearest, times = gap
    is_far = distances > nearest
    others = values[~is_far]
    if len(np.unique(others)) < _LEAST_DISTINCT and not _is_third(values[is_far], others):
        return None
    scaled = (values - middle) / distances.max()
    squares = np.square(scaled - scaled.mean())
    share = float(squares[is_far].sum() / squares.sum())
    if share <= _MOST_SHARE:
        return None
    rows = np.flatnonzero(is_far).tolist()
    ends = float(others.min()), float(others.max())
    return Dominant(tuple(rows), tuple(values[rows].tolist()), times, share, *ends)


def _find_gap(distances: FloatArray) -> tuple[float, float] | None:
    """Find the gap below the few farthest values: where it begins, and the ratio of its ends."""
    n = len(distances)
    few = most = min(_MOST_VALUES, max(1, n // _ROWS_PER_VALUE))
    if n >= _ROWS_PER_CLIPPED:
        most = max(few, min(_MOST_CLIPPED, max(2, n // _ROWS_PER_CLIPPED)))
    farthest = np.sort(np.partition(distances, n - most - 1)[n - most - 1 :])[::-1]
    if not np.isfinite(farthest[0]) or farthest[few] == 0:
        return None
    farthest = farthest[farthest > 0]
    times = farthest[:-1] / farthest[1:]
    clipped = np.flatnonzero(times >= CLIPPED)
    last = int(clipped[-1] if len(clipped) else np.argmax(times[:few]))
    return None if times[last] < _NAMED else (float(farthest[last + 1]), float(times[last]))


def _is_third(far: FloatArray, others: FloatArray) -> bool:
    """Check if one value is far from two others that both occur again, as 10 000 is from 0, 1."""
    counts = np.unique(others, return_counts=True)[1]
    low, high = others.min(), others.max()
    apart = max(low - far[0], far[0] - high)
    is_common = len(counts) == 2 and bool(counts.min() >= 2)
    return len(far) == 1 and is_common and bool(apart >= CLIPPED * (high - low))
