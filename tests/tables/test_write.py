"""Tables reach their file whole or not at all, and read back as they were."""

import datetime
import io
import os
import sys
from contextlib import nullcontext
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priornet.tables import write as module
from priornet.tables.read import TableError, TableReader
from priornet.tables.write import TableWriter

BATCHES = [
    pa.record_batch({"a": [1.5, None], "b": ["x", ""]}),
    pa.record_batch({"a": [0.1, 1e300], "b": ['say "hi"', "a, b\nc"]}),
]


def write(path, batches=BATCHES):
    with TableWriter(path) as writer:
        for batch in batches:
            writer.write(batch)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_csv_reads_back(tmp_path, name):
    write(tmp_path / name)
    found = pd.read_csv(tmp_path / name, keep_default_na=False, na_values={"a": [""]})
    pd.testing.assert_frame_equal(found, pa.Table.from_batches(BATCHES).to_pandas())


def test_parquet_reads_back_with_types(tmp_path):
    write(tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").equals(pa.Table.from_batches(BATCHES))


@pytest.mark.parametrize(
    "text",
    [
        "id,b\n007,x y\n1.50,\n",
        'id,b,c\n007,"x, y",\n1.50,z,"say ""hi"""\n-3e5,"two\nlines",true\n',
    ],
    ids=["plain", "with quotes where they are needed"],
)
def test_text_passes_through_unchanged(tmp_path, text):
    (tmp_path / "in.csv").write_text(text)
    with TableReader(tmp_path / "in.csv") as reader:
        write(tmp_path / "out.csv", reader)
    assert (tmp_path / "out.csv").read_text() == text


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_values_of_every_type_look_the_same_beside_any_text(tmp_path, kind):
    moment = datetime.datetime(2020, 1, 2, 3, 4, 5)
    values = {
        "number": [0.1, None, 1e300],
        "whole": [3, None, -(2**60)],
        "truth": [True, None, False],
        "moment": [moment, None, moment],
        "day": [moment.date(), None, moment.date()],
        "small": pa.array([0.1, None, 2], pa.float32()),
        "exact": [Decimal("1.50"), None, Decimal("2.00")],
    }
    found = []
    for text in (["x", "", "z"], ["x", "", "a, b"]):
        batch = pa.record_batch({**values, "text": pa.array(text, kind)})
        write(tmp_path / "x.csv", [batch])
        found.append((tmp_path / "x.csv").read_text())
    assert found[1] == found[0].replace(",z", ',"a, b"')
    assert (
        "1e+300,-1152921504606846976,false,2020-01-02 03:04:05.000000,2020-01-02,2,2.00,z"
        in found[0]
    )


def test_an_empty_value_of_an_only_column_is_a_row(tmp_path):
    write(tmp_path / "x.csv", [pa.record_batch({"a": ["", None, "x"]})])
    with TableReader(tmp_path / "x.csv") as reader:
        assert pa.Table.from_batches(reader).to_pydict() == {"a": ["", "", "x"]}


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5), cells)
def test_any_text_reads_back_as_it_was(tmp_path_factory, rows, name):
    path = tmp_path_factory.mktemp("text") / "x.csv"
    table = {"first": [a for a, _ in rows], f"second {name}": [b for _, b in rows]}
    write(path, [pa.record_batch(table)])
    with TableReader(path) as reader:
        assert pa.Table.from_batches(reader).to_pydict() == table


def test_header_is_quoted_where_it_must_be(tmp_path):
    write(tmp_path / "x.csv", [pa.record_batch({"a, b": [1]})])
    assert (tmp_path / "x.csv").read_text() == '"a, b"\n1\n'


def test_only_batches_that_need_quotes_are_joined_in_memory(tmp_path, monkeypatch):
    joined, lines = [], module._lines

    def seen(batch, delimiter):
        joined.append(batch.to_pydict())
        return lines(batch, delimiter)

    monkeypatch.setattr(module, "_lines", seen)
    write(tmp_path / "x.csv")
    assert joined == [{"a": ["a"], "b": ["b"]}, BATCHES[1].to_pydict()]  # the header, and one batch


def test_categories_are_written_as_text(tmp_path):
    batch = pa.record_batch({"a": pa.array(["x, y", "z"]).dictionary_encode()})
    write(tmp_path / "x.csv", [batch])
    assert pd.read_csv(tmp_path / "x.csv")["a"].tolist() == ["x, y", "z"]


def test_standard_output_is_written(monkeypatch, tmp_path):
    (tmp_path / "-").mkdir()  # a folder of that name is not meant
    monkeypatch.chdir(tmp_path)
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    write("-", BATCHES[:1])
    assert stream.buffer.getvalue() == b"a,b\n1.5,x\n,\n"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_a_failure_leaves_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")

    def interrupted():
        yield BATCHES[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, interrupted())
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == b"old"


def test_batch_of_another_shape_is_an_error_and_leaves_nothing(tmp_path):
    batches = [BATCHES[0], pa.record_batch({"z": [1]})]
    with pytest.raises(ValueError, match="schema"):
        write(tmp_path / "x.parquet", batches)
    assert list(tmp_path.iterdir()) == []


def test_success_replaces_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    write(path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text().startswith("a,b\n")


def test_bad_targets_are_refused_before_anything_is_written(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for name, message in (
        ("folder.csv", "it is a folder"),
        ("x.xlsx", "unknown kind of table"),
        ("no/folder/x.csv", "No such file"),
        ("file/x.csv", "Not a directory"),
    ):
        with pytest.raises(TableError, match=message) as caught, TableWriter(tmp_path / name):
            pytest.fail("it was opened")
        assert name in str(caught.value)
    assert {p.name for p in tmp_path.iterdir()} == {"folder.csv", "file"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(TableError, match="Permission denied"), TableWriter(tmp_path / "x.csv"):
        pytest.fail("it was opened")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("buffering", [0, 8192], ids=["while it writes", "when it ends"])
def test_a_full_disk_is_no_table_error(monkeypatch, buffering):
    full = open("/dev/full", "wb", buffering=buffering)  # noqa: SIM115 (closing it would fail)
    monkeypatch.setattr(sys, "stdout", type("Standard", (), {"buffer": full})())
    with pytest.raises(OSError, match="No space left") as caught:
        write("-")
    assert caught.value.filename == "standard output"
    with pytest.raises(OSError, match="No space left") if buffering else nullcontext():
        full.close()
