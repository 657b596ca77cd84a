"""Tables in files: CSV and Parquet, whole or in batches.

The ending of a name gives the format: ``.csv``, ``.tsv`` (tabs between the values), both also with
``.gz``, ``.parquet`` or ``.pq``; ``-`` stands for CSV on standard input or output. A CSV value is
read as text, so that columns that only pass through come out as they went in. Every problem with a
file is a :class:`TableError`: one line that names the file, and the row or the column. Rows are
counted from 1, without the header.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from priornet.messages import InputError, first_line
from priornet.tables.csv_blocks import CsvBlocks, CsvError
from priornet.tables.raw import PANDAS_EXTENSIONS, as_frame
from priornet.tables.values import MISSING_WORDS, CellError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from priornet.tables.encoding import RawColumn

__all__ = [
    "TableError",
    "TableReader",
    "check_columns",
    "check_present",
    "convert_known_numbers",
    "convert_numbers",
    "format_of",
    "has_tabs",
    "located",
    "read_frame",
]

_TSV = (".tsv", ".tsv.gz")
_CSV, _PARQUET = (".csv", ".csv.gz", *_TSV), (".parquet", ".pq")
_LONG_TEXT, _COPIES = 256, 4  # bytes of a long text, and its copies while a model learns
_BATCH_ROWS = 65_536
_BATCH_BYTES = 64 << 20
_WIDTH = 9  # bytes of a number, or of a text without its letters, with its mask


class TableError(InputError):
    """A problem with a table; the message is one line for the person who gave it."""


@contextmanager
def located(path: str | Path, rows: int | Sequence[int] | pd.Index = 0) -> Generator[None]:
    """Turn the error for a cell into one that names the file and the row in it.

    Args:
        path: The file.
        rows: The number of rows before those at work, or the number of each of them.
    """
    try:
        yield
    except CellError as error:
        row = rows + error.row + 1 if isinstance(rows, int) else rows[error.row]
        place = f'column "{error.column}", row {row}'
        raise TableError(f"{path}: {place}: {error.problem}") from error


def read_frame(path: str | Path, known: Sequence[RawColumn] | None = None) -> pd.DataFrame:
    """Read a whole file as a frame; text columns that spell numbers throughout are numbers.

    Args:
        path: The file.
        known: Columns of a model that will read the table. Then only its numeric columns become
            numbers, so that "007" stays the label that it was in training.
    """
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    n_bytes, most = 0, _memory() // 2
    with TableReader(path) as reader:
        for batch in reader:
            batches.append(batch)
            n_bytes += sum(_bytes_to_learn_from(column) for column in batch.columns)
            if n_bytes > most:
                raise TableError(
                    f"{reader.path}: to learn from the first {reader.n_read} rows takes "
                    f"{n_bytes / 1e9:.1f} GB, half of the memory that is free; leave rows or "
                    "columns out."
                )
        table = pa.Table.from_batches(batches, reader.schema)
        if known is not None:
            table = convert_known_numbers(table, known)
        elif reader.is_text:
            table = convert_numbers(table, table.column_names)
    return as_frame(table)


def _bytes_to_learn_from(column: Any) -> int:
    """Count the bytes of a column, and the copies that learning takes of long text."""
    import pyarrow as pa

    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    is_long = is_text and column.nbytes > _LONG_TEXT * len(column)
    return (_COPIES if is_long else 1) * column.nbytes


def _memory() -> int:
    """Return the bytes of free memory, of the machine or of its container."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError):  # there may be no limit
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(OSError):  # only Linux has this file
        words = Path("/proc/meminfo").read_text().split()
        if "MemAvailable:" in words:
            sizes.append(1024 * int(words[words.index("MemAvailable:") + 1]))
    return min(sizes)


def convert_known_numbers(batch: Any, columns: Sequence[RawColumn]) -> Any:
    """Turn text into numbers in the columns that a model knows as plain numbers.

    All other text stays, so that the meaning of a cell depends on the model's column alone:
    ``20200301`` among dates is a date, also where every row of the batch is spelled like it.

    Args:
        batch: Arrow table or batch, with all or some of the columns.
        columns: The model's columns.
    """
    own = set(batch.schema.names)
    plain = [str(column.name) for column in columns if column.is_plain and column.name in own]
    booleans = {str(column.name) for column in columns if column.parser == "boolean"}
    return convert_numbers(batch, plain, booleans)


def convert_numbers(batch: Any, names: Sequence[str], booleans: Collection[str] = ()) -> Any:
    """Turn text into numbers in the columns where every value spells one.

    Args:
        batch: Arrow table or batch.
        names: Columns to look at.
        booleans: Columns in which true and false, in any case, are 1 and 0.
    """
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    words = pa.array(sorted(MISSING_WORDS))
    wanted = set(names)
    columns, fields = list(batch.columns), list(batch.schema)
    for index, name in enumerate(batch.schema.names):
        column = columns[index]
        if name not in wanted or not pa.types.is_string(column.type):
            continue
        text = pc.utf8_trim_whitespace(column)
        lower = pc.utf8_lower(text)
        is_missing = pc.is_in(lower, value_set=words)
        if name in booleans:
            for word, number in (("true", "1"), ("false", "0")):
                text = pc.if_else(pc.equal(lower, word), number, text)
        try:
            numbers = pc.cast(pc.if_else(is_missing, None, text), pa.float64())
        except pa.ArrowInvalid:
            continue
        if pc.any(pc.is_nan(numbers)).as_py():  # such as "nan(x)", a number to Arrow only
            continue
        columns[index], fields[index] = numbers, pa.field(name, numbers.type)
    return type(batch).from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


