"""Raw columns as training learnt them, and later values read as training read them.

Text, typed columns and categories write one value in different ways: ``True``, ``true`` and 1,
``3`` and ``3.0``, a day with and without its midnight, ``12:30`` and ``12:30:00``. A column that
training knew as numbers becomes those numbers; one that it knew as labels, the labels as training
spelled them.

A row is *unseen*, and no model can vouch for it, where

- a value is missing in a column that was complete in training;
- a label is new (in a column where many labels of training had one row, it is an ordinary one);
- a number lies further outside the training range than that range is wide;
- a number is neither 0 nor 1 where training had no others;
- the row lacks more values than 99 of 100 training rows, or has no value at all.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import time
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from priornet.tables.values import (
    MISSING_WORDS,
    CellError,
    Column,
    FloatArray,
    Mask,
    Numbers,
    Parser,
    Texts,
    as_moments,
    check_not_infinite,
    label_of,
    parse_labels,
    shown,
)

Role = Literal["value", "category", "missing"]

_LARGEST = float(np.finfo(np.float64).max)
_ROUNDING = 1e-9  # relative; a constant may have other last digits
_RARE = 0.01  # a row lacks too much where a smaller share of training rows lacks as many values
# A number as programs write it; digits with zeros in front are a code: 007 is not 7.
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_EXACT_DIGITS = 15  # a double keeps them
_DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?", re.IGNORECASE)
_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_KINDS = {"date": "a date", "boolean": "true or false, nor 1 or 0"}


class Encoded(NamedTuple):
    """A column of a table, encoded; each part has one entry per row."""

    values: NDArray[Any]
    """Numbers, the median where a value is missing; or places of labels, -1 for none."""
    is_missing: Mask
    is_new: Mask
    """Numbers far outside the training range, or labels that training never had."""


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
        has_other: True if rare labels share one more output column, which new labels join.
        pooled: Those rare labels; none where new labels are as ordinary as they are.
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
    pooled: tuple[str, ...] = ()

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

    def encode(self, raw: Column, name: str | int) -> Encoded:
        """Encode the values of a column; ``name`` stands in messages."""
        if self.kind == "categorical":
            texts, places = self.read_labels(raw), self._places
            unknown = len(places) if self.has_other else -1
            slots = np.array([places.get(label, unknown) for label in texts.labels], np.int64)
            is_new = [not self.knows(label) for label in texts.labels]
            return Encoded(texts.lookup(slots, -1), texts.codes < 0, texts.lookup(is_new, False))
        values = self.read_numbers(raw, name)
        is_missing, is_far = np.isnan(values), self.find_far(values)
        if not np.isfinite(values).all():
            check_not_infinite(name, values)
            values = np.where(is_missing, self.median, values)
        return Encoded(values, is_missing, is_far)

    def find_far(self, values: FloatArray) -> Mask:
        """Find the numbers outside of :attr:`reach`; nan is never one."""
        low, high = self.reach
        is_far = (values < low) | (values > high)
        return is_far | (values > np.floor(values)) if self.is_whole else is_far

    def read_numbers(self, raw: Column, name: str | int) -> FloatArray:
        """Read a column that training knew as numeric; nan where a value is missing."""
        if isinstance(raw, Texts):
            parsed = parse_labels(raw.labels, self.parser)
            if parsed is not None:
                return raw.lookup(parsed[1], np.nan)
            wrong = [parse_labels([text], self.parser) is None for text in raw.labels]
            row = int(np.argmax(raw.lookup(wrong, False)))
            kind, text = _KINDS.get(self.parser, "a number"), raw.labels[raw.codes[row]]
            raise CellError(
                name, row, f'"{text[:80]}" is not {kind}, as this column was in training.'
            )
        if raw.is_date != (self.parser == "date") and not np.isnan(raw.values).all():
            was, now = ("dates", "numbers") if self.parser == "date" else ("numbers", "dates")
            raise ValueError(f"column {shown(name)} held {was} in training and holds {now} now.")
        return raw.values

    def read_labels(self, raw: Column) -> Texts:
        """Read a column that training knew as labels, in the spelling of training.

        A label that matches no label of training stays, and so does one that matches two. Words
        such as NA are missing values unless training had them as labels.
        """
        texts = _texts(raw) if isinstance(raw, Numbers) else raw
        known = self._known
        if known >= set(texts.labels):
            return texts
        spelled = self._spellings
        labels = [
            text if text in known else spelled.get(_meaning(text)) or text for text in texts.labels
        ]
        codes = np.where(self.means_missing(labels), -1, np.arange(len(labels)))
        return Texts(texts.lookup(codes, -1), tuple(labels), texts.is_declared)

    def means_missing(self, labels: Sequence[str]) -> list[bool]:
        """Tell which labels are words for a missing value, such as NA, that training had not.

        Among pooled labels that are not known there may have been such a word: then none is.
        """
        if self._is_open:
            return [False] * len(labels)
        words = MISSING_WORDS - {label.lower() for label in self.known_labels}
        return [label.lower() in words for label in labels]

    @property
    def known_labels(self) -> tuple[str, ...]:
        """Return the labels of training: those with an output column, then pooled ones."""
        return self.categories + self.pooled

    def knows(self, label: str) -> bool:
        """Tell if a label, spelled as in training, is an ordinary one."""
        return self._is_open or label in self._known

    @property
    def _is_open(self) -> bool:
        """Tell if labels were pooled whose names are not kept."""
        return self.has_other and not self.pooled

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.known_labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Number the labels that have an output column."""
        return {label: place for place, label in enumerate(self.categories)}

    @cached_property
    def _spellings(self) -> dict[object, str | None]:
        """Return labels by their meaning; None for a meaning that several labels share."""
        found: dict[object, str | None] = {}
        for label in self.known_labels:
            meaning = _meaning(label)
            found[meaning] = None if meaning in found else label
        return found

    def to_json(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        labels = {"categories": list(self.categories), "pooled": list(self.pooled)}
        return {**asdict(self), **labels}

    @classmethod
    def from_json(cls, record: Any, index: int, has_name: bool) -> RawColumn:
        """Load what :meth:`to_json` returned, and check every field."""
        place = f"column {index}"
        expect(isinstance(record, Mapping), f"{place} is not an object")
        wanted = {f.name for f in fields(cls)}
        record = {"pooled": [], **record}  # older versions kept no names of pooled labels
        expect(set(record) == wanted, f"{place} must have exactly the fields {sorted(wanted)}")
        name = record["name"]
        expect(
            isinstance(name, str) if has_name else name is None, f"{place} has the name {name!r}"
        )
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
        scale, labels, pooled = (record[key] for key in ("scale", "categories", "pooled"))
        expect(scale > 0 and math.isfinite(1 / scale), f'{place}: "scale" is {scale!r}')
        for key in ("categories", "pooled"):
            expect(are_texts(record[key]), f'{place}: "{key}" must be distinct texts')
        expect(set(labels).isdisjoint(pooled), f'{place}: a label of "pooled" is in "categories"')
        is_labelled = record["kind"] == "categorical"
        n_found = f"{place} is {record['kind']} with {len(labels)} categories"
        expect(bool(labels) == is_labelled, n_found)
        expect(is_labelled or not record["has_other"], f'{place} is numeric with "has_other"')
        expect(record["has_other"] or not pooled, f'{place} has "pooled" without "has_other"')
        values: dict[str, Any] = {**record, "categories": tuple(labels), "pooled": tuple(pooled)}
        return cls(**values)


def are_texts(values: Any) -> bool:
    """Check for a list of distinct texts."""
    is_list = isinstance(values, list) and all(isinstance(text, str) for text in values)
    return is_list and len(set(values)) == len(values)


def expect(is_true: bool, otherwise: str) -> None:
    """Refuse a damaged state of a saved model."""
    if not is_true:
        raise ValueError(f"the saved preprocessing is damaged: {otherwise}.")


def _meaning(label: str) -> object:
    """Return a value that all spellings of a label share."""
    if label.lower() in ("true", "false"):
        return float(label.lower() == "true")
    if _NUMBER.fullmatch(label) and sum(c.isdigit() for c in label) <= _EXACT_DIGITS:
        return float(label)
    if _DATE.fullmatch(label):
        days = parse_labels([label], "date")
        if days is not None:
            return "moment", as_moments(days[1]).item()
    if _TIME.fullmatch(label):
        with suppress(ValueError):  # such as 25:00
            return "time", time.fromisoformat(label)
    return label


def _texts(raw: Numbers) -> Texts:
    """Turn numbers into labels, as training had them: 3.0 into "3", a date into ISO text."""
    missing = np.isnan(raw.values)
    values, inverse = np.unique(raw.values[~missing], return_inverse=True)
    codes = np.full(len(raw.values), -1, np.int64)
    codes[~missing] = inverse
    labels = as_moments(values) if raw.is_date else [label_of(value) for value in values]
    return Texts(codes, tuple(map(str, labels)))


# -- values that training never had ----------------------------------------------------------------


@dataclass
class Unseen:
    """The rows of one table with values that training never had: masks ``(n_rows,)`` by column.

    Attributes:
        absent: The value is missing, which it never was in training.
        unknown: The label is new.
        far: The number lies far outside the training range.
        missing: The value is missing, as it was in some rows of training.
        n_rows: Rows of the table.
        most_missing: More values than these are too many for a row to lack.
    """

    absent: dict[str, Mask] = field(default_factory=dict[str, Mask])
    unknown: dict[str, Mask] = field(default_factory=dict[str, Mask])
    far: dict[str, Mask] = field(default_factory=dict[str, Mask])
    missing: dict[str, Mask] = field(default_factory=dict[str, Mask])
    n_rows: int = 0
    most_missing: int = 0

    def add(self, name: str | int, column: RawColumn, is_missing: Mask, is_new: Mask) -> None:
        """Keep the masks of a column that mark any row."""
        if is_new.any():
            (self.far if column.kind == "numeric" else self.unknown)[str(name)] = is_new
        if is_missing.any():
            (self.missing if column.has_missing else self.absent)[str(name)] = is_missing

    @property
    def bare(self) -> Mask:
        """Find the rows that lack too many of the values that training lacked too."""
        return sum(self.missing.values(), np.zeros(self.n_rows, np.int64)) > self.most_missing

    @property
    def rows(self) -> Mask:
        """Find the rows with any value that training never had, or with too few values."""
        return np.logical_or.reduce([np.zeros(self.n_rows, bool), *self._by_column().values()])

    @property
    def columns(self) -> NDArray[np.object_]:
        """Name the columns with such values in each row, joined by ``"; "``; else empty text."""
        found = np.full(self.n_rows, "", object)
        for name, rows in self._by_column().items():
            for i in np.flatnonzero(rows):
                found[i] = f"{found[i]}; {name}" if found[i] else name
        return found

    def _by_column(self) -> dict[str, Mask]:
        """Mark the rows of each column, of any kind."""
        found: dict[str, Mask] = {}
        bare = self.bare
        too_few = {name: rows & bare for name, rows in self.missing.items()}
        for kind in (self.absent, self.unknown, self.far, too_few):
            for name, rows in kind.items():
                found[name] = found[name] | rows if name in found else rows
        return found


@dataclass
class Tally:
    """Counts of values that training never had, over any number of tables.

    Attributes:
        n_rows: Rows.
        imputed: Missing values by column, where training had none.
        unknown: New labels by column.
        far: Numbers by column that lie far outside the training range.
        bare: Rows that lack too many values.
        unseen: Rows with any of these.
    """

    n_rows: int = 0
    imputed: Counter[str] = field(default_factory=Counter[str])
    unknown: Counter[str] = field(default_factory=Counter[str])
    far: Counter[str] = field(default_factory=Counter[str])
    bare: int = 0
    unseen: int = 0

    def count(self, unseen: Unseen) -> None:
        """Add the rows of a table."""
        imputed, unknown, far = (
            Counter({name: int(rows.sum()) for name, rows in kind.items()})
            for kind in (unseen.absent, unseen.unknown, unseen.far)
        )
        n_bare, n_unseen = int(unseen.bare.sum()), int(unseen.rows.sum())
        self.merge(Tally(unseen.n_rows, imputed, unknown, far, n_bare, n_unseen))

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def most_missing(n_missing: NDArray[np.int64], weight: FloatArray | None) -> int:
    """Return how many values a row may lack: as many as 1 % of the training rows lack, or more."""
    mass = np.bincount(n_missing, weight)
    at_least = np.cumsum(mass[::-1])[::-1] / mass.sum()
    return int(np.flatnonzero(at_least >= _RARE * (1 - 1e-9))[-1])
