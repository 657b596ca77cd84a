"""The published splits: which rows are for testing (Hernández-Lobato and Adams 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.data.uci.folders import find, roots
from priornet.data.uci.registry import DATASETS, UciError, dataset

__all__ = ["canonical_splits", "write_splits"]

_FILE = "splits_test_rows.parquet"


def canonical_splits(name: str) -> list[NDArray[np.int64]]:
    """Numbers of the test rows, from 0, one array a split; the other rows are for training.

    Raises:
        UciError: The splits are not here, or there are none for this table.
    """
    published = dataset(name).published_as
    if published is None:
        having = ", ".join(key for key, known in DATASETS.items() if known.published_as)
        raise UciError(f"{name}: no splits are published for it; there are some for: {having}.")
    path = find(roots(), [_FILE])
    if path is None:
        raise UciError(f"{name}: {_FILE} is not in $PRIORNET_DATA.")
    return _read_parquet(path, name)


def write_splits(name: str, folder: str | Path) -> None:
    """Write the splits of a table as text, in the published form, for a machine without pyarrow."""
    splits = canonical_splits(name)
    place = Path(folder) / name
    place.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(splits):
        np.savetxt(place / f"index_test_{number}.txt", rows, fmt="%d")


def _read_parquet(path: Path, name: str) -> list[NDArray[np.int64]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["dataset", "split", "test_row"])
    ours = np.array([value == name for value in table.column("dataset").to_pylist()])
    numbers, rows = (table.column(key).to_numpy()[ours] for key in ("split", "test_row"))
    return [rows[numbers == number].astype(np.int64) for number in np.unique(numbers)]
