"""Table files: in batches, as a frame, or as features and targets.

The ending of a name gives the format: ``.csv``, ``.tsv`` (tabs between the values), both also with
``.gz``, ``.parquet`` or ``.pq``; ``-`` stands for CSV on standard input or output. A CSV value is
read as text, so that columns that only pass through come out as they went in. Every problem with a
file is a :class:`TableError`: one line that names the file, and the row or the column. Rows are
counted from 1, without the header.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from priornet.messages import InputError, blamed_on, called, counted, first_line
from priornet.tables.formats import CsvBlocks, CsvError, open_parquet, parquet_batches
from priornet.tables.memory import free_memory
from priornet.tables.raw import as_frame, read_table, unnamed_indices
from priornet.tables.values import (
    MISSING_WORDS,
    CellError,
    FloatArray,
    Texts,
    decimals_among_thousands,
    parse_labels,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from priornet.tables.encoding import RawColumn

Format = Literal["csv", "tsv", "parquet"]

_FORMATS: dict[str, Format] = {  # by the ending of the name
    **{".csv": "csv", ".csv.gz": "csv", ".tsv": "tsv", ".tsv.gz": "tsv"},
    **{".parquet": "parquet", ".pq": "parquet"},
}
_LONG_TEXT, _COPIES = 256, 4  # bytes of a long text, and its copies while a model learns


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


def format_of(path: str) -> Format:
    """Return the format of a file by the ending of its name."""
    if path == "-":
        return "csv"
    for ending, kind in _FORMATS.items():
        if path.lower().endswith(ending):
            return kind
    raise TableError(
        f"{path}: unknown kind of table; the name must end in {', '.join(_FORMATS)}, "
        'or be "-" for CSV on standard input or output.'
    )


# -- batches of rows -------------------------------------------------------------------------------


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

    def __init__(self, path: str | Path) -> None:
        self._source, self.path = str(path), called(path)
        if self._source != "-":
            _check_file(self._source)
        self._format = format_of(self._source)
        self.is_text = self._format != "parquet"
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            with self._errors():
                self._batches = self._open(stack)
            self.names = tuple(self.schema.names)
            if not self.names:
                raise TableError(f"{self.path}: it has no columns.")
            twice = [name for name, count in Counter(self.names).items() if count > 1]
            if twice:
                raise TableError(
                    f'{self.path}: two columns are called "{twice[0]}"; rename one of them.'
                )
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
        """Open the file; set the schema and the number of rows, and return the batches."""
        import pyarrow as pa

        if not self.is_text:
            if Path(self._source).stat().st_size == 0:
                raise TableError(f"{self.path}: the file is empty.")
            parquet = stack.enter_context(open_parquet(self._source))
            self.schema, self.n_rows = parquet.schema_arrow, parquet.metadata.num_rows
            return parquet_batches(parquet, self._source)
        file: Any = sys.stdin.buffer
        if self._source != "-":
            unpack: Any = gzip.open if self._source.lower().endswith(".gz") else open
            file = stack.enter_context(unpack(self._source, "rb"))
        blocks = CsvBlocks(file, "\t" if self._format == "tsv" else None)
        self.schema = pa.schema([(name, pa.string()) for name in blocks.names])
        return blocks.batches()

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Turn errors of Arrow and of the system into one line that names the file."""
        import pyarrow as pa

        try:
            yield
        except MemoryError:  # Arrow has one of its own
            raise
        except CsvError as error:
            raise TableError(f"{self.path}: {error}") from error
        except pa.ArrowException as error:
            whole = "not a whole Parquet file"
            raise TableError(f"{self.path}: {whole} ({first_line(error)}).") from error
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise TableError(f"{self.path}: {reason}.") from error


def _check_file(path: str) -> None:
    """Refuse a folder, and a file that cannot be read, before the name's ending is judged."""
    if Path(path).is_dir():
        raise TableError(f"{path}: it is a folder; name a file in it.")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}.") from error


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


def convert_known_numbers(batch: Any, columns: Sequence[RawColumn]) -> Any:
    """Turn text into numbers in the columns that a model knows as plain numbers.

    All other text stays, so that the meaning of a cell depends on the model's column alone:
    ``20200301`` among dates is a date, also where every row of the batch is spelled like it.

    Args:
        batch: Arrow table or batch, with all or some of the columns.
        columns: The model's columns.
    """
    plain = [str(column.name) for column in columns if column.is_plain]
    booleans = {str(column.name) for column in columns if column.parser == "boolean"}
    return convert_numbers(batch, plain, booleans)


def convert_numbers(batch: Any, names: Collection[str], booleans: Collection[str] = ()) -> Any:
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


# -- whole files -----------------------------------------------------------------------------------


