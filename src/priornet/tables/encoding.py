"""What training learns about one raw column, how that is kept, and values read as training did.

A file of text, a typed column and a column of categories say the same in different ways: ``True``,
``true`` and 1, ``3`` and ``3.0``, a day with and without its midnight, ``12:30`` and ``12:30:00``.
What training knew as numbers becomes those numbers; what it knew as labels, the labels as training
spelled them.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priornet.tables.column_summaries import (
    ColumnSummary,
    find_dominant,
    label_summary,
    number_summary,
)
from priornet.tables.values import (
    MISSING_WORDS,
    CellError,
    Column,
    Numbers,
    Table,
    Texts,
    as_moments,
    label_of,
    parse_labels,
    shown,
)

__all__ = [
    "RawColumn",
    "as_labels",
    "as_numbers",
    "check_not_infinite",
    "expect",
    "infinite",
    "learn_column",
    "means_missing",
    "place_unnamed",
    "read_column",
]

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
            (:mod:`priornet.tables.column_summaries`); the same goes for mean and scale.
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


# As programs write numbers. With zeros in front it is a code: 007 is not 7.
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_EXACT_DIGITS = 15  # that a double keeps
_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?", re.IGNORECASE)
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_KINDS = {"date": "a date", "boolean": "true or false, nor 1 or 0"}


def place_unnamed(
    table: Table, own: tuple[Hashable, ...] | None, n_columns: int, *, has_names: bool
) -> tuple[int, ...]:
    """For each training column its place, where training or this table has no names.

    Labels that are not text are followed where both have the same; else columns are taken by their
    place, with a warning if a frame calls them something else.

    Args:
        table: The table now.
        own: What a frame in training called its columns, if not by text.
        n_columns: How many training had.
        has_names: Whether training had names.
    """
    given, problem = table.labels, None
    if has_names and given is not None:  # in scikit-learn's words
        problem = "X does not have valid feature names, but this model was fitted with them"
    elif own is not None and table.names is not None:
        problem = "X has feature names, but this model was fitted without feature names"
    elif given is not None and given != (own or tuple(range(n_columns))):
        if own is not None and set(own) == set(given):
            place = {label: j for j, label in enumerate(given)}
            return tuple(place[label] for label in own)
        problem = "training did not know the labels of X's columns"
    if problem is not None:
        message = f"{problem}: the columns are taken by their place; give them names of text."
        warnings.warn(message, UserWarning, stacklevel=2)
    return tuple(range(n_columns))


def as_numbers(column: RawColumn, name: str | int, raw: Column) -> FloatArray:
    """The numbers of a column that training knew as numeric; nan where one is missing.

    Args:
        column: What training learnt about it.
        name: What messages call it.
        raw: Its values now.
    """
    if isinstance(raw, Texts):
        parsed = parse_labels(raw.labels, column.parser)
        if parsed is None:
            wrong = [parse_labels([text], column.parser) is None for text in raw.labels] + [False]
            row = int(np.argmax(np.array(wrong)[raw.codes]))
            kind = _KINDS.get(column.parser, "a number")
            text = raw.labels[raw.codes[row]]
            raise CellError(
                name, row, f'"{text[:80]}" is not {kind}, as this column was in training.'
            )
        return np.append(parsed[1], np.nan)[raw.codes]  # code -1 reads the nan
    if raw.is_date != (column.parser == "date") and not np.isnan(raw.values).all():
        was, now = ("dates", "numbers") if column.parser == "date" else ("numbers", "dates")
        raise ValueError(f"column {shown(name)} held {was} in training and holds {now} now.")
    return raw.values


def as_labels(column: RawColumn, raw: Column) -> Texts:
    """The labels of a column that training knew as labels, spelled as it knew them.

    A label that is none of training's in any spelling stays as it is, and so does one that could be
    two of them; but words such as NA that training had not are missing values.

    Args:
        column: What training learnt about it.
        raw: Its values now.
    """
    texts = _texts(raw) if isinstance(raw, Numbers) else raw
    known = set(column.categories)
    if known.issuperset(texts.labels):
        return texts
    spelled = _unambiguous(column.categories)
    labels = [text if text in known else spelled.get(_meaning(text), text) for text in texts.labels]
    holes = means_missing(column, labels)
    if any(holes):
        codes = np.append(np.where(holes, -1, np.arange(len(labels))), -1)[texts.codes]
        texts = Texts(codes, texts.labels, texts.is_declared)
    return Texts(texts.codes, tuple(labels), texts.is_declared)


def means_missing(column: RawColumn, labels: Sequence[str]) -> list[bool]:
    """Tell which labels are words such as NA that training had not: its reader took them for holes.

    Where rare labels were pooled nobody knows whether such a word was among them.
    """
    if column.has_other:
        return [False] * len(labels)
    words = MISSING_WORDS - {label.lower() for label in column.categories}
    return [label.lower() in words for label in labels]


def _unambiguous(labels: Sequence[str]) -> dict[object, str]:
    """Labels by their meaning, without those that mean the same."""
    found: dict[object, list[str]] = {}
    for label in labels:
        found.setdefault(_meaning(label), []).append(label)
    return {meaning: same[0] for meaning, same in found.items() if len(same) == 1}


def _meaning(label: str) -> object:
    """What a label has in common with its other spellings."""
    if label.lower() in ("true", "false"):
        return float(label.lower() == "true")
    if _NUMBER.fullmatch(label) and sum(c.isdigit() for c in label) <= _EXACT_DIGITS:
        return float(label)
    if _DATE.fullmatch(label):
        days = parse_labels([label], "date")
        if days is not None:
            return "moment", as_moments(days[1]).item()
    if _TIME.fullmatch(label):
        with suppress(ValueError):  # 25:00
            return "time", time.fromisoformat(label)
    return label


def _texts(raw: Numbers) -> Texts:
    """Numbers where training had labels: 3.0 is the label "3", a date its ISO text."""
    missing = np.isnan(raw.values)
    values, inverse = np.unique(raw.values[~missing], return_inverse=True)
    codes = np.full(len(raw.values), -1, np.int64)
    codes[~missing] = inverse
    if raw.is_date:
        return Texts(codes, tuple(str(moment) for moment in as_moments(values)))
    return Texts(codes, tuple(label_of(value) for value in values))
