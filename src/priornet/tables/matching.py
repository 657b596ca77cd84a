"""Values of a table read as training read them, whatever carries them now.

A file of text, a typed column and a column of categories say the same in different ways: ``True``,
``true`` and 1, ``3`` and ``3.0``, a day with and without its midnight, ``12:30`` and ``12:30:00``.
What training knew as numbers becomes those numbers; what it knew as labels, the labels as training
spelled them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Sequence
from contextlib import suppress
from datetime import time

import numpy as np
from numpy.typing import NDArray

from priornet.tables.columns import CellError, Column, Numbers, Table, Texts, shown
from priornet.tables.days import as_moments
from priornet.tables.learning import RawColumn
from priornet.tables.spelling import MISSING_WORDS, parse_labels
from priornet.tables.values import label_of

__all__ = ["as_labels", "as_numbers", "means_missing", "place_unnamed"]

FloatArray = NDArray[np.float64]

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
