"""What training learns about one raw column, and how that is kept as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priornet.tables.column_summaries import ColumnSummary, label_summary, number_summary
from priornet.tables.columns import CellError, Column, Numbers, Texts, shown
from priornet.tables.outliers import find_dominant
from priornet.tables.spelling import parse_labels

__all__ = ["RawColumn", "check_not_infinite", "expect", "infinite", "learn_column", "read_column"]

FloatArray = NDArray[np.float64]
_LARGEST = float(np.finfo(np.float64).max)
_ROUNDING = 1e-9  # a constant may come in other digits
Parser = Literal["number", "comma", "boolean", "date"]


@dataclass(frozen=True)
class RawColumn:
    """What training learnt about one raw column.

    Attributes:
        name: Its name, or None for a column of an array.
        kind: Numbers, or labels.
        parser: How text becomes numbers: ``"number"``, ``"comma"`` (a decimal comma), ``"boolean"``
            (a column of nothing but 0 and 1, however it was written: true and false are those) or
            ``"date"`` (also for real dates: days since 1970, moments without a zone as UTC).
        median: What a missing number becomes.
        mean: Subtracted from numbers.
        scale: Standard deviation that numbers are divided by; 1 for a constant column.
        minimum: Smallest number in training, without those that were clipped
            (:mod:`priornet.tables.outliers`); the same goes for mean and scale.
        maximum: Largest one.
        has_missing: Whether training had holes; then an indicator column follows.
        categories: Labels with a column of their own.
        has_other: Whether rarer labels share one more column. Unknown labels go there too: to such
            a column one more rare label is nothing strange.
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
        """Whether it holds just numbers: no labels, no dates, no decimal commas."""
        return self.kind == "numeric" and self.parser in ("number", "boolean")

    @property
    def reach(self) -> tuple[float, float]:
        """How far numbers may go: from the training range as far again as that range is wide.

        A column of nothing but 0 and 1 has no farther values, nor any between: ``is_whole``.
        """
        if self.kind == "categorical":
            return -math.inf, math.inf
        low, high = self.minimum, self.maximum
        if self.is_whole:
            return low, high
        width = max(high - low, _ROUNDING * max(abs(low), abs(high)))
        return low - width, high + width

    @property
    def is_whole(self) -> bool:
        """Whether only whole numbers are within reach."""
        return self.kind == "numeric" and self.parser == "boolean"

    @property
    def width(self) -> int:
        """How many output columns it makes."""
        own = 1 if self.kind == "numeric" else len(self.categories) + self.has_other
        return own + self.has_missing

    def summary(self, index: int) -> ColumnSummary:
        """Summarise what is kept of the column, which are no counts.

        Args:
            index: Its place, which stands for a name where it has none.
        """
        label = index if self.name is None else self.name
        n_missing = None if self.has_missing else 0
        if self.kind == "numeric":
            return number_summary(label, self.parser, self.minimum, self.maximum, None, n_missing)
        return ColumnSummary(
            label,
            "label",
            n_missing=n_missing,
            labels=self.categories[:5],
            n_labels=len(self.categories),
            n_pooled=None if self.has_other else 0,
        )


def learn_column(
    name: str | None,
    label: str | int,
    column: Column,
    weight: FloatArray | None,
    max_categories: int,
) -> tuple[RawColumn, ColumnSummary]:
    """Learn from one column, and summarise it; ``label`` is what messages call it.

    Args:
        name: Its name, if it has one.
        label: Name or number.
        column: Its values.
        weight: Weight per row; rows of weight 0 do not count at all.
        max_categories: Most columns that labels may make.
    """
    if isinstance(column, Texts) and column.labels and not column.is_declared:
        parsed = parse_labels(column.labels)
        if parsed is not None:
            parser, numbers = parsed
            values = np.append(numbers, np.nan)[column.codes]  # code -1 reads the nan
            return _learn_numbers(name, label, values, weight, parser)
    if isinstance(column, Numbers):
        parser = "date" if column.is_date else "number"
        return _learn_numbers(name, label, column.values, weight, parser)
    return _learn_labels(name, label, column, weight, max_categories)


