"""Raw tables as users hold them: NumPy arrays, pandas frames, Arrow tables, mappings to arrays.

:func:`read_table` turns each into the same columns; the other functions take rows and columns. The
module of a table's type tells what it is, so that pandas and pyarrow are imported only for a caller
who uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.tables.values import (
    Column,
    Numbers,
    Table,
    Texts,
    from_objects,
    from_uniques,
    from_values,
    label_of,
    labelled,
    shown,
)

PANDAS_EXTENSIONS = ("pandas.period", "pandas.interval")
"""Types of pandas that Arrow keeps under these names."""
_TEXTS = ("string", "large_string", "string_view")  # types of Arrow
_LABELS = (  # types whose values become labels by their text
    *(*_TEXTS, "binary", "large_binary", "binary_view"),
    *("fixed_size_binary", "time32", "time64"),
)
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_UNNAMED_IN_CSV = re.compile(r"|Unnamed: 0(?:\.\d+)?")


def read_table(table: Any) -> Table:
    """Read the columns of an array, a frame, an Arrow table or a mapping from names to arrays."""
    table = unmasked(table)
    home = type(table).__module__.split(".")[0]
    if home == "pandas" and hasattr(table, "columns"):
        return _from_pandas(table)
    if home == "pyarrow" and hasattr(table, "column_names"):
        return _from_arrow(table)
    if isinstance(table, Mapping):
        return _from_mapping(table)
    return _from_array(table)


def unmasked(table: Any) -> Any:
    """Replace the masked values of NumPy arrays by missing values; return other tables as they are.

    Example:
        >>> unmasked(np.ma.array([1, 2], mask=[False, True]))
        array([ 1., nan])
    """
    if isinstance(table, dict) and any(isinstance(v, np.ma.MaskedArray) for v in table.values()):
        return {name: unmasked(values) for name, values in table.items()}
    if not isinstance(table, np.ma.MaskedArray):
        return table
    mask: Any = np.ma.getmaskarray(table)
    kind = table.dtype.kind
    if not mask.any() or kind == "V":  # records may be masked in part
        return np.asarray(table)
    values: Any = np.asarray(table)
    missing: Any = None
    if kind in "mM":
        missing = np.array("NaT", table.dtype)
    elif kind in "biufc":
        missing = np.nan
    else:
        values = values.astype(object)
    return np.where(mask, missing, values)


def _from_array(table: Any) -> Table:
    array = np.asarray(table)
    if array.ndim != 2:
        raise ValueError(
            f"expected a table of two dimensions, (rows, columns); got shape {array.shape}. "
            "Reshape your data: `X.reshape(-1, 1)` for one column, `X.reshape(1, -1)` for one row."
        )
    if array.dtype.kind in "biuf":
        return Table(None, len(array), matrix=array.astype(np.float64, copy=False))
    columns = tuple(from_values(array[:, j], j) for j in range(array.shape[1]))
    return Table(None, len(array), columns)


def _from_mapping(table: Mapping[Any, Any]) -> Table:
    names = tuple(str(name) for name in table)
    _check_names(names)
    arrays = dict(zip(names, (np.asarray(unmasked(v)) for v in table.values()), strict=True))
    n_rows = num_rows(arrays) if arrays else 0
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) != n_rows:
            raise ValueError(
                f'column "{name}" must have one dimension and as many rows as the first column, '
                f"{n_rows}; got shape {array.shape}."
            )
    return Table(names, n_rows, tuple(from_values(a, name) for name, a in arrays.items()))


def _from_pandas(frame: Any) -> Table:
    names = tuple(frame.columns)
    kinds = {isinstance(name, str) for name in names}
    if kinds == {True, False}:
        raise TypeError(
            "column names must be all text or none of them: scikit-learn refuses a mixture; "
            "convert them with `X.columns = X.columns.astype(str)`."
        )
    _check_names(names)
    labels = names if kinds == {False} else None
    names = None if kinds == {False} else tuple(str(name) for name in names)
    dtypes = list(frame.dtypes)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
        return Table(names, len(frame), None, frame.to_numpy(dtype=np.float64), labels)
    columns = tuple(
        _from_series(frame.iloc[:, j], names[j] if names else j) for j in range(len(dtypes))
    )
    return Table(names, len(frame), columns, labels=labels)


def _from_series(series: Any, name: str | int) -> Column:
    """Read one pandas column, also of nullable, Arrow-backed and sparse types."""
    dtype = series.dtype
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_chunks(series.array.__arrow_array__(), name)
    if str(dtype) == "category":
        labels = [label_of(value) for value in series.cat.categories]
        return labelled(series.cat.codes.to_numpy(np.int64), labels, is_declared=True)
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        return Numbers(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M" and getattr(dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    if kind in "mMc":  # times keep their unit: not all fit nanoseconds
        return from_values(series.to_numpy(), name)
    try:
        codes, uniques = series.factorize()
    except TypeError:
        return from_objects(list(series), name)
    return from_uniques(codes.astype(np.int64), list(uniques), name)


def _from_arrow(table: Any) -> Table:
    names = tuple(table.column_names)
    _check_names(names)
    columns = tuple(_from_chunks(table.column(j), names[j]) for j in range(len(names)))
    return Table(names, table.num_rows, columns)


def _from_chunks(array: Any, name: str | int) -> Column:
    """Read one column of an Arrow table or batch."""
    import pyarrow as pa

    kind: Any = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _from_extension(array, name)
    if pa.types.is_dictionary(kind) or _type_name(kind) in _LABELS:
        return _from_dictionary(array, name)
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_date32(kind):
        return from_values(np.asarray(array).astype("M8[D]"), name)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return from_values(np.asarray(array), name)  # moments and durations keep their unit
    if pa.types.is_decimal(kind):
        return Numbers(np.asarray(_decimals_as_floats(array), np.float64))
    is_number = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if not is_number and not pa.types.is_floating(kind):
        raise ValueError(f"column {shown(name)} has the type {kind}, neither number nor text.")
    if not pa.types.is_floating(kind) or kind == pa.float16():
        array = array.cast(pa.float64(), safe=False)
    return Numbers(np.asarray(array, np.float64))


def _from_extension(array: Any, name: str | int) -> Column:
    """Read pandas' periods and intervals as text, other extension types as their storage."""
    if array.type.extension_name in PANDAS_EXTENSIONS:
        return _from_series(array.to_pandas(), name)
    if not hasattr(array, "num_chunks"):
        return _from_chunks(array.storage, name)
    import pyarrow as pa

    chunks = [chunk.storage for chunk in array.chunks]
    return _from_chunks(pa.chunked_array(chunks, array.type.storage_type), name)


