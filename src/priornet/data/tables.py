"""Tables in files: CSV and Parquet, whole or in batches.

The ending of a name says the format: ``.csv``, ``.tsv`` (tabs between the values), both also with
``.gz``, ``.parquet`` or ``.pq``; ``-`` stands for CSV on standard input or output. A CSV value is
read as the text that it is, so that columns that only pass through come out as they went in;
:func:`spelled` turns text into numbers. What is wrong with a file is a :class:`TableError`: one
line that names the file, and the row or the column. Rows are counted from 1, without the header.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from priornet.data.columns import CellError
from priornet.data.lending import LentFile, Loans
from priornet.data.spelling import MISSING_WORDS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "TableError",
    "TableReader",
    "first_line",
    "format_of",
    "has_tabs",
    "located",
    "read_frame",
    "spelled",
]

_TSV = (".tsv", ".tsv.gz")
_CSV, _PARQUET = (".csv", ".csv.gz", *_TSV), (".parquet", ".pq")
_BATCH_ROWS = 65_536
_BLOCK_BYTES = 4 << 20
_START_BYTES = 1 << 16


class TableError(ValueError):
    """Something is wrong with a table; the message is one line for the person who gave it."""


@contextmanager
def located(path: str | Path, rows: int | Sequence[int] | pd.Index = 0) -> Generator[None]:
    """Say in which file, and in which of its rows, a value is wrong.

    Args:
        path: The file.
        rows: How many rows of it came before those at work; or the number of each of them.
    """
    try:
        yield
    except CellError as error:
        row = rows + error.row + 1 if isinstance(rows, int) else rows[error.row]
        place = f'column "{error.column}", row {row}'
        raise TableError(f"{path}: {place}: {error.problem}") from error


def read_frame(path: str | Path) -> pd.DataFrame:
    """A whole file as a frame; text columns that spell numbers throughout are numbers."""
    import pyarrow as pa

    with TableReader(path) as reader:
        batches = list(reader)
        table = pa.Table.from_batches(batches, reader.schema)
        if reader.is_text:
            table = spelled(table, table.column_names)
    return table.to_pandas()


def spelled(batch: Any, names: Sequence[str], booleans: Collection[str] = ()) -> Any:
    """A table or batch in which text columns that spell numbers have become numbers.

    A column with any other word in it stays text: what that means, its reader knows.

    Args:
        batch: Arrow table or batch.
        names: Columns to look at.
        booleans: Those of them in which true and false, in any case, are 1 and 0.
    """
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    words = pa.array(sorted(MISSING_WORDS))
    for name in names:
        index = batch.schema.get_field_index(name)
        column = batch.column(index)
        if not pa.types.is_string(column.type):
            continue
        text = pc.utf8_trim_whitespace(column)
        lower = pc.utf8_lower(text)
        holes = pc.is_in(lower, value_set=words)
        if name in booleans:
            for word, number in (("true", "1"), ("false", "0")):
                text = pc.if_else(pc.equal(lower, word), number, text)
        try:
            numbers = pc.cast(pc.if_else(holes, None, text), pa.float64())
        except pa.ArrowInvalid:
            continue
        batch = batch.set_column(index, name, numbers)
    return batch


class TableReader:
    """A file read in batches, in memory that does not grow with it.

    A context manager; iterating gives Arrow batches, once.

    Args:
        path: File, or ``-``.

    Attributes:
        path: What messages call it.
        names: The columns.
        schema: Their Arrow types; text throughout for CSV.
        is_text: Whether it is CSV.
        n_rows: How many rows, where the file says so: Parquet does.
    """

    names: tuple[str, ...]
    n_rows: int | None = None
    schema: pa.Schema
    is_text: bool

    def __init__(self, path: str | Path) -> None:
        self._source = str(path)
        self.path = "standard input" if self._source == "-" else self._source
        if self._source != "-":
            _check_file(self._source)
        self.is_text = format_of(self._source) == "csv"
        self._stack = ExitStack()
        self._invalid: list[Any] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            with self._errors():
                self._batches = self._open(stack)
            _check_names(self.path, self.names)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        n_rows = 0
        while True:
            with self._errors():
                batch = next(self._batches, None)
            if batch is None:
                break
            n_rows += batch.num_rows
            if batch.num_rows:
                yield batch
        if n_rows == 0:
            raise TableError(f"{self.path}: it has a header but no rows.")

    def _open(self, stack: ExitStack) -> Iterator[pa.RecordBatch]:
        if not self.is_text:
            return self._open_parquet(stack)
        file = stack.enter_context(_opened(self._source))
        start = file.read(_START_BYTES)  # a pipe cannot be read twice
        if not start.strip():
            raise TableError(f"{self.path}: the file is empty.")
        return self._open_csv(stack, file, start)

    def _open_parquet(self, stack: ExitStack) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        if Path(self._source).stat().st_size == 0:
            raise TableError(f"{self.path}: the file is empty.")
        file = stack.enter_context(pq.ParquetFile(self._source, pre_buffer=False))
        self.schema = file.schema_arrow
        self.n_rows = file.metadata.num_rows
        self.names = tuple(self.schema.names)
        return file.iter_batches(batch_size=_BATCH_ROWS)

    def _open_csv(
        self, stack: ExitStack, file: IO[bytes], start: bytes
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.csv

        delimiter = "\t" if has_tabs(self._source) else _delimiter(start)
        self.names = _header(self.path, start, delimiter)
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

        loans = Loans()
        stack.callback(loans.wait)
        reader = pyarrow.csv.open_csv(
            loans.lend(LentFile(start, file, loans)),
            # One thread, for only then does pyarrow know which row is wrong.
            pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=loans.lend(partial(_remember, self._invalid)),
            ),
            pyarrow.csv.ConvertOptions(column_types=self.schema),
        )
        batches = iter(stack.enter_context(reader))
        stack.callback(self._forget)
        return batches

    def _forget(self) -> None:
        self._batches = iter(())

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Whatever Arrow and the system say, in a line that names the file."""
        import pyarrow as pa

        try:
            yield
        except TableError:
            raise
        except pa.ArrowInvalid as error:
            raise TableError(f"{self.path}: {self._reason(error)}") from error
        except (OSError, EOFError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise TableError(f"{self.path}: {reason}.") from error

    def _reason(self, error: Exception) -> str:
        if not self.is_text:
            return f"not a whole Parquet file ({first_line(error)})."
        if self._invalid:
            row = self._invalid[0]
            return (
                f"row {row.number - 1} has {row.actual_columns} values where the header has "
                f"{row.expected_columns} columns: {row.text[:60]!r}."
            )
        if "invalid UTF8" in str(error):
            return f"{_undecodable(self._source)}; save the file as UTF-8."
        return f"{first_line(error)}."


def format_of(path: str) -> str:
    """``"csv"`` or ``"parquet"``, by the ending of the name."""
    lower = path.lower()
    if path == "-" or lower.endswith(_CSV):
        return "csv"
    if lower.endswith(_PARQUET):
        return "parquet"
    raise TableError(
        f"{path}: unknown kind of table; the name must end in {', '.join(_CSV + _PARQUET)}, "
        'or be "-" for CSV on standard input or output.'
    )


def has_tabs(path: str) -> bool:
    """Whether the name of a text file says that tabs stand between the values."""
    return path.lower().endswith(_TSV)


def _check_file(path: str) -> None:
    """Before the name's ending is judged: is there a file, and may it be read."""
    if Path(path).is_dir():
        raise TableError(f"{path}: it is a folder; name a file in it.")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}.") from error


