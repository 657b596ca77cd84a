"""The columns of a table, whatever holds it: numbers with nan for holes, or labelled codes.

NumPy arrays, pandas frames, pyarrow tables and mappings from names to arrays all come out as the
same two kinds of column. Nothing here imports pandas or pyarrow: a caller who has neither installed
cannot pass their objects either, so the type's own module tells which one it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MISSING_WORDS",
    "CellError",
    "Numbers",
    "Table",
    "Texts",
    "label_of",
    "parse_labels",
    "read_table",
]

FloatArray = NDArray[np.float64]

# What stands for a hole among numbers that arrive as text, in any case, blanks around it ignored.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."})

_DAY = 86_400.0


class CellError(ValueError):
    """A value that cannot be used, with the place where it stands.

    Attributes:
        column: Name of the column, or its position where it has none.
        row: Row, counted from 0.
        problem: What is wrong there.
    """

    def __init__(self, column: str | int, row: int, problem: str) -> None:
        self.column, self.row, self.problem = column, row, problem
        super().__init__(f"column {shown(column)}, row {row}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.row, self.problem)


def shown(column: str | int) -> str:
    """A column's name in quotes, or its number."""
    return f'"{column}"' if isinstance(column, str) else str(column)


@dataclass(frozen=True)
class Numbers:
    """A numeric column: float64, nan where a value is missing; days since 1970 if ``is_date``."""

    values: FloatArray
    is_date: bool = False


@dataclass(frozen=True)
class Texts:
    """A column of labels: ``labels[code]`` for each row, -1 where the value is missing.

    ``is_declared`` marks a column that its owner called categorical, whatever the labels look like.
    """

    codes: NDArray[np.int64]
    labels: tuple[str, ...]
    is_declared: bool = False

    def first_row(self, code: int) -> int:
        """The first row with this label."""
        return int(np.argmax(self.codes == code))


Column = Numbers | Texts


@dataclass(frozen=True)
class Table:
    """Columns of equal length; ``matrix`` instead where all of them are plain numbers."""

    names: tuple[str, ...] | None
    n_rows: int
    columns: tuple[Column, ...] | None = None
    matrix: FloatArray | None = None

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return len(self.columns) if self.columns is not None else self._matrix.shape[1]

    @property
    def _matrix(self) -> FloatArray:
        assert self.matrix is not None
        return self.matrix

    def column(self, index: int) -> Column:
        """One column."""
        if self.columns is not None:
            return self.columns[index]
        return Numbers(self._matrix[:, index])

    def label(self, index: int) -> str | int:
        """How messages call a column."""
        return self.names[index] if self.names is not None else index


def read_table(table: Any) -> Table:
    """The columns of an array, a frame, an Arrow table or a mapping from names to arrays."""
    home = type(table).__module__.split(".")[0]
    if home == "pandas" and hasattr(table, "columns"):
        return _from_pandas(table)
    if home == "pyarrow" and hasattr(table, "column_names"):
        return _from_arrow(table)
    if isinstance(table, Mapping):
        return _from_mapping(table)
    return _from_array(table)


def _from_array(table: Any) -> Table:
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"expected a table of two dimensions, (rows, columns); got shape {array.shape}. "
            "Reshape your data: `X.reshape(-1, 1)` for one column, `X.reshape(1, -1)` for one row."
        )
    if array.dtype.kind in "biuf":
        return Table(None, len(array), matrix=array.astype(np.float64, copy=False))
    columns = tuple(_from_values(array[:, j], j) for j in range(array.shape[1]))
    return Table(None, len(array), columns)


def _from_mapping(table: Mapping[Any, Any]) -> Table:
    names = tuple(str(name) for name in table)
    _check_unique(names)
    arrays = [np.asarray(values) for values in table.values()]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1 or len(array) != len(arrays[0]):
            raise ValueError(
                f'column "{name}" must have one dimension and as many rows as the first column, '
                f"{len(arrays[0])}; got shape {array.shape}."
            )
    columns = tuple(_from_values(a, n) for n, a in zip(names, arrays, strict=True))
    return Table(names, len(arrays[0]) if arrays else 0, columns)


def _from_pandas(frame: Any) -> Table:
    names = tuple(frame.columns)
    kinds = {type(name) is str or isinstance(name, str) for name in names}
    if kinds == {True, False}:
        raise TypeError(
            "column names must be all text or none of them: scikit-learn refuses a mixture; "
            "convert them with `X.columns = X.columns.astype(str)`."
        )
    _check_unique(names)
    names = None if kinds == {False} else tuple(str(name) for name in names)
    dtypes = list(frame.dtypes)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
        return Table(names, len(frame), matrix=frame.to_numpy(dtype=np.float64))
    columns = tuple(
        _from_series(frame.iloc[:, j], names[j] if names else j) for j in range(len(dtypes))
    )
    return Table(names, len(frame), columns)


