"""Learning from training rows: medians, scales and labels of columns, units and outliers.

An outlier is one of a few values that hold most of a column's variance, as typing errors do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priornet.tables.column_summaries import (
    CLIPPED,
    LEAST_IDS,
    SHOWN,
    ColumnSummary,
    Dominant,
    find_lookalike,
    summarise,
)
from priornet.tables.encoding import RawColumn
from priornet.tables.values import (
    Column,
    FloatArray,
    Mask,
    Numbers,
    Parser,
    Texts,
    check_not_infinite,
    parse_labels,
    shown,
)

if TYPE_CHECKING:
    from priornet.special.maps import MonotoneMap

_NAMED = 10.0  # as CLIPPED, for a warning only
_MOST_SHARE = 0.5  # of the variance
_MOST_VALUES, _ROWS_PER_VALUE = 5, 100  # one value, or one in a hundred rows, at most five
_MOST_CLIPPED, _ROWS_PER_CLIPPED = 3, 20  # if clipped: two values, or one in twenty rows
_LEAST_ROWS, _LEAST_DISTINCT = 10, 3  # rows, and distinct other values, to compare with
# Squares, and sums of squares over many rows, stay far from the ends of double precision.
LARGEST, SMALLEST = 1e140, 1e-140
_ROUNDING = 4 * np.finfo(float).eps  # values closer than this, relative to their size, are equal

_MASS, _LEAST_MASS_ROWS = 0.2, 20  # share of the rows with one value of the target; rows
ALL_KEPT = 50
"""Labels of a column that all have an input of their own, however rare they are."""
_LEARNT_FROM = 3  # rows from which an effect of a label is learnt
_ID = re.compile(
    r"(?:.*[\W_])?[Ii][Dd]|.*[a-z0-9]I[Dd]|(?i:row[\W_]?(?:names?|numbers?|id))", re.DOTALL
)
_EXPECTED = 0.01  # share of rows with a label of their own from which new labels are ordinary


MaxLabels = int | Literal["auto"]


class Learned(NamedTuple):
    """A column as training learnt it, its summary, and the mask of rows without a value."""

    column: RawColumn
    summary: ColumnSummary
    is_missing: Mask
    is_id: bool = False
    """True if nearly every row has a value of its own, which stands for nothing else."""


def learn_column(
    label: str | int, column: Column, weight: FloatArray | None, max_labels: MaxLabels
) -> Learned:
    """Learn from one column.

    Args:
        label: Its name, or its number where it has none.
        column: Its values.
        weight: Weight per row; rows of weight 0 do not count at all.
        max_labels: Largest number of output columns for labels: see
            :class:`~priornet.tables.TablePreprocessor`.
    """
    if isinstance(column, Numbers):
        return _learn_numbers(label, column.values, weight, "date" if column.is_date else "number")
    parsed = None if column.is_declared else parse_labels(column.labels)
    if parsed is not None:
        parser, numbers = parsed
        return _learn_numbers(label, column.lookup(numbers, np.nan), weight, parser)
    return _learn_labels(label, column, weight, max_labels)


def _learn_numbers(
    label: str | int, values: FloatArray, weight: FloatArray | None, parser: Parser
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
        dominant = replace(dominant, rows=tuple(rows[list(dominant.rows)].tolist()))
    mean, scale = _scaling(label, values, weight)
    low, high = float(values.min()), float(values.max())
    if parser == "number" and low >= 0 and high <= 1 and bool(np.isin(values, (0, 1)).all()):
        parser = "boolean"
    n_rows = int(counts.sum())
    n_missing = n_rows - len(rows)
    column = RawColumn(
        label if isinstance(label, str) else None,
        "numeric",
        parser,
        median=_median(values, weight),
        mean=mean,
        scale=scale,
        minimum=low,
        maximum=high,
        has_missing=n_missing > 0,
    )
    summary = summarise(label, column)
    summary = replace(summary, n_missing=n_missing, n_rows=n_rows, dominant=dominant)
    is_id = parser == "number" and isinstance(label, str) and _are_id_numbers(label, values)
    return Learned(column, summary, is_missing, is_id)


def _are_id_numbers(name: str, values: FloatArray) -> bool:
    """Tell ids from other numbers: whole, all different, in a column that is named so.

    Without the name they may as well be times or amounts.
    """
    if len(values) < LEAST_IDS or _ID.fullmatch(name) is None:
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)


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
    label: str | int, column: Texts, weight: FloatArray | None, max_labels: MaxLabels
) -> Learned:
    codes = column.codes if weight is None else column.codes[weight > 0]
    counts = np.bincount(codes + 1, minlength=len(column.labels) + 1)  # missing values first
    order = np.argsort(-counts[1:], kind="stable")
    labels = [column.labels[i] for i in order if counts[i + 1] > 0]
    if not labels:
        raise _all_missing(label)
    masses = np.bincount(column.codes + 1, weight, len(column.labels) + 1)[1:].astype(np.float64)
    kept, pooled = _pool(column.labels, counts[1:], masses, max_labels)
    n_missing = int(counts[0])
    n_present = len(codes) - n_missing
    n_single = int((np.maximum(counts[1:], masses)[counts[1:] > 0] <= 1).sum())
    learned = RawColumn(
        label if isinstance(label, str) else None,
        "categorical",
        has_missing=n_missing > 0,
        categories=tuple(sorted(kept)),
        has_other=len(pooled) > 0,
        pooled=tuple(sorted(pooled)) if n_single < _EXPECTED * n_present else (),
    )
    summary = replace(
        summarise(label, learned),
        n_missing=n_missing,
        n_rows=len(codes),
        labels=tuple(labels[:SHOWN]),
        n_labels=len(labels),
        n_pooled=len(pooled),
        lookalike=None if column.is_declared else find_lookalike(labels),
    )
    return Learned(learned, summary, column.codes < 0, summary.hardly_repeats)


def _pool(
    labels: Sequence[str],
    counts: NDArray[np.int64],
    masses: FloatArray,
    max_labels: MaxLabels,
) -> tuple[list[str], list[str]]:
    """Choose the labels with an output column of their own, and those that share one.

    Labels without rows of positive weight are neither.
    """
    found = sorted(np.flatnonzero(counts).tolist(), key=lambda i: (-masses[i], labels[i]))
    n_kept = len(found)
    if max_labels == "auto" and n_kept > ALL_KEPT:
        n_learnt = int((np.maximum(counts, masses) >= _LEARNT_FROM).sum())
        n_kept = max(n_learnt, ALL_KEPT - 1)
    elif max_labels != "auto" and n_kept > max_labels:
        n_kept = max_labels - 1
    names = [labels[i] for i in found]
    return names[:n_kept], names[n_kept:]


def fair_limit(widths: Sequence[int], most: int) -> int:
    """Find the largest limit per column with which all columns together have ``most`` outputs.

    Args:
        widths: Outputs of each column.
        most: Outputs of all; the limit is at least :data:`ALL_KEPT` whatever it is.

    Example:
        >>> fair_limit([400, 100, 20], 300)
        180
    """
    limits = range(max(widths, default=0), ALL_KEPT, -1)
    return next((own for own in limits if np.minimum(widths, own).sum() <= most), ALL_KEPT)


def _all_missing(label: str | int) -> ValueError:
    return ValueError(f"column {shown(label)} has no value at all; remove it or fill it.")


# -- outliers --------------------------------------------------------------------------------------


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


# -- targets ---------------------------------------------------------------------------------------


class Scaling(NamedTuple):
    """Mean and standard deviation of each target column."""

    shift: FloatArray
    scale: FloatArray


@dataclass(frozen=True)
class TargetColumns:
    """The targets of a model: names, shape and scaling."""

    names: tuple[str, ...]
    is_vector: bool
    """True if the targets came as ``(N,)``; predictions then do too."""
    scaling: Scaling
    """Shift and scale of the targets, or of the mapped ones."""
    maps: tuple[MonotoneMap, ...] | None = None
    """Maps to the scale on which networks learn; None for targets as they are."""

    def mapped(self, y: FloatArray) -> FloatArray:
        """Map targets ``(N, K)`` to the scale that :attr:`scaling` standardises."""
        if self.maps is None:
            return y
        from priornet.tables.target_maps import map_targets

        return map_targets(y, self.maps, self.names)


def check_magnitude(y: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse finite targets ``(N, K)`` whose variance is no number that a computer can hold."""
    if not y.size:
        return
    for name, largest in zip(names, np.abs(y).max(axis=0), strict=True):
        if largest > LARGEST:
            raise ValueError(
                f"the target {name!r} is too large ({largest:.3g}; at most {LARGEST:g}), for its "
                "variance would be infinite: divide it by a power of ten, and fit again."
            )


