"""CSV and Parquet files, cut into batches of bounded memory.

CSV is cut where a row ends and parsed block by block. To Arrow, a quote that is not closed opens a
text that ends with the file. So quotes are paired here first: a quote that opens a value must be
closed before a separator or a line end. Quotes in the middle of a value are part of the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priornet.messages import first_line
from priornet.tables.raw import PANDAS_EXTENSIONS

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 4 << 20
_START_BYTES = 1 << 16
_LONGEST_ROW = 1 << 28
_LONGEST_HEADER = 1 << 24
_QUOTE, _LF, _CR = b'"\n\r'
_BATCH_ROWS = 65_536  # of Parquet
_BATCH_BYTES = 64 << 20
_WIDTH = 9  # bytes of a number, or of a text without its letters, with its mask
_MARK = b"\xef\xbb\xbf"  # some programs put it in front of UTF-8
_SEPARATORS = ",;\t|"  # a header without any has the first
_WRONG_ROW = re.compile(
    r"Row #(?P<row>\d+): Expected (?P<wanted>\d+) columns, got (?P<found>\d+): (?P<text>.*)"
)

Positions = NDArray[np.intp]


class CsvError(ValueError):
    """Text that is not CSV; the message names the line."""


class Block(NamedTuple):
    """The bytes of whole rows, the bytes of the file before them, and their first line, from 1."""

    text: bytes
    start: int
    line: int


class CsvBlocks:
    """A file of CSV, cut into blocks of whole rows; iterating gives them, once.

    Args:
        file: Its bytes; read once, from the start to the end.
        delimiter: The separator of values; by default the most frequent of four in the header.

    Attributes:
        names: The values of the header.
        delimiter: The separator of values.
    """

    def __init__(self, file: IO[bytes], delimiter: str | None) -> None:
        self._file, self._is_over = file, False
        self._pending = b""
        self._start, self._line = 0, 1
        self.names: tuple[str, ...] = ()
        self.delimiter = delimiter or ","
        self._read(_START_BYTES)
        if self._pending.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise CsvError("it is UTF-16; save the file as UTF-8.")
        self._check_for_zeros(0)
        if self._pending.startswith(_MARK):
            self._take(len(_MARK))
        while True:
            self._take(len(self._pending) - len(self._pending.lstrip(b"\r\n")))
            if _first_line_end(self._pending) or self._is_over:
                break
            self._read_more(_LONGEST_HEADER, "the header")
        if not self._pending.strip():
            raise CsvError("the file is empty.")
        if delimiter is None:
            self.delimiter = _separator(self._pending[: _first_line_end(self._pending) or None])
        while not (end := self._row_ends(first=True)):
            self._read_more(_LONGEST_HEADER, "the header")
        self.names = _names(self._take(end), self.delimiter)

    def __iter__(self) -> Iterator[Block]:
        while True:
            self._read(max(_BLOCK_BYTES - len(self._pending), 0))
            if not self._pending:
                return
            while not (end := self._row_ends(first=False)):
                self._read_more(_LONGEST_ROW, "a row")
            yield self._take(end)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Parse the rows: batches of text columns."""
        import pyarrow as pa
        import pyarrow.csv

        n_rows = 0
        # Only on one thread Arrow knows which row is wrong. Columns have numbers for names
        # meanwhile: two columns of one name are refused by name later.
        numbers = [str(j) for j in range(len(self.names))]
        parse = pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(numbers, pa.string()))
        for block in self:
            read = pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(block.text) + 1, column_names=numbers
            )
            try:
                table = pyarrow.csv.read_csv(pa.BufferReader(block.text), read, parse, convert)
            except pa.ArrowInvalid as error:
                raise _invalid(error, block, n_rows) from error
            n_rows += table.num_rows
            yield from table.rename_columns(self.names).to_batches()

    def _read(self, size: int) -> None:
        """Read ``size`` bytes, or up to the end; never half a line end."""
        pieces = [self._pending]
        while (size > 0 or pieces[-1].endswith(b"\r")) and not self._is_over:
            piece = self._file.read(max(size, 1))
            self._is_over = not piece
            if piece:
                pieces.append(piece)
                size -= len(piece)
        known = len(self._pending)
        self._pending = b"".join(pieces)
        if self._start or known:  # the start is checked for UTF-16 first, which has zeros too
            self._check_for_zeros(known)

    def _check_for_zeros(self, start: int) -> None:
        place = self._pending.find(b"\0", start)
        if place >= 0:
            raise CsvError(f"byte {self._start + place} is zero: this is not a text file.")

    def _read_more(self, longest: int, what: str) -> None:
        """Read as much again as is pending; refuse a row that goes on for ever."""
        if len(self._pending) > longest:
            raise CsvError(
                f"line {self._line}: {what} that begins there is longer than {longest >> 20} MiB; "
                "is a quote not closed, or is this not CSV?"
            )
        self._read(max(len(self._pending), _START_BYTES))

    def _take(self, size: int) -> Block:
        block = Block(self._pending[:size], self._start, self._line)
        self._pending = self._pending[size:]
        self._start += size
        self._line += _n_lines(block.text)
        return block

    def _row_ends(self, *, first: bool) -> int:
        """Count the bytes up to the end of the first or last whole row; 0 if no row ends yet."""
        text = self._pending
        if _QUOTE not in text:
            ends = _first_line_end(text) if first else max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            return len(text) if self._is_over and (not first or not ends) else ends
        data = np.frombuffer(text, np.uint8)
        opens, closes = self._quoted(data)
        lines = np.flatnonzero((data == _LF) | (data == _CR))
        if len(opens) > len(closes) and self._is_over:
            raise self._unclosed(int(opens[-1]))
        is_end = np.searchsorted(opens, lines) == np.searchsorted(closes, lines)
        ends = lines[is_end] + 1
        if not is_end.all():
            self._check_lines(data, opens[: len(closes)], closes, lines)
        if self._is_over and not (first and len(ends)):
            return len(text)
        if not len(ends):
            return 0
        return _after_pair(text, int(ends[0])) if first else int(ends[-1])

    def _quoted(self, data: NDArray[np.uint8]) -> tuple[Positions, Positions]:
        """Find where quoted parts open and close; the last may be open still.

        A doubled quote, which stands for one, closes a part and opens the next.
        """
        quotes = np.flatnonzero(data == _QUOTE)
        opens, closes = quotes[0::2], quotes[1::2]
        ends = np.zeros(256, bool)  # characters around values
        ends[[ord(self.delimiter), _LF, _CR]] = True
        begins, is_whole = ends[data[opens - 1]], ends[data[np.minimum(closes + 1, len(data) - 1)]]
        begins[:1] |= opens[:1] == 0
        is_whole[-1:] |= closes[-1:] == len(data) - 1
        n_again = len(opens) - 1
        is_doubled = opens[1:] == closes[:n_again] + 1
        begins[1:] |= is_doubled
        is_whole[:n_again] |= is_doubled
        if begins.all() and is_whole.all():
            return opens, closes
        return self._paired(data, quotes, np.flatnonzero(ends).tolist())

    def _paired(
        self, data: NDArray[np.uint8], quotes: Positions, separators: list[int]
    ) -> tuple[Positions, Positions]:
        """Find the pairs of quotes one by one, where some stand in the middle of values."""
        opens: list[int] = []
        closes: list[int] = []
        is_open = False
        places = iter(quotes.tolist())
        for place in places:
            before = int(data[place - 1]) if place else _LF
            after = int(data[place + 1]) if place + 1 < len(data) else _LF
            if not is_open:
                is_open = before in separators
                if is_open:
                    opens.append(place)
            elif after == _QUOTE:
                next(places)
            else:
                part = data[opens[-1] : place]
                is_spaced = after in b" \t" and not ((part == _LF) | (part == _CR)).any()
                if after not in separators and not is_spaced:
                    raise self._unclosed(opens[-1])
                closes.append(place)
                is_open = False
        return np.array(opens, np.intp), np.array(closes, np.intp)

    def _check_lines(
        self, data: NDArray[np.uint8], opens: Positions, closes: Positions, lines: Positions
    ) -> None:
        """Refuse a quoted part of several lines each of which is as good as a row.

        It begins with a quote that opens a value and ends with another that would open one too:
        two single quotes, such as inches or ditto marks, that have swallowed what is between.
        """
        if len(self.names) < 2:
            return
        separator = ord(self.delimiter)
        is_long = np.searchsorted(lines, opens) < np.searchsorted(lines, closes)
        is_odd = is_long & (data[closes - 1] == separator) & (closes - 1 > opens)
        for first, last in zip(opens[is_odd].tolist(), closes[is_odd].tolist(), strict=True):
            place = np.searchsorted(lines, [first, last])
            start = int(lines[place[0] - 1]) + 1 if place[0] else 0
            end = int(lines[place[1]]) if place[1] < len(lines) else len(data)
            texts = data[start:end].tobytes().splitlines()
            if all(text.count(separator) == len(self.names) - 1 for text in texts if text):
                raise self._unclosed(first)

    def _unclosed(self, place: int) -> CsvError:
        line = self._line + _n_lines(self._pending[:place])
        return CsvError(
            f"line {line}: the quote that opens a value there is not closed where the value ends; "
            'close it, or write the value in quotes with "" for a quote.'
        )


