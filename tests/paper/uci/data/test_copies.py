"""Copies of our own: Parquet by the names of its columns, arrays in an ``.npz``."""

import numpy as np
import pandas as pd
import pytest

from _uci_files import small, split
from priornet_paper.uci.data.copies import read_npz, read_parquet, write_npz
from priornet_paper.uci.data.registry import DATASETS


def test_parquet_columns_are_found_by_name_in_any_order(tmp_path):
    known, values = DATASETS["energy"], small("energy")
    frame = pd.DataFrame(values, columns=list(known.columns))
    frame[sorted(frame.columns)].to_parquet(tmp_path / "energy.parquet")
    inputs, targets = read_parquet(tmp_path / "energy.parquet", known)
    expected = split("energy", values)
    assert (inputs == expected[0]).all()
    assert (targets == expected[1]).all()


def test_parquet_without_a_column_is_refused(tmp_path):
    pd.DataFrame({"AT": [1.0], "V": [2.0]}).to_parquet(tmp_path / "power.parquet")
    with pytest.raises(ValueError, match='no column "AP"'):
        read_parquet(tmp_path / "power.parquet", DATASETS["power"])


def test_arrays_come_back_in_double_precision(tmp_path):
    path = tmp_path / "wine.npz"
    inputs, targets = split("wine", small("wine"))
    write_npz(path, (inputs, targets))
    found = read_npz(path)
    assert (found[0] == inputs).all()
    assert (found[1] == targets).all()
    np.savez(path, inputs=inputs.astype(np.float32), targets=np.arange(3))
    assert [array.dtype for array in read_npz(path)] == [np.float64, np.float64]


def test_arrays_under_other_names_are_refused(tmp_path):
    np.savez(tmp_path / "wine.npz", inputs=np.zeros(3))
    with pytest.raises(ValueError, match='no array "targets"'):
        read_npz(tmp_path / "wine.npz")