def clip_targets(y: FloatArray, train: NDArray[np.int64]) -> FloatArray:
    """Clip outliers among the training targets, of ``(N, K)``; other targets stay.

    A network follows one target of 10 000 among numbers around 1 until it predicts no other.

    Args:
        y: Targets of all rows.
        train: The rows to learn from.
    """
    clipped = y
    for k in range(y.shape[1]):
        found = find_dominant(y[train, k])
        if found is not None and found.is_clipped:
            clipped = y.copy() if clipped is y else clipped
            clipped[train, k] = found.taken(y[train, k])
    return clipped


def target_notes(y: FloatArray, names: Sequence[str], row: Callable[[int], object]) -> list[str]:
    """List the targets ``(N, K)`` with outliers, and those that often have one and the same value.

    Args:
        y: The targets.
        names: Their names.
        row: Gives the user's name for a row.
    """
    notes: list[str] = []
    for name, values in zip(names, y.T, strict=True):
        found = find_dominant(values)
        if found is not None:
            notes.append(found.notice(f"the target {name!r}", row))
        mass = _mass_note(name, values)
        notes += [] if mass is None else [mass]
    return notes


def _mass_note(name: str, values: FloatArray) -> str | None:
    """Say that a density is the wrong question for a target that often has one value."""
    is_constant = np.ptp(values) <= _ROUNDING * np.abs(values).max()
    if len(values) < _LEAST_MASS_ROWS or is_constant:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    share = counts.max() / len(values)
    if share <= _MASS:
        return None
    value = f"{distinct[counts.argmax()]:g}"
    return (
        f"the target {name!r} is {value} in {share:.0%} of the rows: a density, which this model "
        "learns, has no room for a value of such probability. The model is fitted all the same; "
        f"its intervals and likelihood hold only roughly. Predict with a classifier if {name!r} is "
        f"{value}, and fit this model to the other rows."
    )