def _invalid(error: Exception, block: Block, n_rows: int) -> CsvError:
    """Make the error for a block that Arrow cannot parse: it names the row of the file."""
    row = _WRONG_ROW.search(str(error))
    if row is not None:
        return CsvError(
            f"row {n_rows + int(row['row'])} has {row['found']} values where the header has "
            f"{row['wanted']} columns: {row['text'][:60]!r}."
        )
    try:
        block.text.decode()
    except UnicodeDecodeError as wrong:
        line = block.line - 1 + block.text.count(b"\n", 0, wrong.start)
        return CsvError(f"row {line}: {_not_utf8(block, wrong)}")
    return CsvError(f"{first_line(error)}.")


def _not_utf8(block: Block, error: UnicodeDecodeError) -> str:
    byte = block.text[error.start]
    return f"byte {block.start + error.start} (0x{byte:02x}) is not UTF-8; save the file as UTF-8."


def _n_lines(text: bytes) -> int:
    """Count the line ends of Unix, Windows, or old Macs."""
    n_lines = text.count(b"\n")
    return n_lines + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else n_lines


def _first_line_end(text: bytes) -> int:
    """Count the bytes up to the end of the first line; 0 if no line ends."""
    places = [place for place in (text.find(b"\n"), text.find(b"\r")) if place >= 0]
    return _after_pair(text, min(places) + 1) if places else 0


