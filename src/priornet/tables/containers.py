"""The columns of a table, whatever holds it.

NumPy arrays, pandas frames, pyarrow tables and mappings from names to arrays all come out as the
same two kinds of column. Neither pandas nor pyarrow is imported to find out: a caller who has
neither installed cannot pass their objects either, so the type's own module tells which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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

__all__ = ["PANDAS_EXTENSIONS", "decimals_as_floats", "read_table", "unmasked"]

PANDAS_EXTENSIONS = ("pandas.period", "pandas.interval")
"""Types of pandas that Arrow keeps under these names."""


def read_table(table: Any) -> Table:
    """The columns of an array, a frame, an Arrow table or a mapping from names to arrays."""
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
    """A table in which values behind a NumPy mask are missing; other tables as they are.

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
    if not mask.any() or kind == "V":  # of records: what is masked in them has no one answer
        return np.asarray(table)
    if kind in "mM":
        hole: Any = np.array("NaT", table.dtype)
    else:
        hole = np.nan if kind in "biufc" else None
    values: Any = np.asarray(table)
    if kind not in "mMfc":
        values = values.astype(np.float64 if kind in "biu" else object)
    return np.where(mask, hole, values)


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
    arrays = [np.asarray(unmasked(values)) for values in table.values()]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1 or len(array) != len(arrays[0]):
            raise ValueError(
                f'column "{name}" must have one dimension and as many rows as the first column, '
                f"{len(arrays[0])}; got shape {array.shape}."
            )
    columns = tuple(from_values(a, n) for n, a in zip(names, arrays, strict=True))
    return Table(names, len(arrays[0]) if arrays else 0, columns)


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
    """One pandas column; nullable, Arrow-backed and sparse types answer to the same calls."""
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
    if kind in "mM":
        return from_values(series.to_numpy(), name)  # in its own unit: not all fit nanoseconds
    if kind == "c":
        return from_values(series.to_numpy(), name)  # which refuses them
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
    """One column of an Arrow table or batch."""
    import pyarrow as pa

    kind: Any = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _from_extension(array, name)
    if pa.types.is_dictionary(kind) or _is_label(kind):
        return _from_dictionary(array, name)
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_date32(kind):
        return from_values(_as_numpy(array).astype("M8[D]"), name)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return from_values(_as_numpy(array), name)  # moments and durations in their own unit
    if pa.types.is_decimal(kind):
        return Numbers(np.asarray(_as_numpy(decimals_as_floats(array)), np.float64))
    if not _is_number(kind):
        raise ValueError(f"column {shown(name)} has the type {kind}, neither number nor text.")
    if not pa.types.is_floating(kind) or kind == pa.float16():
        array = array.cast(pa.float64(), safe=False)
    return Numbers(np.asarray(_as_numpy(array), dtype=np.float64))


def _from_extension(array: Any, name: str | int) -> Column:
    """Read pandas' periods and intervals as their text, other types as what they are stored as."""
    if array.type.extension_name in PANDAS_EXTENSIONS:
        return _from_series(array.to_pandas(), name)
    if hasattr(array, "num_chunks"):
        import pyarrow as pa

        chunks = [chunk.storage for chunk in array.chunks]
        return _from_chunks(pa.chunked_array(chunks, array.type.storage_type), name)
    return _from_chunks(array.storage, name)


def decimals_as_floats(array: Any) -> Any:
    """Round decimals to the nearest float64; Arrow's own conversion may miss it by a digit."""
    import pyarrow as pa

    return array.cast(pa.string()).cast(pa.float64())


def _as_numpy(array: Any) -> Any:
    """A chunked array takes no argument here and a plain one insists on it."""
    is_chunked = hasattr(array, "num_chunks")
    return array.to_numpy() if is_chunked else array.to_numpy(zero_copy_only=False)


def _is_label(kind: Any) -> bool:
    """Whether values are known by their text: text itself, bytes of text, times of the day."""
    import pyarrow as pa

    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    tests = [getattr(pa.types, f"is_{n}", None) for n in (*names, "fixed_size_binary", "time")]
    return any(test is not None and test(kind) for test in tests)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


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
