"""Tables in forms of our own: Parquet with named columns, and arrays that NumPy reads alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.writing import whole_file
from priornet_paper.uci.data.extras import need
from priornet_paper.uci.data.registry import Dataset

__all__ = ["Arrays", "read_npz", "read_parquet", "write_npz"]

Arrays = tuple[NDArray[np.float64], NDArray[np.float64]]


def read_parquet(path: Path, known: Dataset) -> Arrays:
    """Inputs and targets, by the names of the columns."""
    parquet = need("pyarrow.parquet", "read Parquet (a copy by `to_npz` needs NumPy alone)")
    file = parquet.ParquetFile(path, pre_buffer=False)
    wanted = [*known.feature_names, known.target]
    absent = [name for name in wanted if name not in file.schema_arrow.names]
    if absent:
        raise ValueError(f'it has no column "{absent[0]}"')
    table = file.read(columns=wanted)
    columns = [table.column(name).to_numpy().astype(np.float64) for name in wanted]
    return np.column_stack(columns[:-1]), columns[-1]


def read_npz(path: Path) -> Arrays:
    """The arrays ``inputs`` and ``targets``."""
    with np.load(path) as arrays:
        absent = {"inputs", "targets"} - set(arrays.files)
        if absent:
            raise ValueError(f'it has no array "{min(absent)}"')
        return arrays["inputs"].astype(np.float64), arrays["targets"].astype(np.float64)


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write what :func:`read_npz` reads."""
    named = path if path.name.endswith(".npz") else path.with_name(f"{path.name}.npz")
    with whole_file(named) as file:
        np.savez_compressed(file, inputs=arrays[0], targets=arrays[1])
