"""CSV is cut where rows end; a quote that swallows rows is refused with the line where it opens."""

import csv
import io

import numpy as np
import pytest

from priornet.tables import formats
from priornet.tables.formats import CsvBlocks, CsvError


def blocks(text, delimiter=None):
    return CsvBlocks(io.BytesIO(text if isinstance(text, bytes) else text.encode()), delimiter)


def whole(text):
    return b"".join(block.text for block in blocks(text))


def random_rows(rng, n_rows, n_columns):
    """Draw values with every character that has a meaning in CSV."""
    letters = ["a", "b", " ", ",", ";", '"', "\n", "\r\n", "\r", "é", ""]
    return [
        ["".join(rng.choice(letters, rng.integers(0, 6))) for _ in range(n_columns)]
        for _ in range(n_rows)
    ]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 16])
def test_blocks_end_where_rows_end(monkeypatch, size):
    monkeypatch.setattr(formats, "_START_BYTES", size)
    monkeypatch.setattr(formats, "_BLOCK_BYTES", size)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = [[f"{i}.", *row, "."] for i, row in enumerate(random_rows(rng, 40, 2))]
        written = io.StringIO()
        if seed % 2:
            writer = csv.writer(written, lineterminator="\r\n")
        else:
            writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(["i", "a", "b", "c"])
        writer.writerows(rows)
        found = blocks(written.getvalue())
        assert found.names == ("i", "a", "b", "c")
        read, n_blocks, line = [], 0, 2
        for block in found:
            assert block.line == line
            line += len(block.text.splitlines())
            text = block.text.decode()
            read += list(csv.reader(io.StringIO(text, newline="")))
            n_blocks += 1
        assert read == rows
        assert n_blocks > 1 or size > 64


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('1,2\n3,"x\n5,6\n7,8\n', 3),
        ('1,"x\n', 2),
        ('"x,1\n2,3\n4,5', 2),
        ('1,"x\n2,y\n3,"z"\n', 2),
        ('1,"x"y\n2,3\n', 2),
        ('1,"x""\n2,3\n', 2),
        ('1,"x\ny"\n2,"z\n3,4\n', 4),
        ('1,5" pipe\n2,"x\n3,4\n', 3),
        ('1,"\n2,"\n3,"\n4,"\n', 2),
        ('1,"\n2,x\n3,"\n', 2),
    ],
    ids=[
        *("in the middle", "in the last row", "in the first value", "before a good one"),
        *("text behind it", "doubled", "behind a text of two lines", "behind inches"),
        *("ditto marks in pairs", "ditto marks far apart"),
    ],
)
def test_quotes_that_swallow_rows_are_refused_with_their_line(rows, line):
    with pytest.raises(CsvError, match=rf"^line {line}: the quote that opens a value there"):
        whole("a,b\n" + rows)


@pytest.mark.parametrize(
    "rows",
    [
        '1,5" pipe\n2,6" pipe\n',
        '1,say "hello"\n',
        '1,""\n2,""""\n3,"a""b"\n',
        '1,"two\nlines"\n2,"a, b\nc, d"\n',
        '"1" ,"x"\t\n',
        '1,"x, y\n"\n',
    ],
)
def test_quotes_that_swallow_no_rows_are_kept(rows):
    assert whole("a,b\n" + rows) == rows.encode()


def test_a_file_of_lone_carriage_returns_is_read():
    found = blocks("a,b\r1,2\r3,4\r")
    assert found.names == ("a", "b")
    assert [block.text for block in found] == [b"1,2\r3,4\r"]


@pytest.mark.parametrize("size", [1000, 300_000])
def test_long_headers_are_read_whole(size):
    names = [f"column {i}" for i in range(size // 10)]
    assert blocks(",".join(names) + "\n" + ",".join(names)).names == tuple(names)
    assert blocks(",".join(names)).names == tuple(names)


def test_long_values_are_read_whole():
    value = "x" * 5_000_000
    rows = f'1,{value}\n2,"{value},"\n'
    assert whole("a,b\n" + rows) == rows.encode()


def test_endless_rows_are_refused(monkeypatch):
    monkeypatch.setattr(formats, "_LONGEST_HEADER", 1 << 20)
    monkeypatch.setattr(formats, "_LONGEST_ROW", 1 << 20)
    with pytest.raises(CsvError, match=r"line 1: the header .* longer than 1 MiB"):
        blocks(b"a" * (1 << 22))
    with pytest.raises(CsvError, match=r"line 3: a row .* longer than 1 MiB"):
        whole(b"a,b\n1,2\n" + b'3,"' + b"x\n" * (1 << 22))


@pytest.mark.parametrize("at", [0, 5, 70_000, 5_000_000])
def test_a_zero_byte_is_refused_at_any_place(at):
    text = bytearray(b"a,b\n" + b"1,2\n" * 2_000_000)
    text[at] = 0
    with pytest.raises(CsvError, match=f"byte {at} is zero"):
        whole(bytes(text))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_header(delimiter):
    found = blocks(f'\n\n"a,,;;||b"{delimiter}c{delimiter}d\n1')
    assert (found.delimiter, found.names) == (delimiter, ("a,,;;||b", "c", "d"))