class TableReader:
    """A file read in batches, in memory that does not grow with it.

    A context manager; iterating gives Arrow batches, once.

    Args:
        path: File, or ``-``.

    Attributes:
        path: The file's name in messages.
        names: The columns.
        schema: Their Arrow types; text throughout for CSV.
        is_text: True for CSV.
        n_rows: Number of rows; None for CSV.
        n_read: Number of rows read so far.
    """

    names: tuple[str, ...]
    n_rows: int | None = None
    n_read: int = 0
    schema: pa.Schema
    is_text: bool

    def __init__(self, path: str | Path) -> None:
        self._source = str(path)
        self.path = "standard input" if self._source == "-" else self._source
        if self._source != "-":
            _check_file(self._source)
        self.is_text = format_of(self._source) == "csv"
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            with self._errors():
                self._batches = self._open(stack)
            self.names = tuple(self.schema.names)
            _check_names(self.path, self.names)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._errors():
                batch = next(self._batches, None)
            if batch is None:
                break
            self.n_read += batch.num_rows
            if batch.num_rows:
                yield batch
        if self.n_read == 0:
            raise TableError(f"{self.path}: it has a header but no rows.")

    def _open(self, stack: ExitStack) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self.is_text:
            file = stack.enter_context(_opened(self._source))
            blocks = CsvBlocks(file, "\t" if has_tabs(self._source) else None)
            self.schema = pa.schema([(name, pa.string()) for name in blocks.names])
            return blocks.batches()
        if Path(self._source).stat().st_size == 0:
            raise TableError(f"{self.path}: the file is empty.")
        parquet = stack.enter_context(_open_parquet(self._source))
        self.schema, self.n_rows = parquet.schema_arrow, parquet.metadata.num_rows
        return _checked_batches(parquet, self._source)

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Turn errors of Arrow and of the system into one line that names the file."""
        import pyarrow as pa

        try:
            yield
        except (TableError, MemoryError):
            raise
        except CsvError as error:
            raise TableError(f"{self.path}: {error}") from error
        except pa.ArrowException as error:
            whole = "not a whole Parquet file"
            raise TableError(f"{self.path}: {whole} ({first_line(error)}).") from error
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise TableError(f"{self.path}: {reason}.") from error


def format_of(path: str) -> str:
    """Return ``"csv"`` or ``"parquet"``, by the ending of the name."""
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
    """Check by the name of a text file if tabs separate its values."""
    return path.lower().endswith(_TSV)


def _check_file(path: str) -> None:
    """Refuse a folder, and a file that cannot be read, before the name's ending is judged."""
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


def _check_names(path: str, names: Sequence[str]) -> None:
    if not names:
        raise TableError(f"{path}: it has no columns.")
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f'{path}: two columns are called "{name}"; rename one of them.')


def check_columns(path: str, wanted: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a table without some of a model's columns."""
    known = set(given)
    missing = [name for name in wanted if name not in known]
    if len(missing) == 1:
        check_present(path, missing[0], given, "column")
    if missing:
        listing = ", ".join(f'"{name}"' for name in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise TableError(f"{path}: columns are missing that the model needs: {listing}{more}.")


def check_present(path: str, name: str, given: Sequence[str], what: str) -> None:
    """Refuse a table without a column; ``what`` names the column's purpose."""
    if name in given:
        return
    close = get_close_matches(name, list(given), 1)
    hint = f'did you mean "{close[0]}"' if close else f"it has: {', '.join(list(given)[:10])}"
    raise TableError(f'{path}: the {what} "{name}" is not in the table; {hint}.')


def _open_parquet(path: str, **options: Any) -> Any:
    """Open a file; types that pandas keeps in Arrow by names of its own are known."""
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


def _checked_batches(file: Any, path: str) -> Iterator[pa.RecordBatch]:
    """Read all rows in batches of bounded memory; refuse text that is not UTF-8.

    A dictionary of one long text and a count of rows are a few hundred bytes in a file, and
    gigabytes when every row gets its copy. So a batch has as many rows as fit a budget at worst.
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
    """Return the bytes that a row takes in a column; at worst, for repeated text."""
    column = group.column(index)
    n_values = column.num_values / max(group.num_rows, 1)  # above 1 in lists
    if column.physical_type not in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return _WIDTH * n_values
    stored = column.total_uncompressed_size / max(group.num_rows, 1)
    if longest is None and any(name.startswith("DELTA_BYTE") for name in column.encodings):
        longest = column.total_uncompressed_size  # each text may repeat the one before
    return (_WIDTH + (longest or 0)) * n_values + stored


def _text_columns(file: Any) -> dict[int, str]:
    """Return the paths of the text columns by their numbers."""
    schema = file.metadata.schema
    columns = [schema.column(j) for j in range(len(schema))]
    return {j: c.path for j, c in enumerate(columns) if c.physical_type == "BYTE_ARRAY"}


def _longest_entries(
    path: str, groups: list[Any], texts: dict[int, str]
) -> dict[tuple[int, int], int]:
    """Measure the longest text in the dictionary of each column of each group."""
    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    found: dict[tuple[int, int], int] = {}
    with _open_parquet(path, read_dictionary=list(texts.values())) as file:
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