def target_scaling(y: FloatArray, weight: FloatArray | None, names: tuple[str, ...]) -> Scaling:
    """Compute the scaling of training targets ``(N, K)``; refuse a constant target."""
    shift = np.average(y, axis=0, weights=weight)
    scale = np.sqrt(np.average((y - shift) ** 2, axis=0, weights=weight))
    constant = np.ptp(y, axis=0) <= _ROUNDING * np.abs(y).max(axis=0)
    far = ~constant & (scale <= 1e-12 * np.abs(shift))
    if far.any():  # the sum of such values is rounded by more than they differ: add differences
        differences = y - y[0]
        mean = np.average(differences, axis=0, weights=weight)
        spread = np.sqrt(np.average((differences - mean) ** 2, axis=0, weights=weight))
        shift, scale = np.where(far, y[0] + mean, shift), np.where(far, spread, scale)
    apart = np.abs(y - shift).max(axis=0)
    too_close = (apart < SMALLEST) & ~constant  # their squares vanish
    if too_close.any():
        k = int(np.argmax(too_close))
        raise ValueError(
            f"the values of the target {names[k]!r} are {apart[k]:.3g} from their mean at most (at "
            f"least {SMALLEST:g} is needed), and their variance would be zero: multiply it by a "
            "power of ten, and fit again."
        )
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"the target {names[k]!r} is constant ({y[0, k]:g} in all {len(y)} rows): there is "
            "nothing to learn."
        )
    return Scaling(shift, scale)