@contextmanager
def _opened(path: str) -> Generator[IO[bytes]]:
    if path == "-":
        yield sys.stdin.buffer
        return
    with open(path, "rb") as file:
        if path.lower().endswith(".gz"):
            with gzip.open(file) as unpacked:
                yield unpacked  # pyright: ignore[reportReturnType] (it reads bytes)
        else:
            yield file


def _remember(rows: list[Any], row: Any) -> str:
    rows.append(row)
    return "error"


def _delimiter(start: bytes) -> str:
    """The most frequent of the usual ones in the header; a comma where there is none."""
    line = start.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n")[0].decode("utf-8", "replace")
    outside = "".join(line.split('"')[::2])
    return max(",;\t|", key=outside.count)


def _header(path: str, start: bytes, delimiter: str) -> tuple[str, ...]:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path}: it is UTF-16; save the file as UTF-8.")
    if b"\0" in start:
        place = start.index(b"\0")
        raise TableError(f"{path}: byte {place} is zero: this is not a text file.")
    end = len(start) if len(start) < _START_BYTES else start.rfind(b"\n") + 1
    try:
        text = start[:end].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = start[: error.start].count(b"\n")
        where = f"row {row}" if row else "the header"
        raise TableError(
            f"{path}: {where}: byte {error.start} (0x{start[error.start]:02x}) is not UTF-8; "
            "save the file as UTF-8."
        ) from error
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    return tuple(next(row for row in rows if row))


def _check_names(path: str, names: Sequence[str]) -> None:
    if not names:
        raise TableError(f"{path}: it has no columns.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f'{path}: two columns are called "{name}"; rename one of them.')
        seen.add(name)


def _undecodable(path: str) -> str:
    """Where the first byte stands that is not UTF-8."""
    if path == "-":
        return "a value is not UTF-8"
    with _opened(path) as file:
        position = 0
        for row, line in enumerate(file):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                at = position + error.start
                return f"row {row}: byte {at} (0x{line[error.start]:02x}) is not UTF-8"
            position += len(line)
    return "a value is not UTF-8"


def first_line(error: Exception) -> str:
    """The first line of a message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
