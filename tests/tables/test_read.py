"""Files become tables; each problem is one line that names the file and the place."""

import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priornet.tables import formats, read
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import read_table
from priornet.tables.read import TableError, TableReader, convert_numbers, located, read_frame
from priornet.tables.values import CellError

CSV = 'age,name,note\n1.5,"a, b",x\n,c,NA\n3e1,"d\ne",\n'

# Without a time stamp: test names are made of these bytes, and must be the same in every process.
PACKED_CSV = gzip.compress(CSV.encode(), mtime=0)
PACKED_NOTHING = gzip.compress(b"", mtime=0)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    return path


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path):
    with TableReader(path) as reader:
        return [row for batch in reader for row in batch.to_pylist()]


def test_csv_is_read_as_a_frame(csv):
    frame = read_frame(csv)
    np.testing.assert_array_equal(frame["age"], [1.5, np.nan, 30])
    assert frame["name"].tolist() == ["a, b", "c", "d\ne"]
    assert frame["note"].tolist() == ["x", "NA", ""]


def test_csv_in_batches_is_unchanged_text(csv):
    assert rows(csv)[1:] == [
        {"age": "", "name": "c", "note": "NA"},
        {"age": "3e1", "name": "d\ne", "note": ""},
    ]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_found_in_the_header(tmp_path, delimiter):
    path = write(tmp_path / "x.csv", f'"a,b"{delimiter}c\n1,5{delimiter}2\n')
    assert rows(path) == [{"a,b": "1,5", "c": "2"}]


@pytest.mark.parametrize("ending", ["tsv", "TSV", "tsv.gz"])
def test_tabs_separate_in_files_named_tsv(tmp_path, ending):
    content = b"a,b,c\td\n1,5\t2\n"  # more commas than tabs
    path = write(tmp_path / f"x.{ending}", gzip.compress(content) if "gz" in ending else content)
    assert rows(path) == [{"a,b,c": "1,5", "d": "2"}]


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbfa,b\n1,2\n", b"a,b\r\n1,2\r\n", b"a,b\n1,2", b"\na,b\n\n1,2\n\n"],
    ids=["byte order mark", "carriage returns", "no last newline", "empty lines"],
)
def test_harmless_differences_are_accepted(tmp_path, content):
    assert rows(write(tmp_path / "x.csv", content)) == [{"a": "1", "b": "2"}]


def test_packed_csv_is_read(tmp_path):
    path = write(tmp_path / "x.csv.gz", PACKED_CSV)
    assert len(rows(path)) == 3


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert len(rows("-")) == 3
    assert not sys.stdin.buffer.closed


