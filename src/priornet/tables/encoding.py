"""Raw columns as training learnt them: numbers to standardise, or labels to encode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from priornet.tables.column_summaries import ColumnSummary, find_dominant, find_lookalike
from priornet.tables.values import (
    CellError,
    Column,
    Numbers,
    Texts,
    parse_labels,
    shown,
)

__all__ = [
    "RawColumn",
    "check_not_infinite",
    "expect",
    "learn_column",
    "read_column",
]

FloatArray = NDArray[np.float64]
Parser = Literal["number", "comma", "boolean", "date"]
Role = Literal["value", "category", "missing"]

_LARGEST = float(np.finfo(np.float64).max)
_ROUNDING = 1e-9  # relative; a constant may have other last digits
_EXAMPLES = 5  # labels of a summary


@dataclass(frozen=True)
class RawColumn:
    """One raw column as training knew it; numbers that training clipped do not count.

    Attributes:
        name: Its name, or None for a column of an array.
        kind: Numbers, or labels.
        parser: How text becomes numbers: ``"number"``, ``"comma"`` (a decimal comma), ``"boolean"``
            (true and false; any column of nothing but 0 and 1) or ``"date"`` (days since 1970,
            moments without a zone as UTC; any column of dates).
        median: Replaces a missing number.
        mean: Subtracted from numbers.
        scale: Standard deviation that numbers are divided by; 1 for a constant column.
        minimum: Smallest number in training.
        maximum: Largest number in training.
        has_missing: True if training had missing values; then an indicator column follows.
        categories: Labels with an output column of their own.
        has_other: True if rare labels share one more output column, which unknown labels join.
    """

    name: str | None
    kind: Literal["numeric", "categorical"]
    parser: Parser = "number"
    median: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    minimum: float = 0.0
    maximum: float = 0.0
    has_missing: bool = False
    categories: tuple[str, ...] = ()
    has_other: bool = False

    @property
    def is_plain(self) -> bool:
        """Check that it holds just numbers: no labels, no dates, no decimal commas."""
        return self.kind == "numeric" and self.parser in ("number", "boolean")

    @property
    def is_whole(self) -> bool:
        """Check if training had no numbers but 0 and 1."""
        return self.kind == "numeric" and self.parser == "boolean"

    @property
    def reach(self) -> tuple[float, float]:
        """Return the limits of numbers: the training range, widened by its width on each side.

        A column of nothing but 0 and 1 (``is_whole``) is not widened.
        """
        if self.kind == "categorical":
            return -math.inf, math.inf
        low, high = self.minimum, self.maximum
        if self.is_whole:
            return low, high
        width = max(high - low, _ROUNDING * max(abs(low), abs(high)))
        return low - width, high + width

    def find_far(self, values: FloatArray) -> NDArray[np.bool_]:
        """Find the numbers outside of :attr:`reach`; nan is never one."""
        low, high = self.reach
        is_far = (values < low) | (values > high)
        return is_far | (values > np.floor(values)) if self.is_whole else is_far

    @property
    def width(self) -> int:
        """Count its output columns."""
        return len(self.outputs(""))

    def outputs(self, name: str) -> list[tuple[str, Role]]:
        """Name its output columns, each with its role."""
        found: list[tuple[str, Role]] = [(name, "value")]
        if self.kind == "categorical":
            labels = (*self.categories, *(["(other)"] if self.has_other else []))
            found = [(f"{name} = {label}", "category") for label in labels]
        return [*found, (f"{name} is missing", "missing")] if self.has_missing else found

    def summary(self, label: str | int) -> ColumnSummary:
        """Describe the column without counts; ``label`` is its name or number."""
        n_missing = None if self.has_missing else 0
        if self.kind == "numeric":
            kind = self.parser if self.parser in ("boolean", "date") else "number"
            return ColumnSummary(label, kind, n_missing, self.minimum, self.maximum)
        return ColumnSummary(
            label,
            "label",
            n_missing,
            labels=self.categories[:_EXAMPLES],
            n_labels=len(self.categories),
            n_pooled=None if self.has_other else 0,
        )


def learn_column(
    label: str | int, column: Column, weight: FloatArray | None, max_categories: int
) -> tuple[RawColumn, ColumnSummary, NDArray[np.bool_]]:
    """Learn from one column, summarise it, and mark its missing values.

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
) -> tuple[RawColumn, ColumnSummary, NDArray[np.bool_]]:
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
    n_rows = int(counts.sum())
    summary = learned.summary(label)
    summary = replace(summary, n_missing=n_missing, n_rows=n_rows, dominant=dominant)
    return learned, summary, is_missing


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
) -> tuple[RawColumn, ColumnSummary, NDArray[np.bool_]]:
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
    summary = replace(
        learned.summary(label),
        n_missing=int(counts[0]),
        labels=tuple(present[:_EXAMPLES]),
        n_labels=len(present),
        n_pooled=len(rows) - len(kept),
        n_rows=len(codes),
        lookalike=None if column.is_declared else find_lookalike(present),
    )
    return learned, summary, column.codes < 0


def check_not_infinite(name: str | int, values: FloatArray) -> None:
    """Refuse the first infinite value."""
    found = np.isinf(values)
    if found.any():
        row = int(np.argmax(found))
        raise CellError(
            name, row, f"the value is {values[row]:g} (infinity); give a number, or leave it empty."
        )


def _all_missing(label: str | int) -> ValueError:
    return ValueError(f"column {shown(label)} has no value at all; remove it or fill it.")


def expect(is_true: bool, otherwise: str) -> None:
    """Refuse a damaged state of a saved model."""
    if not is_true:
        raise ValueError(f"the saved preprocessing is damaged: {otherwise}.")


def read_column(record: Any, index: int, has_name: bool) -> RawColumn:
    """Read one column of the saved state, and check every field."""
    place = f"column {index}"
    expect(isinstance(record, Mapping), f"{place} is not an object")
    wanted = {f.name for f in fields(RawColumn)}
    expect(set(record) == wanted, f"{place} must have exactly the fields {sorted(wanted)}")
    name = record["name"]
    expect(isinstance(name, str) if has_name else name is None, f"{place} has the name {name!r}")
    for key, choices in (
        ("kind", ("numeric", "categorical")),
        ("parser", get_args(Parser)),
        ("has_missing", (True, False)),
        ("has_other", (True, False)),
    ):
        value = record[key]
        is_known = any(value is c if isinstance(c, bool) else value == c for c in choices)
        expect(is_known, f'{place}: "{key}" is {value!r}')
    for key in ("median", "mean", "scale", "minimum", "maximum"):
        value = record[key]
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Compared, not converted: JSON may hold whole numbers that no float can.
        expect(is_number and abs(value) <= _LARGEST, f'{place}: "{key}" is {str(value)[:40]}')
    scale, labels = record["scale"], record["categories"]
    expect(scale > 0 and math.isfinite(1 / scale), f'{place}: "scale" is {scale!r}')
    is_list = isinstance(labels, list) and all(isinstance(text, str) for text in labels)
    is_distinct = is_list and len(set(labels)) == len(labels)
    expect(is_distinct, f'{place}: "categories" must be distinct texts')
    is_labelled = record["kind"] == "categorical"
    n_found = f"{place} is {record['kind']} with {len(labels)} categories"
    expect(bool(labels) == is_labelled, n_found)
    expect(is_labelled or not record["has_other"], f'{place} is numeric with "has_other"')
    values: dict[str, Any] = {**record, "categories": tuple(labels)}
    return RawColumn(**values)
