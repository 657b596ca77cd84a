"""The columns of a table, numbers or labels, and the values in them.

Numbers are float64, with nan for a missing value. Dates and moments are days since the start of
1970, durations are days. Text may spell numbers with a point or a comma, true and false, dates, and
missing values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]
Parser = Literal["number", "comma", "boolean", "date"]


class CellError(ValueError):
    """A value that cannot be used: its column (name or number), its row from 0, and the problem."""

    def __init__(self, column: str | int, row: int, problem: str) -> None:
        self.column, self.row, self.problem = column, row, problem
        super().__init__(f"column {shown(column)}, row {row}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.row, self.problem)


def shown(column: str | int) -> str:
    """Return a column's name in quotes, or its number."""
    return f'"{column}"' if isinstance(column, str) else str(column)


def check_not_infinite(name: str | int, values: FloatArray) -> None:
    """Refuse the first infinite value."""
    found = np.isinf(values)
    if found.any():
        row = int(np.argmax(found))
        raise CellError(
            name, row, f"the value is {values[row]:g} (infinity); give a number, or leave it empty."
        )


@dataclass(frozen=True)
class Numbers:
    """A numeric column, nan where a value is missing; days since 1970 if ``is_date``."""

    values: FloatArray
    is_date: bool = False


@dataclass(frozen=True)
class Texts:
    """A column of labels: ``labels[code]`` for each row, -1 where the value is missing.

    ``is_declared`` marks a column of a categorical type, whatever its labels look like.
    """

    codes: NDArray[np.int64]
    labels: tuple[str, ...]
    is_declared: bool = False

    def lookup(self, values: ArrayLike, missing: Any) -> NDArray[Any]:
        """Return a value for each row, given one for each label and one for a missing value."""
        return np.append(values, missing)[self.codes]  # code -1 reads the last entry


Column = Numbers | Texts


@dataclass(frozen=True)
class Table:
    """Columns of equal length, or a ``matrix`` of plain numbers.

    ``labels`` are the column labels of a frame without ``names``: numbers, or tuples.
    """

    names: tuple[str, ...] | None
    n_rows: int
    columns: tuple[Column, ...] | None = None
    matrix: FloatArray | None = None
    labels: tuple[Hashable, ...] | None = None

    @property
    def n_columns(self) -> int:
        """Count the columns."""
        return len(self.columns or ()) if self.matrix is None else self.matrix.shape[1]

    def __iter__(self) -> Iterator[tuple[str | int, Column]]:
        """Iterate over the columns, each with its label."""
        return ((self.label(j), self.column(j)) for j in range(self.n_columns))

    def column(self, index: int) -> Column:
        """Return one column."""
        if self.matrix is not None:
            return Numbers(self.matrix[:, index])
        assert self.columns is not None
        return self.columns[index]

    def label(self, index: int) -> str | int:
        """Return a column's name, or its number."""
        return self.names[index] if self.names is not None else index


def from_values(values: Any, name: str | int) -> Column:
    """Make a column of a NumPy array of one dimension."""
    kind = values.dtype.kind
    if kind in "biuf":
        return Numbers(values.astype(np.float64, copy=False))
    if kind in "mM":
        return Numbers(as_days(values), is_date=kind == "M")
    if kind == "c":
        raise _complex(name)
    return from_objects(values.tolist(), name)


def from_objects(values: Sequence[Any], name: str | int) -> Column:
    """Make a column of Python objects, without pandas."""
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
    """Make a column of codes into distinct values: numbers or dates if all are, else labels."""
    given = [value for value in uniques if not is_missing(value)]  # Arrow's may hold a null
    if given and not is_declared:
        for kinds, convert in _CONVERTERS.items():
            if all(isinstance(value, kinds) for value in given):
                numbers = [math.nan if is_missing(value) else convert(value) for value in uniques]
                values = np.array([*numbers, math.nan])[codes]  # code -1 reads the last entry
                return Numbers(values, is_date=date in kinds)
    for code, value in enumerate(uniques):
        if isinstance(value, (complex, np.complexfloating)):
            raise _complex(name)
        if isinstance(value, (tuple, frozenset, Mapping)):
            raise _neither(name, int(np.argmax(codes == code)), value)
    labels = ["" if is_missing(value) else label_of(value) for value in uniques]
    return labelled(codes, labels, is_declared=is_declared)


def labelled(codes: NDArray[np.int64], labels: list[str], *, is_declared: bool = False) -> Texts:
    """Make a column of codes into labels; equal labels become one, and "" a missing value."""
    known: dict[str, int] = {}
    target = [-1 if label == "" else known.setdefault(label, len(known)) for label in labels]
    if target != list(range(len(labels))):
        codes = np.append(np.asarray(target, np.int64), -1)[codes]  # code -1 reads the last entry
    return Texts(codes, tuple(known), is_declared)


def label_of(value: Any) -> str:
    """Return the label of a value: its text without blanks around; whole numbers without ".0".

    Example:
        >>> [label_of(value) for value in (" red ", 3.0, 3)]
        ['red', '3', '3']
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, timedelta):  # pandas spells durations in another way
        value = timedelta(value.days, value.seconds, value.microseconds)
    return str(value).strip()


def _float(value: Any) -> float:
    """Convert a number; a whole number that no float can hold is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


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