def test_a_pipe_that_delivers_its_header_in_pieces_is_read():
    code = (
        "from priornet.tables.read import TableReader\n"
        "with TableReader('-') as reader: print([b.to_pydict() for b in reader])"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        for piece in (b"a,", b"b\n1", b",2\n"):
            process.stdin.write(piece)
            process.stdin.flush()
        out, _ = process.communicate()
    assert out == b"[{'a': ['1'], 'b': ['2']}]\n"


def test_files_larger_than_a_block_come_in_several_batches(tmp_path):
    path = tmp_path / "x.csv"
    pd.DataFrame({"i": range(400_000), "text": ["some words that take space"] * 400_000}).to_csv(
        path, index=False
    )
    with TableReader(path) as reader:
        batches = list(reader)
    assert len(batches) > 2
    joined = pa.Table.from_batches(batches)
    assert joined["i"].to_pylist() == [str(i) for i in range(400_000)]


def test_rows_of_later_blocks_are_numbered_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_BLOCK_BYTES", 64)
    content = b"a,b\n" + b"1,2\n" * 100
    with pytest.raises(TableError, match="row 101 has 1 values"):
        rows(write(tmp_path / "x.csv", content + b"3\n"))
    with pytest.raises(TableError, match=r"row 101: byte 406 \(0xe9\) is not UTF-8"):
        rows(write(tmp_path / "x.csv", content + b"3,\xe9\n"))


def test_many_columns_and_long_values_are_read(tmp_path):
    names = [f"a column with a long name, {j}" for j in range(5000)]
    frame = pd.DataFrame([range(5000)], columns=names)
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert read_frame(tmp_path / "x.csv").equals(frame.astype(float))
    value = "x" * 5_000_000
    assert rows(write(tmp_path / "y.csv", f"a,b\n1,{value}\n")) == [{"a": "1", "b": value}]


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table(
        {"a": [1, None], "b": ["x", "y"], "c": pa.array(["u", "u"]).dictionary_encode()}
    )
    pq.write_table(table, path)
    assert rows(path) == table.to_pylist()
    frame = read_frame(path)
    assert str(frame["c"].dtype) == "category"
    np.testing.assert_array_equal(frame["a"], [1, np.nan])


def test_text_becomes_numbers_only_where_all_values_spell_one():
    batch = pa.record_batch({"a": ["1", " 2 ", "n/a"], "b": ["1", "2", "x"], "c": ["1", "2", "3"]})
    found = convert_numbers(batch, ["a", "b"])
    assert found["a"].to_pylist() == [1, 2, None]
    assert found["b"].to_pylist() == ["1", "2", "x"]
    assert found["c"].to_pylist() == ["1", "2", "3"]


def test_wrong_values_are_named_with_their_row_in_the_file():
    prep = TablePreprocessor().fit({"a": [1.0, 2.0]})
    with (
        pytest.raises(TableError, match=r'^new.csv: column "a", row 12: "many" is not a number'),
        located("new.csv", rows=10),
    ):
        prep.transform({"a": ["1", "many"]})
    with pytest.raises(KeyError), located("new.csv"):
        raise KeyError("other errors pass")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", "the file is empty"),
        ("x.csv", b" \n\n", "the file is empty"),
        ("x.parquet", b"", "the file is empty"),
        ("x.csv.gz", PACKED_NOTHING, "the file is empty"),
        ("x.csv", b"a,b\n", "a header but no rows"),
        ("x.csv", b"a,a\n1,2\n", 'two columns are called "a"'),
        (
            "x.csv",
            b"a,b\n1,2\n1,2,3\n",
            "row 2 has 3 values where the header has 2 columns: '1,2,3'",
        ),
        ("x.csv", b"a,b\n1,2\n\n7\n", "row 2 has 1 values"),
        ("x.csv", b"a,b\n1,2\n1,caf\xe9\n", r"row 2: byte 13 \(0xe9\) is not UTF-8"),
        ("x.csv", "é,b\n1,2\n".encode("latin-1"), r"the header: byte 0 \(0xe9\) is not UTF-8"),
        ("x.csv", "a,b\n1,2\n".encode("utf-16"), "it is UTF-16"),
        ("x.csv", b"a,b\n1,\0\n", "byte 6 is zero: this is not a text file"),
        ("x.csv.gz", b"a,b\n1,2\n", "Not a gzipped file"),
        ("x.csv.gz", PACKED_CSV[:-4], "ended before"),
        ("x.csv.gz", PACKED_CSV[:14] + b"\xff" * 9 + PACKED_CSV[23:], "while decompressing"),
        ("x.csv", b'a,b\n1,"2\n3,4\n5,6\n', "line 2: the quote that opens a value there"),
        ("x.csv", b"a,b\r1,2\r3,4,5\r", "row 2 has 3 values"),
        ("x.parquet", b"a,b\n1,2\n", "not a whole Parquet file"),
        ("x.txt", b"a,b\n1,2\n", r"unknown kind of table; the name must end in \.csv"),
    ],
)
def test_unusable_files_are_refused(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(TableError, match=message) as caught:
        read_frame(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_undecodable_byte_is_named_with_its_row(tmp_path):
    content = b"a\n" + b"fine\n" * 1_000_000 + b"caf\xe9\n"
    with pytest.raises(TableError, match=r"row 1000001: byte 5000005 \(0xe9\)"):
        read_frame(write(tmp_path / "x.csv", content))


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_parquet_is_refused(tmp_path, keep):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).normal(size=10_000)}), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(TableError, match="Parquet"):
        read_frame(path)


def test_parquet_with_damaged_pages_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(0).normal(size=10_000)}), path)
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"x\.parquet"):
        read_frame(path)


@pytest.mark.parametrize("name", ["", "folder.csv", "folder.parquet"])
def test_folder_is_refused(tmp_path, name):
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    with pytest.raises(TableError, match="it is a folder"):
        TableReader(path)