def _decimals_as_floats(array: Any) -> Any:
    """Round decimals to the nearest float64; Arrow's own conversion may miss it by a digit."""
    import pyarrow as pa

    return array.cast(pa.string()).cast(pa.float64())


def _type_name(kind: Any) -> str:
    return str(kind).partition("[")[0]


def _from_dictionary(array: Any, name: str | int) -> Column:
    import pyarrow as pa

    is_declared = pa.types.is_dictionary(array.type)
    if not is_declared:
        if pa.types.is_time(array.type):
            array = array.cast(pa.time64("us"), safe=False)
        array = array.dictionary_encode()
    if hasattr(array, "num_chunks"):
        array = array.unify_dictionaries().combine_chunks()
        if hasattr(array, "num_chunks"):  # an empty column stays in chunks
            return Texts(np.empty(0, np.int64), (), is_declared)
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    values = array.dictionary.to_pylist()
    return from_uniques(codes, values, name, is_declared=is_declared)


def _check_names(names: Sequence[Any]) -> None:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two columns have the same name, {name!r}; rename one of them.")
        if isinstance(name, str) and any("\ud800" <= char <= "\udfff" for char in name):
            raise ValueError(
                f"the name of column {name!r} is not text that a file can hold (it has a lone "
                "surrogate, half of a character); rename it."
            )
        seen.add(name)


def unnamed_indices(frame: Any) -> tuple[str, ...]:
    """Find the columns of a whole file that hold the unnamed index of a frame, which is no feature.

    In CSV pandas writes the index first, under an empty name, and reads that as ``Unnamed: 0``:
    such a column is an index if it counts the rows from 0. An index with a name is a column.
    """
    found = [name for name in frame.columns if _UNNAMED_INDEX.fullmatch(name)]
    for name in frame.columns:
        if not _UNNAMED_IN_CSV.fullmatch(name) or frame[name].dtype.kind not in "iuf":
            break
        if not np.array_equal(frame[name].to_numpy(), np.arange(len(frame))):
            break
        found.append(name)
    return tuple(found)


def as_frame(table: Any) -> Any:
    """Convert an Arrow table to a frame of the same rows, columns and values.

    Types whose values pandas would change stay Arrow types; an index that pandas wrote stays a
    column.
    """
    import pandas as pd
    import pyarrow as pa

    def own_type(kind: Any) -> Any:
        """Return the type that a column keeps; None for types that pandas has too."""
        is_known = pa.types.is_primitive(kind) or pa.types.is_dictionary(kind)
        is_known = is_known or _type_name(kind) in _TEXTS
        is_lost = pa.types.is_date(kind) or pa.types.is_time(kind)
        return None if is_known and not is_lost else pd.ArrowDtype(kind)

    columns = [_ordinary(column) for column in table.itercolumns()]
    plain = pa.Table.from_arrays(columns, names=table.column_names)
    return plain.to_pandas(ignore_metadata=True, types_mapper=own_type)