def _from_series(series: Any, name: str | int) -> Column:
    """One pandas column; nullable, Arrow-backed and sparse types answer to the same calls."""
    dtype = series.dtype
    if str(dtype) == "category":
        labels = [label_of(value) for value in series.cat.categories]
        return _merged(series.cat.codes.to_numpy(np.int64), labels, is_declared=True)
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        return Numbers(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M":
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Numbers(_days(series.to_numpy(dtype="datetime64[ns]")), is_date=True)
    if kind == "m":
        return Numbers(_days(series.to_numpy(dtype="timedelta64[ns]")))
    if kind == "c":
        raise _complex(name)
    try:
        codes, uniques = series.factorize()
    except TypeError:
        return _from_objects(list(series), name)
    return _from_uniques(codes.astype(np.int64), list(uniques), name)


def _from_arrow(table: Any) -> Table:
    names = tuple(table.column_names)
    _check_unique(names)
    columns = tuple(_from_chunks(table.column(j), names[j]) for j in range(len(names)))
    return Table(names, table.num_rows, columns)


def _from_chunks(array: Any, name: str) -> Column:
    """One column of an Arrow table or batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind: Any = array.type
    if pa.types.is_dictionary(kind) or _is_text(kind):
        return _from_dictionary(array, name)
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        moments = array.cast(pa.timestamp("us"), safe=False)
        return Numbers(_days(moments.to_numpy(zero_copy_only=False).astype("M8[us]")), is_date=True)
    if pa.types.is_duration(kind):
        return Numbers(_days(array.to_numpy(zero_copy_only=False).astype("m8[us]")))
    if not (_is_number(kind) or pa.types.is_decimal(kind)):
        raise ValueError(f'column "{name}" has the type {kind}, which is neither number nor text.')
    if not pa.types.is_floating(kind) or kind == pa.float16():
        array = pc.cast(array, pa.float64(), safe=False)
    return Numbers(np.asarray(_as_numpy(array), dtype=np.float64))


def _as_numpy(array: Any) -> Any:
    """A chunked array takes no argument here and a plain one insists on it."""
    is_chunked = hasattr(array, "num_chunks")
    return array.to_numpy() if is_chunked else array.to_numpy(zero_copy_only=False)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    views = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _from_dictionary(array: Any, name: str) -> Column:
    import pyarrow as pa

    is_declared = pa.types.is_dictionary(array.type)
    if not is_declared:
        array = array.dictionary_encode()
    if hasattr(array, "num_chunks"):
        array = array.unify_dictionaries().combine_chunks()
        if hasattr(array, "num_chunks"):  # an empty column stays in chunks
            return Texts(np.empty(0, np.int64), (), is_declared)
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = array.dictionary.to_pylist()
    return _from_uniques(codes, values, name, is_declared=is_declared)


def _from_values(values: Any, name: str | int) -> Column:
    """One NumPy array of one dimension."""
    if values.dtype.kind in "biuf":
        return Numbers(values.astype(np.float64, copy=False))
    if values.dtype.kind == "M":
        return Numbers(_days(values), is_date=True)
    if values.dtype.kind == "m":
        return Numbers(_days(values))
    if values.dtype.kind == "c":
        raise _complex(name)
    return _from_objects(values.tolist(), name)


def _from_objects(values: Sequence[Any], name: str | int) -> Column:
    """Python objects, encoded without pandas."""
    known: dict[Any, int] = {}
    codes = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        if is_missing(value):
            codes[row] = -1
            continue
        try:
            codes[row] = known.setdefault(value, len(known))
        except TypeError as error:
            raise CellError(
                name, row, f"{type(value).__name__} is neither a number nor text."
            ) from error
    return _from_uniques(codes, list(known), name)


def _from_uniques(
    codes: NDArray[np.int64], uniques: list[Any], name: str | int, *, is_declared: bool = False
) -> Column:
    """A column from its distinct values: numbers or dates if all are, otherwise labels."""
    if any(is_missing(value) for value in uniques):  # an Arrow dictionary may hold a null
        kept = [code for code, value in enumerate(uniques) if not is_missing(value)]
        target = np.full(len(uniques) + 1, -1, np.int64)
        target[kept] = np.arange(len(kept))
        codes, uniques = target[codes], [uniques[code] for code in kept]
    if uniques and not is_declared:
        if all(isinstance(value, (int, float, np.number, np.bool_)) for value in uniques):
            return Numbers(_looked_up([float(value) for value in uniques], codes))
        if all(isinstance(value, (date, np.datetime64)) for value in uniques):
            return Numbers(_looked_up([_days_of(v) for v in uniques], codes), is_date=True)
        if all(isinstance(value, timedelta) for value in uniques):
            seconds = [value.total_seconds() / _DAY for value in uniques]
            return Numbers(_looked_up(seconds, codes))
    for code, value in enumerate(uniques):
        if isinstance(value, (complex, np.complexfloating)):
            raise _complex(name)
        if isinstance(value, (tuple, frozenset, Mapping)):
            row = int(np.argmax(codes == code))
            raise CellError(name, row, f"{type(value).__name__} is neither a number nor text.")
    return _merged(codes, [label_of(value) for value in uniques], is_declared=is_declared)


def _merged(codes: NDArray[np.int64], labels: list[str], *, is_declared: bool = False) -> Texts:
    """Blanks around labels are gone, so that two values may have become one; "" is a hole."""
    known: dict[str, int] = {}
    target = [-1 if label == "" else known.setdefault(label, len(known)) for label in labels]
    if target != list(range(len(labels))):
        codes = np.append(np.asarray(target, np.int64), -1)[codes]  # code -1 reads the last entry
    return Texts(codes, tuple(known), is_declared)


def _looked_up(values: list[float], codes: NDArray[np.int64]) -> FloatArray:
    return np.append(np.asarray(values, np.float64), np.nan)[codes]  # code -1 reads the nan


def is_missing(value: Any) -> bool:
    """None, nan, NaT, pandas' NA; text is never missing here."""
    if value is None:
        return True
    if isinstance(value, (str, bytes, bool, int)):
        return False
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, np.datetime64) and bool(np.isnat(value))
    )


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
    return str(value).strip()