@pytest.mark.parametrize("name", ["nothing", "nothing.csv", "nothing.parquet", "a/b.csv"])
def test_missing_file_is_refused(tmp_path, name):
    with pytest.raises(TableError, match=f"{name}: No such file"):
        TableReader(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_refused(csv):
    csv.chmod(0)
    with pytest.raises(TableError, match="Permission denied"):
        TableReader(csv)


def test_errors_of_a_fit_are_cell_errors_before_they_are_placed(csv):
    frame = read_frame(csv)
    frame.loc[2, "age"] = np.inf
    with pytest.raises(CellError, match="row 2"):
        TablePreprocessor().fit(frame)


def test_long_text_is_refused_by_the_copies_that_learning_takes(tmp_path, monkeypatch):
    """Use half of 4 MB: 0.6 MB of numbers fit, and the same bytes of text do not."""
    monkeypatch.setattr("priornet.tables.read.free_memory", lambda: 4_000_000)
    pq.write_table(pa.table({"x": np.arange(75_000.0)}), tmp_path / "numbers.parquet")
    assert len(read_frame(tmp_path / "numbers.parquet")) == 75_000
    pq.write_table(pa.table({"t": ["a" * 1000] * 600}), tmp_path / "text.parquet")
    with pytest.raises(TableError, match=r"text\.parquet: to learn from the first 600 rows takes"):
        read_frame(tmp_path / "text.parquet")


LONG = "x" * 100_000


def repeated(n_rows, text=LONG):
    """Make a column in which every row is one long text; small in memory and in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), [text])


def sizes(path):
    with TableReader(path) as reader:
        return [(batch.num_rows, batch.nbytes) for batch in reader]


@pytest.fixture
def budget(monkeypatch):
    monkeypatch.setattr(formats, "_BATCH_BYTES", 4 << 20)
    return 4 << 20


def test_repeated_texts_come_in_batches_that_fit_the_budget(tmp_path, budget):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.arange(1000.0), "t": repeated(1000)})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 20_000
    found = sizes(path)
    assert sum(n for n, _ in found) == 1000
    assert max(n_bytes for _, n_bytes in found) <= budget


def test_one_long_text_in_a_later_group_is_enough(tmp_path, budget):
    path = tmp_path / "x.parquet"
    short = pa.table({"t": repeated(1000, "short")})
    with pq.ParquetWriter(path, pa.schema({"t": pa.string()}), store_schema=False) as writer:
        writer.write_table(short.cast(writer.schema))
        writer.write_table(pa.table({"t": pa.array([LONG] * 1000)}))
    assert max(n_bytes for _, n_bytes in sizes(path)) <= budget


def test_texts_that_repeat_the_start_of_the_one_before(tmp_path, budget):
    path = tmp_path / "x.parquet"
    table = pa.table({"t": [LONG + str(i) for i in range(500)]})
    encoding = {"t": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    assert max(n_bytes for _, n_bytes in sizes(path)) <= budget


def test_many_columns_make_batches_of_fewer_rows(tmp_path, budget):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{j}": np.zeros(5000) for j in range(200)}), path)
    found = sizes(path)
    assert sum(n for n, _ in found) == 5000
    assert max(n_bytes for _, n_bytes in found) <= budget


def test_ordinary_tables_come_in_batches_of_many_rows(tmp_path):
    path = tmp_path / "x.parquet"
    rng = np.random.default_rng(0)
    n_rows = 2 * formats._BATCH_ROWS
    labels = rng.choice([f"label {i}" for i in range(1000)], n_rows)
    pq.write_table(pa.table({"x": rng.normal(size=n_rows), "t": labels}), path)
    assert [n for n, _ in sizes(path)] == [n_rows // 2, n_rows // 2]


def test_tables_larger_than_half_the_memory_are_refused_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"t": repeated(1000)}), path, store_schema=False)
    monkeypatch.setattr(read, "free_memory", lambda: 20_000_000)
    with pytest.raises(TableError, match=r"first \d+ rows takes 0\.\d GB, half of the memory"):
        read_frame(path)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    wrong = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    pq.write_table(pa.table({"t": wrong}), path)
    with pytest.raises(TableError, match="UTF8"):
        read_frame(path)


def test_periods_are_read_before_pandas_registers_them_with_arrow(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"p": pd.period_range("2020-01", periods=2, freq="M")})
    frame.to_parquet(path)
    code = (
        "import sys\nfrom priornet.tables.read import TableReader\n"
        "with TableReader(sys.argv[1]) as reader: print(next(iter(reader)).column(0).type)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "pandas.period" in done.stdout, done.stderr
    assert read_table(read_frame(path)).column(0).labels == ("2020-01", "2020-02")  # type: ignore
