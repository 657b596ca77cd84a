"""From a name to a table: find the file, read it, check it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.data.uci.folders import find, roots
from priornet.data.uci.registry import Dataset, UciError, dataset

__all__ = ["UciTable", "load_uci", "to_npz"]


@dataclass(frozen=True, eq=False)
class UciTable:
    """A table, its rows in the original order.

    Attributes:
        name: As in ``DATASETS``.
        inputs: Shape ``(N, D)``.
        targets: Shape ``(N,)``.
        feature_names: One a column of ``inputs``.
        target_name: What ``targets`` holds.
        is_complete: False where these are the first rows of the table only.
    """

    name: str
    inputs: NDArray[np.float64]
    targets: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    is_complete: bool


def load_uci(name: str) -> UciTable:
    """A table by its name, from ``$PRIORNET_DATA``.

    Raises:
        UciError: An unknown name, a missing file, or one that is not this table.
    """
    known = dataset(name)
    names = [f"{name}.parquet", f"{name}.npz"]
    if known.first_rows:
        names += [f"{name}_first{known.first_rows}.parquet"]
    path = find(roots(), names)
    if path is None:
        raise UciError(f"{name}: no file of this table.")
    inputs, targets = _read_npz(path) if path.suffix == ".npz" else _read_parquet(path, known)
    return UciTable(
        name, inputs, targets, known.feature_names, known.target, len(targets) == known.n_rows
    )


def to_npz(name: str, path: str | Path) -> None:
    """Write a table to a file that NumPy reads alone: ``inputs`` and ``targets``."""
    table = load_uci(name)
    np.savez_compressed(path, inputs=table.inputs, targets=table.targets)


def _read_npz(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    with np.load(path) as arrays:
        return arrays["inputs"].astype(np.float64), arrays["targets"].astype(np.float64)


def _read_parquet(path: Path, known: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=[*known.feature_names, known.target])
    columns = [table.column(name).to_numpy() for name in known.feature_names]
    return np.column_stack(columns).astype(np.float64), table.column(known.target).to_numpy()