def _learn_numbers(
    name: str | None,
    label: str | int,
    values: FloatArray,
    weight: FloatArray | None,
    parser: str,
) -> tuple[RawColumn, ColumnSummary]:
    check_not_infinite(label, values)
    present = ~np.isnan(values)
    counts = np.ones_like(present) if weight is None else weight > 0
    seen = present & counts
    if not seen.any():
        raise _all_missing(label)
    values, weight = values[seen], None if weight is None else weight[seen]
    dominant = find_dominant(values)
    if dominant is not None:
        values = dominant.taken(values)
        places = np.flatnonzero(seen)
        dominant = replace(dominant, rows=tuple(int(places[row]) for row in dominant.rows))
    mean, scale = _moments(values, weight)
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(scale):
        raise ValueError(
            f"column {shown(label)}: its values reach from {low:g} to {high:g}, too far to be "
            "standardised; rescale it."
        )
    if parser == "number" and low >= 0 and high <= 1 and bool(np.isin(values, (0, 1)).all()):
        parser = "boolean"
    if low == high:
        mean, scale = low, 1.0
    elif scale <= 1e-14 * abs(mean) or math.isinf(1 / scale):  # constant but for rounding
        scale = 1.0
    n_missing = int((~present & counts).sum())
    learned = RawColumn(
        name,
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
    return learned, number_summary(label, parser, low, high, n_rows, n_missing, dominant)


def _moments(values: FloatArray, weight: FloatArray | None) -> tuple[float, float]:
    """Mean and standard deviation.

    Extended precision where the machine has it: a row of weight 3 then equals three rows to the
    last bit of the result, in whatever order they are summed.
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
    """The median of the rows repeated by their weights."""
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    half = reached[-1] / 2
    low = values[order[np.searchsorted(reached, half, side="left")]]
    high = values[order[min(np.searchsorted(reached, half, side="right"), len(order) - 1)]]
    return float(np.mean([low, high]))


def _learn_labels(
    name: str | None, label: str | int, column: Texts, weight: FloatArray | None, limit: int
) -> tuple[RawColumn, ColumnSummary]:
    mass = np.bincount(column.codes + 1, weight, minlength=len(column.labels) + 1)
    rows = {column.labels[i]: mass[i + 1] for i in range(len(column.labels)) if mass[i + 1] > 0}
    if not rows:
        raise _all_missing(label)
    has_other = len(rows) > limit
    if has_other:
        kept = sorted(rows, key=lambda text: (-rows[text], text))[: limit - 1]
    else:
        kept = list(rows)
    learned = RawColumn(
        name,
        "categorical",
        has_missing=bool(mass[0] > 0),
        categories=tuple(sorted(kept)),
        has_other=has_other,
    )
    codes = column.codes if weight is None else column.codes[weight > 0]
    counts = np.bincount(codes + 1, minlength=len(column.labels) + 1)
    return learned, label_summary(label, column, len(rows) - len(kept), counts)


def check_not_infinite(name: str | int, values: FloatArray) -> None:
    """Refuse the first infinite value."""
    found = np.isinf(values)
    if found.any():
        row = int(np.argmax(found))
        raise infinite(name, row, values[row])


def infinite(name: str | int, row: int, value: float) -> CellError:
    """The error for an infinite value."""
    return CellError(
        name, row, f"the value is {value:g} (infinity); give a number, or leave it empty."
    )


def _all_missing(label: str | int) -> ValueError:
    return ValueError(f"column {shown(label)} has no value at all; remove it or fill it.")


def expect(is_true: bool, otherwise: str) -> None:
    """Refuse a saved state."""
    if not is_true:
        raise ValueError(f"the saved preprocessing is damaged: {otherwise}.")


def read_column(record: Any, index: int, has_name: bool) -> RawColumn:
    """One column of the saved state, every field looked at."""
    place = f"column {index}"
    expect(isinstance(record, Mapping), f"{place} is not an object")
    wanted = {f.name for f in fields(RawColumn)}
    expect(set(record) == wanted, f"{place} must have exactly the fields {sorted(wanted)}")
    name = record["name"]
    expect(isinstance(name, str) if has_name else name is None, f"{place} has the name {name!r}")
    for key, choices in (
        ("kind", ("numeric", "categorical")),
        ("parser", ("number", "comma", "boolean", "date")),
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
    expect(
        record["scale"] > 0 and math.isfinite(1 / record["scale"]),
        f'{place}: "scale" is {record["scale"]!r}',
    )
    labels = record["categories"]
    is_list = isinstance(labels, list) and all(isinstance(text, str) for text in labels)
    expect(
        is_list and len(set(labels)) == len(labels), f'{place}: "categories" must be distinct texts'
    )
    is_labelled = record["kind"] == "categorical"
    expect(
        bool(labels) == is_labelled, f"{place} is {record['kind']} with {len(labels)} categories"
    )
    expect(is_labelled or not record["has_other"], f'{place} is numeric with "has_other"')
    values: dict[str, Any] = {**record, "categories": tuple(labels)}
    return RawColumn(**values)