def _ordinary(column: Any) -> Any:
    """Convert the types that frames cannot hold, or that rows cannot be taken of."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        return _decimals_as_floats(column)
    if pa.types.is_null(kind):
        return column.cast(pa.float64())
    if str(kind) == "binary_view":
        return column.cast(pa.large_binary())
    if pa.types.is_dictionary(kind) and not _are_categories(column):
        return column.cast(kind.value_type).dictionary_encode()
    return column


def _are_categories(column: Any) -> bool:
    """Check that the values of a dictionary differ and none is missing, as pandas requires."""
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return True
    values = column.chunk(0).dictionary
    return values.null_count == 0 and len(values.unique()) == len(values)


def without_arrow(table: Any) -> Any:
    """Return an Arrow table as a pandas frame, and any other table as it is."""
    return as_frame(table) if type(table).__module__.startswith("pyarrow") else table


def num_rows(table: Any) -> int:
    """Count the rows."""
    return len(next(iter(table.values()))) if isinstance(table, Mapping) else len(table)


def column_names(table: Any) -> tuple[str, ...] | None:
    """Return the names of the columns; None for a table without names."""
    if isinstance(table, Mapping):
        return tuple(str(name) for name in table)
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None else tuple(str(name) for name in columns)


def pick_columns(table: Any, names: Sequence[str]) -> Any:
    """Return the columns of these names, in their order; the table has them all."""
    if isinstance(table, Mapping):
        columns = {str(name): column for name, column in table.items()}
        return {name: columns[name] for name in names}
    if hasattr(table, "column_names"):  # an Arrow table
        return table.select(list(names))
    labels = dict(
        zip(map(str, table.columns), table.columns, strict=True)
    )  # labels need not be text
    return table[[labels[name] for name in names]]


def copy_table(table: Any) -> Any:
    """Copy a table, so that a change of the copy leaves the table as it is."""
    if isinstance(table, Mapping):
        return {name: np.array(column) for name, column in table.items()}
    return table.copy() if hasattr(table, "copy") else table


def take_rows(table: Any, rows: Any) -> Any:
    """Take rows by number, or a slice of them; the rows of a frame are numbered anew."""
    if hasattr(table, "iloc"):
        return table.iloc[rows].reset_index(drop=True)
    if isinstance(table, Mapping):
        return {name: np.asarray(column)[rows] for name, column in table.items()}
    return table.take(rows) if hasattr(table, "column_names") else table[rows]


def iterate_batches(table: Any, size: int) -> Iterator[Any]:
    """Iterate over pieces of ``size`` rows."""
    n_rows = num_rows(table)
    if n_rows <= size:
        yield table
        return
    for start in range(0, n_rows, size):
        yield take_rows(table, slice(start, start + size))


def as_matrix(table: Any) -> NDArray[Any]:
    """Convert to one array, without column names."""
    if isinstance(table, Mapping):
        return np.column_stack([np.asarray(column) for column in table.values()])
    return table.to_numpy() if hasattr(table, "to_numpy") else np.asarray(table)


def join_tables(first: Any, second: Any, names: tuple[str, str]) -> Any:
    """Join the rows of two tables with the same columns.

    Args:
        first: Its kind and the order of its columns hold.
        second: The rows that follow.
        names: The arguments that hold the two, for messages.
    """
    one, other = names
    if isinstance(first, np.ndarray):
        rows: NDArray[np.float64] = np.asarray(second, np.float64)
        if rows.ndim != 2 or rows.shape[1] != first.shape[1]:
            raise ValueError(
                f"`{other}` must have {first.shape[1]} columns, as `{one}`; got shape {rows.shape}."
            )
        return np.concatenate([first, rows])
    if type(first) is not type(second):
        raise TypeError(
            f"`{other}` must be a {type(first).__name__}, as `{one}`; got {type(second).__name__}."
        )
    if isinstance(first, Mapping):
        return {name: np.concatenate([first[name], second[name]]) for name in first}
    import pandas as pd

    missing = [str(name) for name in first.columns if name not in second.columns]
    if missing:
        raise ValueError(f'`{other}` has no column "{missing[0]}".')
    return pd.concat([first, second[list(first.columns)]], ignore_index=True)
