"""Writing tables to files in batches, whole or not at all."""

from __future__ import annotations

import errno
import gzip
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from priornet.messages import first_line
from priornet.tables.read import TableError, format_of
from priornet.writing import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class TableWriter:
    """A file written in batches, in place only when all of it is there.

    A context manager: an error inside removes the unfinished file.

    Args:
        path: File, or ``-``.

    Attributes:
        path: The file's name in messages.
        has_types: True for Parquet, which keeps the types of columns.
        n_rows: Number of rows written so far.
    """

    def __init__(self, path: str | Path) -> None:
        self._target = str(path)
        self._is_standard = self._target == "-"
        if not self._is_standard and Path(self._target).is_dir():
            raise TableError(f"{self._target}: it is a folder; name a file in it.")
        kind = format_of(self._target)
        self.has_types = kind == "parquet"
        self.path = "standard output" if self._is_standard else self._target
        self.n_rows = 0
        self._stack = ExitStack()
        self._parquet: Any = None
        self._has_header = False
        self._delimiter = "\t" if kind == "tsv" else ","
        self._file: Any = None

    def __enter__(self) -> Self:
        if self._is_standard:
            self._file = sys.stdout.buffer
            return self
        with _writing(self.path):
            self._file = self._stack.enter_context(whole_file(self._target))
            if self._target.lower().endswith(".gz"):
                packed = gzip.GzipFile("", "wb", 6, self._file, mtime=0)
                self._file = self._stack.enter_context(packed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _writing(self.path):
            if self._is_standard:
                self._file.flush()
            elif kind is None:
                self._stack.close()
        if kind is not None:
            self._stack.__exit__(kind, error, trace)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; every batch has the columns of the first."""
        with _writing(self.path):
            if self.has_types:
                self._write_parquet(batch)
            else:
                self._write_csv(batch)
        self.n_rows += batch.num_rows

    def _write_parquet(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._parquet is None:
            # Numbers hardly repeat: a dictionary costs more time and space than the numbers.
            numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_temporal)
            texts: Any = [f.name for f in batch.schema if not any(is_(f.type) for is_ in numeric)]
            writer = pq.ParquetWriter(self._file, batch.schema, use_dictionary=texts)
            self._parquet = self._stack.enter_context(writer)
        self._parquet.write_batch(batch)

    def _write_csv(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        if not self._has_header:
            names = batch.schema.names
            header = pa.RecordBatch.from_arrays([pa.array([name]) for name in names], names)
            self._file.write(_lines(header, self._delimiter))
            self._has_header = True
        if _is_plain(batch, self._delimiter):  # a third of the time, and little memory
            csv: Any = import_module("pyarrow.csv")
            options = csv.WriteOptions(
                include_header=False, delimiter=self._delimiter, quoting_style="none"
            )
            csv.write_csv(batch, self._file, options)
        elif batch.num_rows:
            self._file.write(_lines(batch, self._delimiter))


def _is_plain(batch: pa.RecordBatch, delimiter: str) -> bool:
    """Tell if Arrow's own writer may write a batch without any quotes."""
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")
    return batch.num_columns > 1 and all(
        pa.types.is_primitive(column.type)
        or (pa.types.is_string(column.type) and not pc.any(_is_special(column, delimiter)).as_py())
        for column in batch.columns
    )


def _is_special(column: Any, delimiter: str) -> Any:
    """Mark the texts that must stand in quotes."""
    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    return pc.match_substring_regex(column, f'["{delimiter}\r\n]')


def _lines(batch: pa.RecordBatch, delimiter: str) -> bytes:
    """Write lines of CSV in which only values with special characters stand in quotes.

    Arrow's own writer quotes either every text or none: one comma in a label would put quotes
    around all numbers that pass through as text.
    """
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")
    quote, nothing, line_end, between = (
        pa.scalar(text, pa.large_string()) for text in ('"', "", "\n", delimiter)
    )
    cells: list[Any] = []
    for column in batch.columns:
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        text = pc.fill_null(pc.cast(column, pa.large_string()), nothing)
        if not pa.types.is_primitive(column.type):
            is_special = _is_special(text, delimiter)
            if pc.any(is_special).as_py():
                doubled = pc.replace_substring(text, '"', '""')
                quoted = pc.binary_join_element_wise(quote, doubled, quote, nothing)
                text = pc.if_else(is_special, quoted, text)
        if batch.num_columns == 1:  # readers skip an empty line
            empty = pa.scalar('""', pa.large_string())
            text = pc.if_else(pc.equal(text, nothing), empty, text)
        cells.append(text)
    lines = pc.binary_join_element_wise(*cells, between)
    together = pa.ListArray.from_arrays([0, len(lines)], lines)
    return b"".join([pc.binary_join(together, line_end)[0].as_buffer(), b"\n"])


@contextmanager
def _writing(path: str) -> Generator[None]:
    import pyarrow as pa

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _FULL:  # a fault of the machine, not of the name
            raise OSError(error.errno, error.strerror, path) from error
        raise TableError(f"{path}: cannot write: {error.strerror or error}.") from error
    except pa.ArrowException as error:
        raise TableError(f"{path}: cannot write: {first_line(error)}.") from error