_DAY_IN_MICROSECONDS = 86_400e6
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FINE = ("us", "ns", "ps", "fs", "as")  # units that convert to microseconds without overflow


def as_days(values: Any) -> NDArray[np.float64]:
    """Convert NumPy's moments or durations to days, nan for NaT."""
    kind = values.dtype.kind
    fine = values.astype(f"{kind}8[us]")
    days = fine.astype(np.int64) / _DAY_IN_MICROSECONDS
    if np.datetime_data(values.dtype)[0] not in _FINE:
        # NumPy wraps around in silence where 64 bits cannot count the microseconds.
        whole = values.astype(f"{kind}8[D]")
        days = np.where(fine.astype(whole.dtype) == whole, days, whole.astype(np.int64))
    return np.where(np.isnat(values), np.nan, days)


def as_moments(days: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Convert days since the start of 1970 to moments, to the nearest microsecond."""
    return (days * _DAY_IN_MICROSECONDS).round().astype("M8[us]")


def days_of(value: Any) -> float:
    """Convert one date, moment or duration to days; a moment without a zone counts as UTC."""
    for method in ("to_datetime64", "to_timedelta64"):  # a value of pandas, with its own unit
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(as_days(value))
    if not isinstance(value, timedelta):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is None:
            value = value.replace(tzinfo=UTC)
        value = value - _EPOCH
    return (value // _MICROSECOND) / _DAY_IN_MICROSECONDS


_CONVERTERS: dict[tuple[type, ...], Callable[[Any], float]] = {
    (int, float, np.number, np.bool_): _float,
    (date, np.datetime64): days_of,
    (timedelta, np.timedelta64): days_of,
}

# Words for a missing value among numbers that arrive as text; case and blanks do not matter.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."})

# A comma that may group thousands. Of numbers with three decimals, a tenth end in a zero that
# programs leave out: these show that a comma is decimal; one mistyped cell does not.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")
_LEAST_DECIMAL, _DECIMAL_SHARE = 5, 0.05


def parse_labels(
    labels: Sequence[str], parser: Parser | None = None
) -> tuple[Parser, FloatArray] | None:
    """Parse labels that spell numbers; None where one of them is no number.

    The parsers are tried in turn, unless ``parser`` names one: ``"number"`` (``12``, ``1e-3``),
    ``"comma"`` (``1,5``: only where no point occurs and enough values show that the comma does not
    group thousands), ``"boolean"`` (true and false in any case, 1 and 0; if named, any number) and
    ``"date"`` (ISO 8601, as days since 1970). :data:`MISSING_WORDS` become nan.

    Returns:
        The name of the parser, and the numbers.

    Example:
        >>> parse_labels(["1,5", "n/a", "12"])
        ('comma', array([ 1.5,  nan, 12. ]))
    """
    words = [label.strip().lower() for label in labels]
    given = [word for word in words if word not in MISSING_WORDS]
    for name in _PARSERS if parser is None else (parser,):
        if parser is None and name == "comma" and not _is_decimal_comma(given):
            continue
        numbers = {word: _PARSERS[name](word) for word in given}
        if None in numbers.values():
            continue
        if parser is None and name == "boolean" and not {*numbers.values()} <= {0, 1}:
            continue
        return name, np.array([numbers.get(word, math.nan) for word in words], np.float64)
    return None


def _parse_number(word: str) -> float | None:
    if "_" in word:  # Python reads 1_000 as a number; in a table it is a code
        return None
    try:
        return float(word)
    except ValueError:
        return None


def _parse_comma(word: str) -> float | None:
    return None if "." in word else _parse_number(word.replace(",", ".", 1))


def _is_decimal_comma(words: Sequence[str]) -> bool:
    words = [word for word in words if "," in word]
    n_decimal = sum(_THOUSANDS.fullmatch(word) is None for word in words)
    is_share = n_decimal >= max(_LEAST_DECIMAL, _DECIMAL_SHARE * len(words))
    return n_decimal > 0 and (2 * n_decimal >= len(words) or is_share)


def decimals_among_thousands(labels: Sequence[str]) -> list[str]:
    """Return the few labels with a decimal comma where it groups thousands in most others.

    Example:
        >>> decimals_among_thousands(["3,122", "1,773", "12,5"])
        ['12,5']
    """
    words = [word for word in (label.strip() for label in labels) if "," in word]
    decimal = [word for word in words if not _THOUSANDS.fullmatch(word)]
    is_read = any(_parse_comma(word) is None for word in decimal) or _is_decimal_comma(words)
    return [] if is_read else decimal


def _parse_boolean(word: str) -> float | None:
    return {"true": 1.0, "false": 0.0}.get(word, _parse_number(word))


def _parse_date(word: str) -> float | None:
    try:
        return days_of(datetime.fromisoformat(word.upper()))
    except ValueError:
        return None


_PARSERS: dict[Parser, Callable[[str], float | None]] = {
    "number": _parse_number,
    "comma": _parse_comma,
    "boolean": _parse_boolean,
    "date": _parse_date,
}
