"""Table files taken apart into features and targets, with rows counted from 1 as in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from priornet.messages import InputError, blamed_on, called, counted
from priornet.tables.raw import read_table, unnamed_indices
from priornet.tables.read import check_columns, check_present, read_frame
from priornet.tables.values import Texts, decimals_among_thousands, parse_labels

if TYPE_CHECKING:
    import pandas as pd

    from priornet.tables.encoding import RawColumn

__all__ = ["Labelled", "index_left_out", "read_features", "read_labelled", "rows_without_target"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """Rows with targets.

    Attributes:
        features: The other columns; its index counts the rows of the file from 1.
        targets: Target columns, float64, same index.
        n_left_out: Number of rows without target, left out.
        n_read: Number of rows of the file.
        index: Columns of the file that hold the unnamed index of a frame; features of no model.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    n_left_out: int
    n_read: int
    index: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> Labelled:
        """Take some of the rows, by position."""
        return replace(self, features=self.features.iloc[rows], targets=self.targets.iloc[rows])

    @property
    def y(self) -> Any:
        """Return the targets as estimators take them: one column as a vector."""
        return self.targets.iloc[:, 0] if self.targets.shape[1] == 1 else self.targets


def read_labelled(
    path: str,
    targets: Sequence[str],
    features: Sequence[str] | None,
    ignored: Sequence[str] = (),
    known: Sequence[RawColumn] | None = None,
) -> Labelled:
    """Read a file, and separate its targets from its features.

    Args:
        path: CSV or Parquet.
        targets: Target columns.
        features: Columns of a model; by default all other columns.
        ignored: Columns to leave out.
        known: Columns of a model that will read the table.
    """
    frame = read_frame(path, known)
    path = called(path)
    _check_roles(path, list(frame.columns), targets, ignored)
    index: tuple[str, ...] = ()
    if features is None:
        features = [name for name in frame.columns if name not in {*targets, *ignored}]
        index = tuple(name for name in unnamed_indices(frame) if name in features)
        features = [name for name in features if name not in index]
        if not features:
            raise InputError(f"{path}: no column is left to predict from.")
    check_columns(path, features, list(frame.columns))
    frame.index = np.arange(1, len(frame) + 1)
    with blamed_on(path):
        values = frame[[]].assign(**{name: _numeric_target(path, frame, name) for name in targets})
    kept = np.flatnonzero(values.notna().all(axis=1))
    if len(kept) == 0:
        raise InputError(f'{path}: the target "{targets[0]}" has no value at all.')
    left_out = len(frame) - len(kept)
    whole = Labelled(frame.filter(list(features)), values, left_out, len(frame), index)
    return whole.take(kept)


def _check_roles(
    path: str, given: Sequence[str], targets: Sequence[str], ignored: Sequence[str]
) -> None:
    for names, what in ((targets, "target"), (ignored, "column to ignore")):
        for name in names:
            check_present(path, name, given, what)
    if len(set(targets)) < len(targets):
        raise InputError(f"a target is named twice: {', '.join(targets)}.")
    for name in targets:
        if name in ignored:
            raise InputError(f'the target "{name}" is also to be ignored; name it once.')


def read_features(
    path: str, features: Sequence[str], known: Sequence[RawColumn] | None = None
) -> pd.DataFrame:
    """Read the columns of a model from a file that need not have targets."""
    frame = read_frame(path, known)
    check_columns(path, features, list(frame.columns))
    return frame.filter(list(features))


def _numeric_target(path: str, frame: pd.DataFrame, name: str) -> FloatArray:
    """Read one target column as numbers, nan where a value is missing."""
    column = read_table(frame[[name]]).column(0)
    if isinstance(column, Texts):
        parsed = parse_labels(column.labels)
        if parsed is None or parsed[0] == "date":
            raise _no_number(path, name, column)
        values = column.lookup(parsed[1], np.nan)
    elif column.is_date:
        raise InputError(f'{path}: the target "{name}" holds dates; it must be numeric.')
    else:
        values = column.values
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values))) + 1
        raise InputError(f'{path}: the target "{name}" is infinite in row {row}.')
    return values


def _no_number(path: str, name: str, column: Texts) -> InputError:
    """Make the error for the first value of a target that is no number."""
    odd = decimals_among_thousands(column.labels)
    wrong = [
        label in odd if odd else parse_labels([label], "number") is None for label in column.labels
    ]
    row = int(np.argmax(column.lookup(wrong, False)))
    text = column.labels[column.codes[row]][:80]
    why = ", though most commas group thousands: write all with a point" if odd else ""
    return InputError(
        f'{path}: the target "{name}" must be numeric; row {row + 1} holds "{text}"{why}.'
    )


def rows_without_target(n_rows: int) -> list[str]:
    """Return a sentence about rows that could not be used, or none."""
    verbs = ("has", "was") if n_rows == 1 else ("have", "were")
    if n_rows == 0:
        return []
    return [f"{counted(n_rows)} {verbs[0]} no target and {verbs[1]} left out."]


def index_left_out(names: Sequence[str]) -> list[str]:
    """Return a sentence for each column of a file that is the unnamed index of a frame."""
    return [f'"{name}" is an index without a name and was left out.' for name in names]
