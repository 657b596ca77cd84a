"""A reader that reads ahead has let go of everything when it is closed."""

import io
import subprocess
import sys
import time
import weakref
from contextlib import nullcontext

import pytest

from priornet.data import lending, tables
from priornet.data.tables import TableError, TableReader


def test_a_file_goes_on_where_its_start_ends():
    file = io.BytesIO(b"abcdefgh")
    lent = lending.LentFile(file.read(3), file, lending.Loans())
    assert lent.readable()
    assert [bytes(lent.read(2)) for _ in range(5)] == [b"ab", b"c", b"de", b"fg", b"h"]
    assert bytes(lent.read(2)) == b""


class Clock:
    """Time that passes only while somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_waiting_for_what_never_comes_back_has_an_end(monkeypatch):
    clock, loans = Clock(), lending.Loans()
    monkeypatch.setattr(lending, "time", clock)
    held = loans.lend(memoryview(b"x"))
    loans.wait()
    patience = clock.now
    assert patience >= lending._PATIENCE_SECONDS
    del held
    loans.wait()
    assert clock.now == patience


ENDING = """
import sys, time
from priornet.data import lending, tables

read = lending.LentFile.read

def slow(self, size=-1):
    time.sleep(0.3)
    return read(self, size)

lending.LentFile.read = slow
tables._BLOCK_BYTES = 64
try:
    with tables.TableReader(sys.argv[1]) as reader:
        next(iter(reader))
        raise tables.TableError("the first batch is wrong.")
except tables.TableError as error:
    sys.exit(f"{error}")
"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2,3\n" + 1000 * "1,2\n", "row 1 has 3 values"),
        ("a,b\n" + 1000 * "1,2\n", "the first batch is wrong."),
        ("a,a\n" + 1000 * "1,2\n", 'two columns are called "a"'),
    ],
    ids=["while it is opened", "in a batch", "in the header"],
)
def test_errors_are_the_end_of_a_process_that_reads_ahead(tmp_path, content, message):
    path = tmp_path / "x.csv"
    path.write_text(content)
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, path], capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 1, ended.stderr
    assert message in ended.stderr
    assert "terminate called" not in ended.stderr


@pytest.mark.parametrize("pause", [0.0, 0.01])
@pytest.mark.parametrize(
    ("content", "error"),
    [("a,b\n1,2,3\n", "row 1 has 3 values"), ("a,b\n", None), ("a,a\n", "two columns")],
    ids=["while it is opened", "in a batch", "in the header"],
)
def test_a_reader_closes_when_arrow_holds_nothing_of_it(
    tmp_path, monkeypatch, pause, content, error
):
    path = tmp_path / "x.csv"
    path.write_text(content + 1000 * "1,2\n")
    lend, lent = lending.Loans.lend, []

    def slow(self, thing):
        time.sleep(pause)
        lent.append(weakref.ref(thing))
        return lend(self, thing)

    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(lending, "_PAUSE_SECONDS", 0.0)  # so that it looks at the worst moments too
    monkeypatch.setattr(lending.Loans, "lend", slow)
    for _ in range(10):
        refused = pytest.raises(TableError, match=error) if error else nullcontext()
        with refused, TableReader(path) as reader:
            next(iter(reader))
        held = [thing() for thing in lent]
        assert len(held) > 3  # the file, what hears of wrong rows, and pieces
        assert not any(thing is not None for thing in held)
