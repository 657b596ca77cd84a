"""Parquet in batches whose memory is bounded in bytes, whatever a few bytes of the file stand for.

A dictionary of one long text and a count of rows are a few hundred bytes in a file, and gigabytes
when every row gets its copy. So a batch has as many rows as fit a budget at their worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from priornet.tables.containers import PANDAS_EXTENSIONS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["checked_batches", "open_parquet"]

_BATCH_ROWS = 65_536
_BATCH_BYTES = 64 << 20
_WIDTH = 9  # of a number and its place among the missing ones; of a text, without its letters


def open_parquet(path: str, **options: Any) -> Any:
    """Open a file, with the types that pandas keeps in Arrow by a name of its own."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False, **options)
    names = [
        (field.metadata or {}).get(b"ARROW:extension:name", b"") for field in file.schema_arrow
    ]
    if not any(name.decode("utf-8", "replace") in PANDAS_EXTENSIONS for name in names):
        return file
    import pandas as pd
    import pyarrow as pa

    file.close()
    pa.array(pd.array([], dtype="period[D]"))  # makes Arrow know these types
    return pq.ParquetFile(path, pre_buffer=False, **options)


def checked_batches(file: Any, path: str) -> Iterator[pa.RecordBatch]:
    """Read all rows in batches that fit the budget; text that is not UTF-8 is refused.

    Args:
        file: An open Parquet file.
        path: Where it is, to look at its dictionaries.
    """
    for batch in file.iter_batches(batch_size=_rows_at_once(file, path)):
        batch.validate(full=True)
        yield batch


def _rows_at_once(file: Any, path: str) -> int:
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    texts = _text_columns(file)
    longest = {} if not texts else _longest_entries(path, groups, texts)
    rows = _BATCH_ROWS
    for g, group in enumerate(groups):
        bytes_per_row = sum(
            _bytes_per_row(group, j, longest.get((g, j))) for j in range(group.num_columns)
        )
        rows = min(rows, int(_BATCH_BYTES / max(bytes_per_row, 1)))
    return max(rows, 1)


def _bytes_per_row(group: Any, index: int, longest: int | None) -> float:
    """Bytes that a row may take in a column: exact for numbers, at worst for repeated text."""
    column = group.column(index)
    n_values = column.num_values / max(group.num_rows, 1)  # above 1 in lists
    if column.physical_type not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return _WIDTH * n_values
    stored = column.total_uncompressed_size / max(group.num_rows, 1)
    if longest is None and any(name.startswith("DELTA_BYTE") for name in column.encodings):
        longest = column.total_uncompressed_size  # each text may repeat the one before
    return (_WIDTH + (longest or 0)) * n_values + stored


def _text_columns(file: Any) -> dict[int, str]:
    """Paths of the columns of text, by their numbers."""
    schema = file.metadata.schema
    columns = [schema.column(j) for j in range(len(schema))]
    return {j: c.path for j, c in enumerate(columns) if c.physical_type == "BYTE_ARRAY"}


def _longest_entries(
    path: str, groups: list[Any], texts: dict[int, str]
) -> dict[tuple[int, int], int]:
    """Length of the longest text in the dictionary of each column of each group."""
    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    found: dict[tuple[int, int], int] = {}
    with open_parquet(path, read_dictionary=list(texts.values())) as file:
        for g, group in enumerate(groups):
            for j, name in texts.items():
                if not group.column(j).has_dictionary_page:
                    continue
                size = group.column(j).total_uncompressed_size
                if size * _BATCH_ROWS <= _BATCH_BYTES // len(texts):
                    continue
                found[g, j] = size
                for batch in file.iter_batches(1, row_groups=[g], columns=[name]):
                    column = batch.column(0)
                    if hasattr(column, "dictionary"):
                        found[g, j] = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                    break
    return found
