"""From a name to a table: find its file or download it, read it, check that it is the table.

``fingerprints.json`` holds statistics of the real tables, never their data. For each column: the
mean, the standard deviation, and the covariance with the row number scaled to [-1, 1], which
detects another order of the rows; the published splits are row numbers. For tables with
``first_rows`` it describes these rows only.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from priornet.messages import first_line
from priornet_paper.uci.data.formats import Arrays, read_npz, read_original, read_parquet, write_npz
from priornet_paper.uci.data.registry import Dataset, UciError, dataset, need

VARIABLE = "PRIORNET_DATA"
_ENDINGS = (".zip", ".csv", ".txt", ".arff", ".xls", ".xlsx")
_SECONDS = 60
_CHUNK_BYTES = 1 << 20


def cache() -> Path | None:
    """Return the user's cache, there or not; None without Pooch, which knows its place."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("priornet")).expanduser()


def roots() -> list[Path]:
    """List the folders to look in: ``$PRIORNET_DATA``, then the user's cache."""
    named = os.environ.get(VARIABLE)
    if named and not Path(named).is_dir():
        raise UciError(f"{named}: ${VARIABLE} must name a folder, and there is none.")
    folders = [Path(named) if named else None, cache()]
    return [folder for folder in folders if folder is not None]


def places() -> list[Path]:
    """List each of the folders to look in, and the folder ``uci`` in it."""
    return [place for root in roots() for place in (root, root / "uci")]


def url_file(url: str) -> str:
    """Return the file name of a download."""
    return PurePosixPath(unquote(urlsplit(url).path)).name


def file_names(known: Dataset) -> list[str]:
    """List the file names of a whole table: our copies, the original, its archive."""
    copies = [f"{known.name}.parquet", f"{known.name}.npz"]
    downloads = [url_file(url) for url in known.urls]
    return [*copies, *dict.fromkeys([*known.files, *downloads])]


