"""Foreign inputs: item by item what the recipe says."""

import numpy as np
import pandas as pd
import pytest

from _uci_files import register, small, split
from priornet_paper.uci.data import UciError, foreign_inputs
from priornet_paper.uci.data.copies import write_npz


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
    found = foreign_inputs("boston", 12, 6)
    for column, original in enumerate([0, 1, 3, 4, 5, 6]):
        block = naval[:12, original]
        expected = (block - sum(block) / 12) / np.sqrt(sum((block - sum(block) / 12) ** 2) / 12)
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-12)
    assert found.shape == (12, 6)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1)


def test_a_column_that_is_constant_in_the_block_only_becomes_zero(naval):
    found = foreign_inputs("wine", 10, 4)
    assert (found[:, 3] == 0).all()
    assert np.isfinite(found).all()


def test_targets_are_no_features(naval):
    assert foreign_inputs("boston", 30, 14).shape == (30, 14)  # 16 less the two constant ones
    with pytest.raises(ValueError, match=r"`n_columns` must lie between 1 and 14.*naval.*got 15"):
        foreign_inputs("boston", 30, 15)


def test_too_many_rows_are_refused(naval):
    with pytest.raises(ValueError, match=r"`n_rows` must lie between 1 and 30.*got 31"):
        foreign_inputs("boston", 31, 3)
    with pytest.raises(ValueError, match="`n_rows`"):
        foreign_inputs("boston", 0, 3)


def test_slices_are_foreign_to_songs(monkeypatch, folder):
    values = small("ct_slices")
    put(monkeypatch, folder, "ct_slices", values)
    found = foreign_inputs("msd", 20, 90)
    np.testing.assert_allclose(
        found * values[:, 1:91].std(0) + values[:, 1:91].mean(0), values[:, 1:91]
    )


def test_naval_is_not_foreign_to_itself(naval):
    with pytest.raises(UciError, match="not to itself"):
        foreign_inputs("naval", 5, 5)


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(UciError, match="choose one of"):
        foreign_inputs("bosten", 5, 5)


@pytest.mark.parametrize(
    ("name", "n_rows", "n_columns"), [("boston", 51, 13), ("protein", 4573, 9)]
)
def test_real_blocks(real, name, n_rows, n_columns):
    features = pd.read_parquet(real / "naval.parquet").iloc[:, :16]
    block = features.loc[:, features.nunique() > 1].iloc[:n_rows, :n_columns]
    expected = (block - block.mean()) / block.std(ddof=0)
    np.testing.assert_allclose(foreign_inputs(name, n_rows, n_columns), expected, atol=1e-9)
    assert "T1" not in block
    assert "P1" not in block