def read_frame(path: str | Path, known: Sequence[RawColumn] | None = None) -> pd.DataFrame:
    """Read a whole file as a frame; text columns that spell numbers throughout are numbers.

    Args:
        path: The file.
        known: Columns of a model that will read the table. Then only its numeric columns become
            numbers, so that "007" stays the label that it was in training.
    """
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    n_bytes, most = 0, free_memory() // 2
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


@dataclass(frozen=True)
class Labelled:
    """Rows with targets.

    Attributes:
        features: The other columns; its index counts the rows of the file from 1.
        targets: Target columns, float64, same index.
        n_left_out: Number of rows without target, left out.
        n_read: Number of rows of the file.
        index: Columns of the file that hold the unnamed index of a frame; features of no model.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    n_left_out: int
    n_read: int
    index: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> Labelled:
        """Take some of the rows, by position."""
        return replace(self, features=self.features.iloc[rows], targets=self.targets.iloc[rows])

    @property
    def y(self) -> Any:
        """Return the targets as estimators take them: one column as a vector."""
        return self.targets.iloc[:, 0] if self.targets.shape[1] == 1 else self.targets

    @property
    def notes(self) -> list[str]:
        """List sentences about rows and columns that were left out."""
        found = [f'"{name}" is an index without a name and was left out.' for name in self.index]
        if self.n_left_out:
            has, was = ("has", "was") if self.n_left_out == 1 else ("have", "were")
            found.insert(0, f"{counted(self.n_left_out)} {has} no target and {was} left out.")
        return found


def read_labelled(
    path: str,
    targets: Sequence[str],
    features: Sequence[str] | None,
    ignored: Sequence[str] = (),
    known: Sequence[RawColumn] | None = None,
) -> Labelled:
    """Read a file, and separate its targets from its features.

    Args:
        path: CSV or Parquet.
        targets: Target columns.
        features: Columns of a model; by default all other columns.
        ignored: Columns to leave out.
        known: Columns of a model that will read the table.
    """
    frame = read_frame(path, known)
    path = called(path)
    _check_roles(path, list(frame.columns), targets, ignored)
    index: tuple[str, ...] = ()
    if features is None:
        features = [name for name in frame.columns if name not in {*targets, *ignored}]
        index = tuple(name for name in unnamed_indices(frame) if name in features)
        features = [name for name in features if name not in index]
        if not features:
            raise InputError(f"{path}: no column is left to predict from.")
    check_columns(path, features, list(frame.columns))
    frame.index = np.arange(1, len(frame) + 1)
    with blamed_on(path):
        values = frame[[]].assign(**{name: _numeric_target(path, frame, name) for name in targets})
    kept = np.flatnonzero(values.notna().all(axis=1))
    if len(kept) == 0:
        raise InputError(f'{path}: the target "{targets[0]}" has no value at all.')
    left_out = len(frame) - len(kept)
    whole = Labelled(frame.filter(list(features)), values, left_out, len(frame), index)
    return whole.take(kept)


def read_features(
    path: str, features: Sequence[str], known: Sequence[RawColumn] | None = None
) -> pd.DataFrame:
    """Read the columns of a model from a file that need not have targets."""
    frame = read_frame(path, known)
    check_columns(path, features, list(frame.columns))
    return frame.filter(list(features))


def _check_roles(
    path: str, given: Sequence[str], targets: Sequence[str], ignored: Sequence[str]
) -> None:
    for names, what in ((targets, "target"), (ignored, "column to ignore")):
        for name in names:
            check_present(path, name, given, what)
    if len(set(targets)) < len(targets):
        raise InputError(f"a target is named twice: {', '.join(targets)}.")
    for name in targets:
        if name in ignored:
            raise InputError(f'the target "{name}" is also to be ignored; name it once.')


def _numeric_target(path: str, frame: pd.DataFrame, name: str) -> FloatArray:
    """Read one target column as numbers, nan where a value is missing."""
    column = read_table(frame[[name]]).column(0)
    if isinstance(column, Texts):
        parsed = parse_labels(column.labels)
        if parsed is None or parsed[0] == "date":
            raise _no_number(path, name, column)
        values = column.lookup(parsed[1], np.nan)
    elif column.is_date:
        raise InputError(f'{path}: the target "{name}" holds dates; it must be numeric.')
    else:
        values = column.values
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values))) + 1
        raise InputError(
            f'{path}: the target "{name}" is infinite in row {row}; give a number, or leave it '
            "empty: rows without a target are left out."
        )
    return values


def _no_number(path: str, name: str, column: Texts) -> InputError:
    """Make the error for the first value of a target that is no number."""
    odd = decimals_among_thousands(column.labels)
    wrong = [
        label in odd if odd else parse_labels([label], "number") is None for label in column.labels
    ]
    row = int(np.argmax(column.lookup(wrong, False)))
    text = column.labels[column.codes[row]][:80]
    why = ", though most commas group thousands: write all with a point" if odd else ""
    return InputError(
        f'{path}: the target "{name}" must be numeric; row {row + 1} holds "{text}"{why}.'
    )