def find(names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists; folders count before names."""
    names = list(names)
    paths = (place / name for place in places() for name in names)
    return next((path for path in paths if path.is_file()), None)


def find_table(known: Dataset) -> Path | None:
    """Return the file of a table, under one of its own names or under the table's."""
    return find([*file_names(known), *(f"{known.name}{ending}" for ending in _ENDINGS)])


def find_first_rows(known: Dataset) -> Path | None:
    """Return a file with the first rows of a table, if the registry knows their fingerprint."""
    if known.first_rows is None:
        return None
    stem = f"{known.name}_first{known.first_rows}"
    return find([f"{stem}.parquet", f"{stem}.npz"])


def missing(what: str, names: Iterable[str], remedy: str) -> UciError:
    """Make the error for a file that was not found, with what to do about it."""
    named, own = os.environ.get(VARIABLE), cache()
    looked = [f"${VARIABLE} ({named})" if named else f"${VARIABLE} (not set)"]
    looked.append("the cache (Pooch, which knows its place, is not installed)")
    if own is not None:
        looked[-1] = f"the cache ({own})"
    return UciError(
        f"{what} not here: looked in {' and '.join(looked)} for {', '.join(names)}. {remedy}"
    )


def download(known: Dataset) -> Path:
    """Download the original file of a table; nothing is left behind if that fails.

    The caller checks the content: archives are packed anew now and then, so that their checksums
    say little.
    """
    pooch = need("pooch", "download tables")
    folder = cache()
    assert folder is not None  # Pooch is there
    failures: list[str] = []
    for url in known.urls:
        try:
            with _quiet(pooch.get_logger()):
                downloader = pooch.HTTPDownloader(chunk_size=_CHUNK_BYTES, timeout=_SECONDS)
                return Path(
                    pooch.retrieve(url, None, url_file(url), folder / "uci", downloader=downloader)
                )
        except OSError as error:  # what requests raises is one as well
            failures.append(f"{url}: {_reason(error)}")
    remedy = (
        f"Downloading failed ({'; '.join(failures)}): try again, or get the file by other means "
        "and put it into such a folder."
    )
    raise missing(f"{known.name} is", file_names(known), remedy)


def _reason(error: OSError) -> str:
    """Give the reason why a download failed, without the layers that the error went through."""
    requests = need("requests", "download tables")
    if isinstance(error, requests.Timeout):
        return "no answer"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return first_line(error)


@contextmanager
def _quiet(logger: logging.Logger) -> Generator[None]:
    """Silence Pooch's advice about checksums."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


# -- tables ----------------------------------------------------------------------------------------

# In standard deviations of the column. Sums in another order differ by 1e-12; one wrong cell, off
# by one deviation, shifts the mean of the largest table here by 2e-5.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class UciTable:
    """A table, its rows in the original order.

    Attributes:
        name: As in ``DATASETS``.
        inputs: Shape ``(N, D)``.
        targets: Shape ``(N,)``.
        feature_names: One a column of ``inputs``.
        target_name: Name of the target's column.
        is_complete: False for the first rows of the table only.
        path: The file.
    """

    name: str
    inputs: NDArray[np.float64]
    targets: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    is_complete: bool
    path: Path


def load_uci(name: str, *, may_download: bool = True) -> UciTable:
    """Load a table from ``$PRIORNET_DATA``, else from the user's cache, else download it.

    A whole table comes before a file of its first rows; first rows come before a download.

    Args:
        name: One of ``DATASETS``.
        may_download: Download a table that is not here.

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
    """Load a whole table, downloaded unless it is here; return also if it was downloaded.

    A damaged file in the cache is replaced. A damaged file in ``$PRIORNET_DATA`` is an error.
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


# -- is it the table? ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fingerprint:
    """Statistics of a table: one number a column, features first and the target last."""

    n_rows: int
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    """Standard deviations, over N."""
    trend: NDArray[np.float64]
    """Covariances with the row number."""


def measure(inputs: NDArray[np.float64], targets: NDArray[np.float64]) -> Fingerprint:
    """Compute the fingerprint of a table."""
    values = np.column_stack([inputs, targets])
    mean = values.mean(axis=0)
    ramp = np.linspace(-1.0, 1.0, len(values))
    return Fingerprint(len(values), mean, values.std(axis=0), ramp @ (values - mean) / len(values))


@functools.cache
def fingerprints() -> dict[str, Fingerprint]:
    """Read the known fingerprints, by the name of the table."""
    text = (resources("priornet_paper.uci.data") / "fingerprints.json").read_text(encoding="utf-8")
    return {
        name: Fingerprint(
            own["n_rows"], *(np.array(own[key], np.float64) for key in ("mean", "std", "trend"))
        )
        for name, own in json.loads(text).items()
    }


def difference(
    known: Dataset, inputs: NDArray[np.float64], targets: NDArray[np.float64]
) -> str | None:
    """Describe the first difference between arrays and the table; None if there is none."""
    expected = fingerprints()[known.name]
    if inputs.ndim != 2 or inputs.shape[1] != known.n_features:
        n_columns = inputs.shape[1] if inputs.ndim == 2 else "no"
        return f"it has {n_columns} feature columns instead of {known.n_features}"
    if targets.shape != inputs.shape[:1]:
        return f"its targets have the shape {targets.shape} beside {len(inputs)} rows"
    if len(targets) not in (known.n_rows, expected.n_rows):
        return f"it has {len(targets)} rows instead of {known.n_rows}"
    if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
        return "some of its values are missing or infinite"
    found = measure(inputs[: expected.n_rows], targets[: expected.n_rows])
    return _unlike(found, expected, [*known.feature_names, known.target])


def _unlike(found: Fingerprint, expected: Fingerprint, names: Sequence[str]) -> str | None:
    # A constant column has no deviation to measure by; rounding stays far below its size.
    tolerance = _TOLERANCE * expected.std + 1e-9 * np.abs(expected.mean)
    for what, ours, theirs in (
        ("mean", found.mean, expected.mean),
        ("standard deviation", found.std, expected.std),
    ):
        wrong = np.flatnonzero(np.abs(ours - theirs) > tolerance)
        if len(wrong):
            at = wrong[0]
            numbers = f"{ours[at]:.9g} instead of {theirs[at]:.9g}"
            return f'the column "{names[at]}" has the {what} {numbers}'
    if (np.abs(found.trend - expected.trend) > tolerance).any():
        return "its rows are in another order, or their values belong to other rows"
    return None
