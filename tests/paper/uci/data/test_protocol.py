"""Published splits in both forms, and out-of-domain inputs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from _uci_files import register, small, split
from priornet_paper.uci.data import DATASETS, UciError, canonical_splits, ood_inputs, write_splits
from priornet_paper.uci.data.formats import write_npz

WITH_SPLITS = ["boston", "concrete", "energy", "power", "wine", "protein", "naval"]


def frame_of(splits, name="wine"):
    rows = [(name, number, row) for number, own in enumerate(splits) for row in own]
    frame = pd.DataFrame(rows, columns=["dataset", "split", "test_row"])
    return frame.astype({"dataset": "category", "split": "int8", "test_row": "int32"})


@pytest.fixture
def three(monkeypatch):
    """Three splits of a wine table with ten rows."""
    monkeypatch.setitem(DATASETS, "wine", replace(DATASETS["wine"], n_rows=10, n_splits=3))
    return [[3, 1], [9], [0, 5, 7]]


def test_parquet_form(folder, three):
    other = frame_of([[1], [2]], "boston")
    frame = pd.concat([other, frame_of(three)]).astype({"dataset": "category"})
    frame.to_parquet(folder / "splits_test_rows.parquet")
    assert [rows.tolist() for rows in canonical_splits("wine")] == three


@pytest.mark.parametrize(
    "place",
    ["wine", "wine-quality-red", "wine-quality-red/data", "UCI_Datasets/wine-quality-red/data"],
)
def test_published_form(folder, three, place):
    (folder / place).mkdir(parents=True)
    for number, rows in enumerate(three):
        np.savetxt(folder / place / f"index_test_{number}.txt", rows)  # "3.000000e+00"
    splits = canonical_splits("wine")
    assert [rows.tolist() for rows in splits] == three
    assert all(rows.dtype == np.int64 for rows in splits)


def test_text_written_here_is_read_back(folder, three, tmp_path, monkeypatch):
    frame_of(three).to_parquet(folder / "splits_test_rows.parquet")
    write_splits("wine", tmp_path / "out")
    monkeypatch.setenv("PRIORNET_DATA", str(tmp_path / "out"))
    assert [rows.tolist() for rows in canonical_splits("wine")] == three


@pytest.mark.parametrize(
    ("splits", "problem"),
    [
        ([[3, 1], [9]], "it has 2 splits of wine instead of 3"),
        ([[3, 1], [10], [0]], "split 1 of wine must hold different row numbers from 0 to 9"),
        ([[3, 1], [9], [-1]], "split 2 of wine"),
        ([[3, 3], [9], [0]], "split 0 of wine"),
    ],
)
def test_wrong_splits_are_refused_by_name(folder, three, splits, problem):
    frame_of(splits).to_parquet(folder / "splits_test_rows.parquet")
    with pytest.raises(UciError, match=rf"splits_test_rows\.parquet: {problem}"):
        canonical_splits("wine")


@pytest.mark.parametrize("text", ["1.5\n", "one\n"])
def test_text_that_is_no_row_number_is_refused(folder, three, text):
    (folder / "wine").mkdir()
    (folder / "wine" / "index_test_0.txt").write_text(text)
    with pytest.raises(UciError, match=r"index_test_0\.txt: it cannot be read: .*(whole|one)"):
        canonical_splits("wine")


def test_a_damaged_parquet_is_refused(folder):
    (folder / "splits_test_rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(UciError, match=r"splits_test_rows\.parquet: it cannot be read"):
        canonical_splits("wine")


def test_absent_splits_say_where_they_were_looked_for(folder):
    with pytest.raises(UciError, match="the splits of wine are not here") as caught:
        canonical_splits("wine")
    for part in (str(folder), "splits_test_rows.parquet", "wine/index_test_0.txt", "published at"):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["msd", "ct_slices"])
def test_tables_without_published_splits(name):
    with pytest.raises(UciError, match=f"{name}: no splits are published.*boston, concrete"):
        canonical_splits(name)


@pytest.mark.parametrize("name", WITH_SPLITS)
def test_real_splits_hold_out_a_tenth(real, name):
    splits = canonical_splits(name)
    assert len(splits) == (5 if name == "protein" else 20)
    for rows in splits:
        assert abs(len(rows) - DATASETS[name].n_rows / 10) <= 1


def put(monkeypatch, folder, name, values):
    register(monkeypatch, name, values)
    write_npz(folder / f"{name}.npz", split(name, values))


@pytest.fixture
def naval(monkeypatch, folder):
    values = small("naval", 30)
    values[:, [2, 8]] = (5.0, 288.0)  # constant throughout
    values[:10, 4] = 7.0  # constant at the start
    put(monkeypatch, folder, "naval", values)
    return values


def test_constant_columns_go_then_the_first_columns_and_rows_are_standardised(naval):
    found = ood_inputs("boston", 12, 6)
    for column, original in enumerate([0, 1, 3, 4, 5, 6]):
        block = naval[:12, original]
        expected = (block - sum(block) / 12) / np.sqrt(sum((block - sum(block) / 12) ** 2) / 12)
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-12)
    assert found.shape == (12, 6)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_a_column_that_is_constant_in_the_block_only_becomes_zero(naval):
    found = ood_inputs("wine", 10, 4)
    assert (found[:, 3] == 0).all()
    assert np.isfinite(found).all()


def test_targets_are_no_features(naval):
    assert ood_inputs("boston", 30, 14).shape == (30, 14)  # 16 less the two constant ones
    with pytest.raises(ValueError, match=r"`n_columns` must lie between 1 and 14.*naval.*got 15"):
        ood_inputs("boston", 30, 15)


def test_too_many_rows_are_refused(naval):
    with pytest.raises(ValueError, match=r"`n_rows` must lie between 1 and 30.*got 31"):
        ood_inputs("boston", 31, 3)
    with pytest.raises(ValueError, match="`n_rows`"):
        ood_inputs("boston", 0, 3)


def test_slices_are_ood_table_songs(monkeypatch, folder):
    values = small("ct_slices")
    put(monkeypatch, folder, "ct_slices", values)
    found = ood_inputs("msd", 20, 90)
    np.testing.assert_allclose(
        found * values[:, 1:91].std(0) + values[:, 1:91].mean(0), values[:, 1:91]
    )


def test_naval_is_not_ood_table_itself(naval):
    with pytest.raises(UciError, match="not to itself"):
        ood_inputs("naval", 5, 5)


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(UciError, match="choose one of"):
        ood_inputs("bosten", 5, 5)


@pytest.mark.parametrize(
    ("name", "n_rows", "n_columns"), [("boston", 51, 13), ("protein", 4573, 9)]
)
def test_real_blocks(real, name, n_rows, n_columns):
    features = pd.read_parquet(real / "naval.parquet").iloc[:, :16]
    block = features.loc[:, features.nunique() > 1].iloc[:n_rows, :n_columns]
    expected = (block - block.mean()) / block.std(ddof=0)
    np.testing.assert_allclose(ood_inputs(name, n_rows, n_columns), expected, atol=1e-9)
    assert "T1" not in block
    assert "P1" not in block
