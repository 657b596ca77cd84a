"""From a name to a table: find the file, read it, check it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.tables.read import first_line
from priornet_paper.uci.data.copies import Arrays, read_npz, read_parquet, write_npz
from priornet_paper.uci.data.download import download
from priornet_paper.uci.data.fingerprints import difference
from priornet_paper.uci.data.folders import cache, file_names, find_first_rows, find_table, missing
from priornet_paper.uci.data.originals import read_original
from priornet_paper.uci.data.registry import Dataset, UciError, dataset

__all__ = ["UciTable", "get_uci", "load_uci", "to_npz"]


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
        path: The file that it came from.
    """

    name: str
    inputs: NDArray[np.float64]
    targets: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    is_complete: bool
    path: Path


def load_uci(name: str, *, may_download: bool = True) -> UciTable:
    """A table by its name: from ``$PRIORNET_DATA``, else from the user's cache, else downloaded.

    A whole table comes before one of which only the first rows are there; first rows come before a
    download.

    Args:
        name: One of ``DATASETS``.
        may_download: Whether a table that is not here is downloaded.

    Raises:
        UciError: An unknown name, a missing file, or one that is not this table.
    """
    known = dataset(name)
    path = find_table(known) or find_first_rows(known)
    if path is not None:
        return _read(path, known)
    if not may_download:
        remedy = f"Run `priornet datasets get {name}`, or get the file from {known.url}"
        raise missing(f"{name} is", file_names(known), f"{remedy} and put it into such a folder.")
    return _downloaded(known)


def get_uci(name: str) -> tuple[UciTable, bool]:
    """The whole table, downloaded unless it is here; and whether it was.

    A damaged file in the cache is replaced. One in ``$PRIORNET_DATA`` is its owner's, and an error.
    """
    known = dataset(name)
    path = find_table(known)
    if path is not None:
        try:
            table = _read(path, known)
        except UciError:
            if not _is_cached(path):
                raise
            path.unlink()
        else:
            if table.is_complete:
                return table, False
    return _downloaded(known), True


def to_npz(name: str, path: str | Path) -> None:
    """Write a table to an ``.npz`` file with ``inputs`` and ``targets``.

    As ``<name>.npz`` in ``$PRIORNET_DATA`` it serves a machine that has NumPy only.
    """
    table = load_uci(name)
    write_npz(Path(path), (table.inputs, table.targets))


def _downloaded(known: Dataset) -> UciTable:
    path = download(known)
    try:
        return _read(path, known)
    except UciError:
        path.unlink(missing_ok=True)  # or it would be found, and refused, for ever
        raise


def _read(path: Path, known: Dataset) -> UciTable:
    try:
        inputs, targets = _arrays(path, known)
    except (UciError, MemoryError):
        raise
    except Exception as error:  # readers meet damaged files in many ways of their own
        raise _refusal(path, known, f"it cannot be read: {first_line(error)}") from error
    problem = difference(known, inputs, targets)
    if problem is not None:
        raise _refusal(path, known, problem)
    is_complete = len(targets) == known.n_rows
    return UciTable(
        known.name, inputs, targets, known.feature_names, known.target, is_complete, path
    )


def _arrays(path: Path, known: Dataset) -> Arrays:
    if path.suffix == ".parquet":
        return read_parquet(path, known)
    if path.suffix == ".npz":
        return read_npz(path)
    columns = dict(zip(known.columns, read_original(path, known).T, strict=True))
    inputs = np.column_stack([columns[name] for name in known.feature_names])
    return inputs, np.ascontiguousarray(columns[known.target])


def _refusal(path: Path, known: Dataset, problem: str) -> UciError:
    remedy = f"replace it with the file from {known.url}"
    if _is_cached(path):
        remedy = f"run `priornet datasets get {known.name}` to download it anew"
    return UciError(f"{path}: this is not the table {known.name}: {problem}; {remedy}.")


def _is_cached(path: Path) -> bool:
    own = cache()
    return own is not None and path.is_relative_to(own)
