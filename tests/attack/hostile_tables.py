"""Files that are damaged, mislabelled or badly written: one line of refusal, or every row.

Each try spoils a table of known rows. What fit and what predict read either has all the rows that
must be there, or is refused in one line; a traceback is neither.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attack.trial import Attack, Counts
from priornet.messages import InputError, blamed_on
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.read import (
    TableError,
    TableReader,
    check_columns,
    convert_known_numbers,
    located,
    read_labelled,
)

__all__ = ["ATTACKS"]

_WORDS = ["red", "blue", "a, b", 'say "no"', "two\nlines", "é", "", '5" pipe', "x;y", "tab\t"]


@dataclass
class Spoilt:
    """A file, and what must be read from it where anything is.

    Attributes:
        content: Its bytes.
        name: Its name.
        ids: The first values of all rows that must be there; None where the damage may have taken
            rows in ways that nobody can see.
    """

    content: bytes
    name: str = "x.csv"
    ids: list[str] | None = None


class Table:
    """Rows with an id in front: text, numbers and a target, as lists of what CSV spells."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.n_rows = int(rng.integers(3, 40))
        self.header = ["id", "word", *[f"n{j}" for j in range(rng.integers(1, 4))], "y"]
        numbers = rng.normal(size=(self.n_rows, len(self.header) - 2)).round(3).astype(str)
        words = [str(word) for word in rng.choice(_WORDS, self.n_rows)]
        self.rows = [
            [f"r{i:03d}", word, *row]
            for i, (word, row) in enumerate(zip(words, numbers.tolist(), strict=True))
        ]
        self.end = str(rng.choice(["\n", "\r\n"]))
        self.quoting: Any = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))

    @property
    def ids(self) -> list[str]:
        """The first value of each row."""
        return [row[0] for row in self.rows]

    def text(self, delimiter: str = ",", end: str | None = None) -> str:
        """As CSV."""
        written = io.StringIO()
        writer = csv.writer(
            written, delimiter=delimiter, quoting=self.quoting, lineterminator=end or self.end
        )
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return written.getvalue()

    def plain(self) -> list[list[str]]:
        """The rows without characters that need quotes."""
        words = ["red" if set(row[1]) & set(',"\n;\t') else row[1] for row in self.rows]
        return [[row[0], word, *row[2:]] for row, word in zip(self.rows, words, strict=True)]

    def lines(self, rows: list[list[str]]) -> bytes:
        """Lines of values as they stand, nothing in quotes."""
        return self.end.join(",".join(row) for row in [self.header, *rows, []]).encode()

    def place(self) -> tuple[int, int]:
        """Any row, and any column but the first."""
        return int(self.rng.integers(self.n_rows)), int(self.rng.integers(1, len(self.header)))

    def parquet(self) -> bytes:
        """As Parquet."""
        frame = pd.DataFrame(self.rows, columns=pd.Index(self.header))
        for name in self.header[2:]:
            frame[name] = frame[name].astype(float)
        written = io.BytesIO()
        frame.to_parquet(written, index=False)
        return written.getvalue()


def _opened_quote(table: Table) -> Spoilt:
    """A quote in front of a value, which nobody closes; or of several."""
    rows = table.plain()
    for _ in range(table.rng.integers(1, 4)):
        i, j = table.place()
        rows[i][j] = '"' + rows[i][j]
    return Spoilt(table.lines(rows), ids=table.ids)


def _ditto(table: Table) -> Spoilt:
    """A quote for a value, in some rows of a column."""
    rows, (_, j) = table.plain(), table.place()
    for i in np.flatnonzero(table.rng.random(table.n_rows) < 0.5):
        rows[i][j] = '"'
    return Spoilt(table.lines(rows), ids=table.ids)


def _stray_quote(table: Table) -> Spoilt:
    """A quote somewhere in a line."""
    lines = table.text().split(table.end)
    i = int(table.rng.integers(1, len(lines)))
    at = int(table.rng.integers(len(lines[i]) + 1))
    lines[i] = lines[i][:at] + '"' + lines[i][at:]
    return Spoilt(table.end.join(lines).encode())


def _encoding(table: Table) -> Spoilt:
    """Another encoding, or bytes that are in none."""
    kind = table.rng.integers(4)
    table.rows[0][1] = "café"
    if kind < 3:
        name = ["latin-1", "utf-16", "utf-32-le"][kind]
        return Spoilt(table.text().encode(name, "replace"), ids=table.ids)
    content = table.text().encode()
    at = int(table.rng.integers(len(content)))
    wrong = [b"\xed\xa0\x80", b"\xff", b"\xc3", b"\0"][table.rng.integers(4)]
    return Spoilt(content[:at] + wrong + content[at:])


def _mark(table: Table) -> Spoilt:
    return Spoilt(b"\xef\xbb\xbf" + table.text().encode(), ids=table.ids)


