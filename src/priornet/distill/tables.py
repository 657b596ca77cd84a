"""Raw tables as teachers read them: arrays, frames, mappings; their rows and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.tables.frames import as_frame

__all__ = ["as_matrix", "batches", "copied", "n_rows_of", "names_of", "pick", "plain", "take"]


def plain(table: Any) -> Any:
    """A table that rows can be taken of: Arrow becomes pandas, everything else stays."""
    return as_frame(table) if type(table).__module__.startswith("pyarrow") else table


def n_rows_of(table: Any) -> int:
    """How many rows."""
    return len(next(iter(table.values()))) if isinstance(table, Mapping) else len(table)


def names_of(table: Any) -> tuple[str, ...] | None:
    """Names of the columns; None where they have none."""
    if isinstance(table, Mapping):
        return tuple(str(name) for name in table)
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None else tuple(str(name) for name in columns)


def pick(table: Any, names: Sequence[str]) -> Any:
    """Return the columns of these names, in their order; the table has them all."""
    if isinstance(table, Mapping):
        columns = {str(name): column for name, column in table.items()}
        return {name: columns[name] for name in names}
    if hasattr(table, "column_names"):  # Arrow's
        return table.select(list(names))
    labels = dict(zip(map(str, table.columns), table.columns, strict=True))  # need not be text
    return table[[labels[name] for name in names]]


def copied(table: Any) -> Any:
    """A table that may be changed without changing this one."""
    if isinstance(table, Mapping):
        return {name: np.array(column) for name, column in table.items()}
    return table.copy() if hasattr(table, "copy") else table


def take(table: Any, rows: Any) -> Any:
    """Rows by number, or a slice of them."""
    if hasattr(table, "iloc"):
        return table.iloc[rows].reset_index(drop=True)
    if isinstance(table, Mapping):
        return {name: np.asarray(column)[rows] for name, column in table.items()}
    return table[rows]


def batches(table: Any, size: int) -> Iterator[Any]:
    """The table in pieces of so many rows."""
    n_rows = n_rows_of(table)
    if n_rows <= size:
        yield table
        return
    for start in range(0, n_rows, size):
        yield take(table, slice(start, start + size))


def as_matrix(table: Any) -> NDArray[Any]:
    """The values as one array, for teachers that know no names."""
    if isinstance(table, Mapping):
        return np.column_stack([np.asarray(column) for column in table.values()])
    return table.to_numpy() if hasattr(table, "to_numpy") else np.asarray(table)
