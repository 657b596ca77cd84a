"""Arrow tables as pandas frames, for teachers and reports that know nothing of Arrow.

Files hold the index of a frame as a column; :func:`unnamed_indices` finds what is no feature.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from priornet.tables.containers import decimals_as_floats

__all__ = ["as_frame", "unnamed_indices"]

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
_UNNAMED_IN_CSV = re.compile(r"|Unnamed: 0(?:\.\d+)?")


def unnamed_indices(frame: Any) -> tuple[str, ...]:
    """Find the columns of a file that hold the unnamed index of a frame.

    It counts rows, as a rule, and is no feature; an index with a name is a column like any other.
    To CSV pandas writes it first, under an empty name, which it later reads as ``Unnamed: 0``: such
    a column is an index where it counts the rows from 0, and a feature where it does not.

    Args:
        frame: All columns and rows of the file.
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
    """Convert an Arrow table to a frame that reads the same: every row, column and value.

    What pandas would change stays in Arrow's own type. What it would take for an index stays a
    column.
    """
    import pandas as pd
    import pyarrow as pa

    def own_type(kind: Any) -> Any:
        """The type that a column keeps; None for those that pandas has too."""
        is_known = pa.types.is_primitive(kind) or _is_text(kind) or pa.types.is_dictionary(kind)
        is_lost = pa.types.is_date(kind) or pa.types.is_time(kind)
        return None if is_known and not is_lost else pd.ArrowDtype(kind)

    columns = [_ordinary(column) for column in table.itercolumns()]
    plain = pa.Table.from_arrays(columns, names=table.column_names)
    return plain.to_pandas(ignore_metadata=True, types_mapper=own_type)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    views = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or views(kind)


def _ordinary(column: Any) -> Any:
    """The column without what frames cannot hold or rows cannot be taken of."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind):
        return decimals_as_floats(column)
    if pa.types.is_null(kind):
        return column.cast(pa.float64())
    if str(kind) == "binary_view":
        return column.cast(pa.large_binary())
    if pa.types.is_dictionary(kind) and not _are_categories(column):
        return column.cast(kind.value_type).dictionary_encode()
    return column


def _are_categories(column: Any) -> bool:
    """Whether the values of a dictionary differ and none is missing, as pandas wants it."""
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return True
    values = column.chunk(0).dictionary
    return values.null_count == 0 and len(values.unique()) == len(values)