def _huge(table: Table) -> Spoilt:
    """A value of up to six megabytes, or thousands of columns."""
    if table.rng.random() < 0.5:
        i = int(table.rng.integers(table.n_rows))
        table.rows[i][1] = "x" * int(table.rng.choice([70_000, 1_000_000, 6_000_000]))
    else:
        n_more = int(table.rng.integers(2500, 5000))
        table.header[2:2] = [f"a long name of a column {j}" for j in range(n_more)]
        table.rows = [[*row[:2], *["1"] * n_more, *row[2:]] for row in table.rows[:3]]
        table.n_rows = len(table.rows)
    return Spoilt(table.text().encode(), ids=table.ids)


def _cut(table: Table) -> Spoilt:
    """The start of a file; the rows that are whole must be there."""
    rows = table.plain()
    content = table.lines(rows)
    kept = content[: int(table.rng.integers(len(content)))]
    whole = max(kept.decode("utf-8", "ignore").count("\n") - 1, 0)
    return Spoilt(kept, ids=table.ids[:whole])


def _packed(table: Table) -> Spoilt:
    """A compressed file: whole, cut, damaged, or not compressed at all."""
    content = bytearray(gzip.compress(table.text().encode(), mtime=0))
    kind = table.rng.integers(4)
    if kind == 0:
        return Spoilt(bytes(content), "x.csv.gz", table.ids)
    if kind == 1:
        return Spoilt(bytes(content[: table.rng.integers(len(content))]), "x.csv.gz", table.ids)
    if kind == 2:
        for at in table.rng.integers(10, len(content), 3):
            content[at] ^= 1 << int(table.rng.integers(8))
        return Spoilt(bytes(content), "x.csv.gz", table.ids)
    return Spoilt(table.text().encode(), "x.csv.gz", table.ids)


def _mislabelled(table: Table) -> Spoilt:
    """A name that does not say what the file is."""
    contents = [
        table.text().encode(),
        table.parquet(),
        gzip.compress(table.text().encode()),
        b"PAR1",
    ]
    content = contents[table.rng.integers(len(contents))]
    return Spoilt(
        content, str(table.rng.choice(["x.parquet", "x.pq", "x.tsv", "x.tsv.gz", "x.csv"]))
    )


def _separators(table: Table) -> Spoilt:
    """Common and rare separators."""
    delimiter = str(table.rng.choice([";", "\t", "|", "^", ":", "~"]))
    is_usual = delimiter in ";\t|"
    return Spoilt(table.text(delimiter).encode(), ids=table.ids if is_usual else None)


def _header(table: Table) -> Spoilt:
    """Names twice, empty, missing, odd, or nothing else."""
    kind = table.rng.integers(6)
    if kind == 0:
        table.header[2] = "id"
    elif kind == 1:
        table.header[int(table.rng.integers(1, len(table.header)))] = ""
    elif kind == 2:
        table.header = [""] * len(table.header)
    elif kind == 3:
        table.header = [*table.header[:-2], "y"]
    elif kind == 4:
        table.header[1] = str(table.rng.choice(["\x07", "a\nb", "=1+1", "\u202e", '"', "x" * 5000]))
    else:
        table.rows, table.n_rows = [], 0
    return Spoilt(table.text().encode(), ids=table.ids)


def _line_ends(table: Table) -> Spoilt:
    """Old Macs, a mixture, empty lines between."""
    rows = [table.header, *table.plain()]
    ends = ["\r"] if table.rng.random() < 0.4 else ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]
    text = "".join(",".join(row) + str(table.rng.choice(ends)) for row in rows)
    return Spoilt(text.encode(), ids=table.ids)


def _ragged(table: Table) -> Spoilt:
    """A value too many or too few in a row."""
    row = table.rows[int(table.rng.integers(table.n_rows))]
    if table.rng.random() < 0.5:
        row.append("1")
    else:
        row.pop()
    return Spoilt(table.text().encode(), ids=table.ids)


def _empty(table: Table) -> Spoilt:
    """Nothing, or next to nothing."""
    contents = [
        b"",
        b"\n",
        b" ",
        b"\r\n\r\n",
        b"\xef\xbb\xbf",
        b'"',
        b",",
        b"\0",
        b'""',
        b"y",
        b"\r",
    ]
    content = contents[table.rng.integers(len(contents))]
    return Spoilt(content, str(table.rng.choice(["x.csv", "x.tsv", "x.parquet"])))


def _values(table: Table) -> Spoilt:
    """Values that are no numbers, or numbers that are no values."""
    odd = [
        "inf",
        "1e999",
        "-nan",
        "nan(x)",
        "1_000",
        "0x10",
        "١٢",
        "1,5",
        "9" * 400,
        "\x1b[31m",
        "=",
    ]
    i, j = table.place()
    table.rows[i][j] = str(table.rng.choice(odd))
    return Spoilt(table.text().encode(), ids=table.ids)