def _after_pair(text: bytes, end: int) -> int:
    r"""Move the end of a line behind ``\n`` where it is ``\r\n``."""
    return end + (text[end - 1 : end + 1] == b"\r\n")


def _separator(line: bytes) -> str:
    """Find the most frequent separator outside quotes."""
    outside = b"".join(line.split(b'"')[::2]).decode("utf-8", "replace")
    return max(_SEPARATORS, key=outside.count)


def _names(header: Block, delimiter: str) -> tuple[str, ...]:
    import pyarrow as pa
    import pyarrow.csv

    try:
        header.text.decode()
    except UnicodeDecodeError as error:
        raise CsvError(f"the header: {_not_utf8(header, error)}") from error
    table: Any = pyarrow.csv.read_csv(
        pa.BufferReader(header.text.rstrip(b"\r\n") + b"\n"),
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(header.text) + 2),
        pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    )
    return tuple(table.column_names)


# -- Parquet ---------------------------------------------------------------------------------------


def open_parquet(path: str, **options: Any) -> Any:
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


def parquet_batches(file: Any, path: str) -> Iterator[pa.RecordBatch]:
    """Read all rows in batches of bounded memory; refuse text that is not UTF-8.

    A dictionary of one long text and a count of rows are a few hundred bytes in a file, and
    gigabytes when every row gets its copy. So a batch has as many rows as fit a budget at worst.
    """
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    longest = _longest_entries(file, groups, path)
    worst = max(
        (
            sum(_bytes_per_row(group, j, longest.get((g, j))) for j in range(group.num_columns))
            for g, group in enumerate(groups)
        ),
        default=1,
    )
    n_rows = max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / max(worst, 1))))
    for batch in file.iter_batches(batch_size=n_rows):
        batch.validate(full=True)
        yield batch


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


def _longest_entries(file: Any, groups: list[Any], path: str) -> dict[tuple[int, int], int]:
    """Measure the longest text in the dictionary of each text column of each group."""
    pc: Any = import_module("pyarrow.compute")  # its functions are made when it is imported
    schema = file.metadata.schema
    columns = [schema.column(j) for j in range(len(schema))]
    texts = {j: c.path for j, c in enumerate(columns) if c.physical_type == "BYTE_ARRAY"}
    found: dict[tuple[int, int], int] = {}
    if not texts:
        return found
    with open_parquet(path, read_dictionary=list(texts.values())) as dictionaries:
        for g, group in enumerate(groups):
            for j, name in texts.items():
                size = group.column(j).total_uncompressed_size
                is_small = size * _BATCH_ROWS <= _BATCH_BYTES // len(texts)
                if is_small or not group.column(j).has_dictionary_page:
                    continue
                found[g, j] = size
                batch = next(dictionaries.iter_batches(1, row_groups=[g], columns=[name]), None)
                if batch is not None and hasattr(batch.column(0), "dictionary"):
                    lengths = pc.binary_length(batch.column(0).dictionary)
                    found[g, j] = pc.max(lengths).as_py() or 0
    return found
