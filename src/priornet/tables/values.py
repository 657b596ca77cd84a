"""A column from its values: numbers or dates if all of them are, otherwise labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.tables.columns import CellError, Column, Numbers, Texts, shown
from priornet.tables.days import as_days, days_of

__all__ = ["from_objects", "from_uniques", "from_values", "is_missing", "label_of", "labelled"]


def from_values(values: Any, name: str | int) -> Column:
    """The column of a NumPy array of one dimension."""
    if values.dtype.kind in "biuf":
        return Numbers(values.astype(np.float64, copy=False))
    if values.dtype.kind == "M":
        return Numbers(as_days(values), is_date=True)
    if values.dtype.kind == "m":
        return Numbers(as_days(values))
    if values.dtype.kind == "c":
        raise _complex(name)
    return from_objects(values.tolist(), name)


def from_objects(values: Sequence[Any], name: str | int) -> Column:
    """The column of some Python objects, encoded without pandas."""
    known: dict[Any, int] = {}
    codes = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        if is_missing(value):
            codes[row] = -1
            continue
        try:
            codes[row] = known.setdefault(value, len(known))
        except TypeError as error:
            raise _neither(name, row, value) from error
    return from_uniques(codes, list(known), name)


def from_uniques(
    codes: NDArray[np.int64], uniques: list[Any], name: str | int, *, is_declared: bool = False
) -> Column:
    """The column of codes into distinct values: numbers or dates if all are, otherwise labels."""
    if any(is_missing(value) for value in uniques):  # an Arrow dictionary may hold a null
        kept = [code for code, value in enumerate(uniques) if not is_missing(value)]
        target = np.full(len(uniques) + 1, -1, np.int64)
        target[kept] = np.arange(len(kept))
        codes, uniques = target[codes], [uniques[code] for code in kept]
    if uniques and not is_declared:
        if all(isinstance(value, (int, float, np.number, np.bool_)) for value in uniques):
            return Numbers(_looked_up([_float(value) for value in uniques], codes))
        if all(isinstance(value, (date, np.datetime64)) for value in uniques):
            return Numbers(_looked_up([days_of(v) for v in uniques], codes), is_date=True)
        if all(isinstance(value, (timedelta, np.timedelta64)) for value in uniques):
            return Numbers(_looked_up([days_of(v) for v in uniques], codes))
    for code, value in enumerate(uniques):
        if isinstance(value, (complex, np.complexfloating)):
            raise _complex(name)
        if isinstance(value, (tuple, frozenset, Mapping)):
            raise _neither(name, int(np.argmax(codes == code)), value)
    return labelled(codes, [label_of(value) for value in uniques], is_declared=is_declared)


def labelled(codes: NDArray[np.int64], labels: list[str], *, is_declared: bool = False) -> Texts:
    """The column of codes into labels.

    Blanks around labels are gone, so that two values may have become one; "" is a hole.
    """
    known: dict[str, int] = {}
    target = [-1 if label == "" else known.setdefault(label, len(known)) for label in labels]
    if target != list(range(len(labels))):
        codes = np.append(np.asarray(target, np.int64), -1)[codes]  # code -1 reads the last entry
    return Texts(codes, tuple(known), is_declared)


def label_of(value: Any) -> str:
    """The label of a value: its text without blanks around; whole numbers without ".0".

    Example:
        >>> [label_of(value) for value in (" red ", 3.0, 3)]
        ['red', '3', '3']
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, timedelta):  # pandas spells its own in another way
        value = timedelta(value.days, value.seconds, value.microseconds)
    return str(value).strip()


def _float(value: Any) -> float:
    """Convert a number; a whole number that no float can hold is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _looked_up(values: list[float], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.append(np.asarray(values, np.float64), np.nan)[codes]  # code -1 reads the nan


def is_missing(value: Any) -> bool:
    """Tell None, nan, NaT and pandas' NA from values; text is never missing here."""
    if value is None:
        return True
    if isinstance(value, (str, bytes, bool, int)):
        return False
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))
    )


def _neither(name: str | int, row: int, value: Any) -> CellError:
    return CellError(name, row, f"{type(value).__name__} is neither a number nor text.")


def _complex(name: str | int) -> ValueError:
    return ValueError(f"column {shown(name)}: complex data not supported.")