def _flipped(table: Table) -> Spoilt:
    """Some bits of a file turned."""
    content = bytearray(table.text().encode())
    for _ in range(table.rng.integers(1, 4)):
        content[table.rng.integers(len(content))] ^= 1 << int(table.rng.integers(8))
    return Spoilt(bytes(content))


def _damaged_parquet(table: Table) -> Spoilt:
    """Parquet with bytes turned, taken out, or missing at the end."""
    content = bytearray(table.parquet())
    kind = table.rng.integers(3)
    if kind == 0:
        for _ in range(table.rng.integers(1, 6)):
            content[table.rng.integers(len(content))] ^= 1 << int(table.rng.integers(8))
    elif kind == 1:
        content = content[: table.rng.integers(len(content))]
    else:
        at = int(table.rng.integers(len(content)))
        del content[at : at + int(table.rng.integers(1, 50))]
    return Spoilt(bytes(content), "x.parquet")


_WAYS: tuple[Callable[[Table], Spoilt], ...] = (
    *(_opened_quote, _opened_quote, _ditto, _stray_quote, _encoding, _mark, _cut, _packed),
    *(_mislabelled, _separators, _header, _line_ends, _ragged, _empty, _values, _flipped),
    *(_damaged_parquet, lambda table: Spoilt(table.text().encode(), ids=table.ids)),
)
_RARE = 0.02  # of huge values, which take long


def _read_to_fit(path: Path, _: TablePreprocessor) -> list[str] | None:
    """Read as fit does; None where it leaves out rows without a target, and says so."""
    rows = read_labelled(str(path), ["y"], None)
    with blamed_on(path), located(str(path), rows.features.index):
        TablePreprocessor().fit(rows.features)
    if rows.n_left_out:
        return None
    return [str(value) for value in rows.features.iloc[:, 0]]


def _read_to_predict(path: Path, prep: TablePreprocessor) -> list[str]:
    """Read as predict does."""
    names = [str(name) for name in prep.feature_names_in_ or ()]
    found: list[str] = []
    with TableReader(path) as reader:
        check_columns(reader.path, names, reader.names)
        for batch in reader:
            rows = convert_known_numbers(batch.select(names), prep.columns_)
            with blamed_on(path), located(reader.path, len(found)):
                prep.transform(rows)
            found += [str(value) for value in batch.column(0).to_pylist()]
    return found


def _look(path: Path, spoilt: Spoilt, prep: TablePreprocessor, counts: Counts) -> None:
    taken: list[bool] = []
    for read in (_read_to_fit, _read_to_predict):
        try:
            found = read(path, prep)
        except (TableError, InputError) as error:
            counts["messages_without_the_file"] += path.name not in str(error)
            taken.append(False)
        except Exception:  # whatever else comes is what this attack looks for
            counts["tracebacks"] += 1
            taken.append(False)
        else:
            taken.append(True)
            if spoilt.ids is not None and found is not None:
                counts["rows_vanished"] += found[: len(spoilt.ids)] != spoilt.ids
    counts["read"] += any(taken)
    counts["refused"] += not any(taken)


def hostile_tables(seed: int, tries: int, folder: Path) -> Counts:
    """Spoil tables, and read each as fit and as predict do."""
    zero = ("tracebacks", "rows_vanished", "messages_without_the_file", "read", "refused")
    counts = {"tries": tries, **dict.fromkeys(zero, 0)}

    def unraisable(_: Any) -> None:  # what a callback raises, which Python prints and forgets
        counts["tracebacks"] += 1

    kept, sys.unraisablehook = sys.unraisablehook, unraisable
    try:
        _spoil_and_look(seed, tries, folder, counts)
    finally:
        sys.unraisablehook = kept
    return counts


def _spoil_and_look(seed: int, tries: int, folder: Path, counts: Counts) -> None:
    for number in range(tries):
        rng = np.random.default_rng([seed, number])
        table = Table(rng)
        whole = pd.DataFrame(table.rows, columns=pd.Index(table.header)).drop(columns="y")
        prep = TablePreprocessor().fit(whole)
        spoil = _huge if rng.random() < _RARE else _WAYS[rng.integers(len(_WAYS))]
        spoilt = spoil(table)
        path = folder / spoilt.name
        path.write_bytes(spoilt.content)
        _look(path, spoilt, prep, counts)
        path.unlink()


ATTACKS = (
    Attack(
        "hostile-tables",
        "A damaged or badly written table is refused in one line, or every row of it is read.",
        hostile_tables,
        5000,
        ("tracebacks", "rows_vanished", "messages_without_the_file"),
    ),
)