def parse_labels(labels: Sequence[str], parser: str | None = None) -> tuple[str, FloatArray] | None:
    """The numbers that labels spell, and how to read them; None where one of them is no number.

    Tried in turn, unless ``parser`` names one: ``"number"`` (``12``, ``1e-3``), ``"comma"``
    (``1,5``: only where no point occurs and some value shows that the comma does not group
    thousands), ``"boolean"`` (true and false, in any case, also as 1 and 0; where it is named, any
    number) and ``"date"`` (ISO 8601, as days since 1970). :data:`MISSING_WORDS` become nan.

    Example:
        >>> parse_labels(["1,5", "n/a", "12"])
        ('comma', array([ 1.5,  nan, 12. ]))
    """
    words = [label.strip() for label in labels]
    given = [word for word in words if word.lower() not in MISSING_WORDS]
    for name in _PARSERS if parser is None else (parser,):
        if parser is None and name == "comma" and not _is_decimal_comma(given):
            continue
        values = [_PARSERS[name](word.lower()) for word in given]
        if None in values or (parser is None and name == "boolean" and not {*values} <= {0, 1}):
            continue
        found = iter(values)
        numbers = [math.nan if w.lower() in MISSING_WORDS else next(found) for w in words]
        return name, np.asarray(numbers, np.float64)
    return None


def _parse_number(word: str) -> float | None:
    if "_" in word:  # Python reads 1_000; people write such things in codes, not in numbers
        return None
    try:
        return float(word)
    except ValueError:
        return None


def _parse_comma(word: str) -> float | None:
    return None if "." in word else _parse_number(word.replace(",", ".", 1))


def _is_decimal_comma(words: Sequence[str]) -> bool:
    tails = [word.rpartition(",")[2] for word in words if "," in word]
    return any(len(tail) != 3 for tail in tails)


def _parse_boolean(word: str) -> float | None:
    return {"true": 1.0, "false": 0.0}.get(word, _parse_number(word))


def _parse_date(word: str) -> float | None:
    try:
        return _days_of(datetime.fromisoformat(word.upper()))
    except ValueError:
        return None


_PARSERS = {
    "number": _parse_number,
    "comma": _parse_comma,
    "boolean": _parse_boolean,
    "date": _parse_date,
}


def _days_of(value: Any) -> float:
    """Days since the start of 1970; a moment without a zone counts as UTC."""
    if isinstance(value, np.datetime64):
        return float(_days(value))
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value.timestamp() / _DAY


def _days(values: Any) -> FloatArray:
    """Moments or durations as days, nan for NaT."""
    missing = np.isnat(values)
    unit = "M8[us]" if values.dtype.kind == "M" else "m8[us]"
    days = values.astype(unit).astype(np.int64) / (_DAY * 1e6)
    return np.where(missing, np.nan, days)


def _complex(name: str | int) -> ValueError:
    return ValueError(f"column {shown(name)}: complex data not supported.")


def _check_unique(names: Sequence[Any]) -> None:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two columns have the same name, {name!r}; rename one of them.")
        seen.add(name)
