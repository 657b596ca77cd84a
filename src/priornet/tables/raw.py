"""Raw tables as users hold them (arrays, frames, mappings): their rows and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.tables.frames import as_frame

__all__ = [
    "as_matrix",
    "column_names",
    "copy_table",
    "iterate_batches",
    "join_tables",
    "num_rows",
    "pick_columns",
    "take_rows",
    "without_arrow",
]


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
    labels = dict(zip(map(str, table.columns), table.columns, strict=True))  # need not be text
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
