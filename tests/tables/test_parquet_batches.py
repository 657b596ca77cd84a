"""Batches of Parquet are bounded in bytes, whatever a few bytes of the file stand for."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priornet.tables import files as tables
from priornet.tables import parquet_batches
from priornet.tables.containers import read_table
from priornet.tables.files import TableError, TableReader, read_frame

LONG = "x" * 100_000


def repeated(n_rows, text=LONG):
    """A column in which every row is one long text; small in memory and in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), [text])


def sizes(path):
    with TableReader(path) as reader:
        return [(batch.num_rows, batch.nbytes) for batch in reader]


@pytest.fixture
def budget(monkeypatch):
    monkeypatch.setattr(parquet_batches, "_BATCH_BYTES", 4 << 20)
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
    n_rows = 2 * parquet_batches._BATCH_ROWS
    labels = rng.choice([f"label {i}" for i in range(1000)], n_rows)
    pq.write_table(pa.table({"x": rng.normal(size=n_rows), "t": labels}), path)
    assert [n for n, _ in sizes(path)] == [n_rows // 2, n_rows // 2]


def test_tables_larger_than_half_the_memory_are_refused_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"t": repeated(1000)}), path, store_schema=False)
    monkeypatch.setattr(tables, "_memory", lambda: 20_000_000)
    with pytest.raises(TableError, match=r"first \d+ rows takes 0\.\d GB, half of the memory"):
        read_frame(path)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    wrong = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    pq.write_table(pa.table({"t": wrong}), path)
    with pytest.raises(TableError, match="UTF8"):
        read_frame(path)


def test_periods_are_periods_before_pandas_has_told_arrow_of_them(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"p": pd.period_range("2020-01", periods=2, freq="M")})
    frame.to_parquet(path)
    code = (
        "import sys\nfrom priornet.tables.files import TableReader\n"
        "with TableReader(sys.argv[1]) as reader: print(next(iter(reader)).column(0).type)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "pandas.period" in done.stdout, done.stderr
    assert read_table(read_frame(path)).column(0).labels == ("2020-01", "2020-02")  # type: ignore
