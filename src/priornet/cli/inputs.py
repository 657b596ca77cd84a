"""What commands read: a table's features and targets, a model's columns, a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from priornet.cli.errors import InputError, blamed_on, called, one_line
from priornet.cli.options import Interval

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from priornet.depth import SavedDepth
    from priornet.tables.encoding import RawColumn

__all__ = [
    "Labelled",
    "check_interval",
    "check_stdin",
    "is_network",
    "load_model",
    "load_network",
    "model_columns",
    "read_features",
    "read_labelled",
]


@dataclass(frozen=True)
class Labelled:
    """Rows with targets.

    Attributes:
        features: The other columns; its index counts the rows of the file from 1.
        targets: Target columns, float64, same index.
        n_left_out: Rows without target, left out.
        n_read: Rows of the file.
        index: Columns of the file that hold the unnamed index of a frame; features of no model.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    n_left_out: int
    n_read: int
    index: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> Labelled:
        """Some of the rows, by position."""
        return replace(self, features=self.features.iloc[rows], targets=self.targets.iloc[rows])

    @property
    def y(self) -> Any:
        """Targets as estimators want them: a vector where there is one column."""
        return self.targets.iloc[:, 0] if self.targets.shape[1] == 1 else self.targets


def read_labelled(
    path: str,
    targets: Sequence[str],
    features: Sequence[str] | None,
    ignored: Sequence[str] = (),
    known: Sequence[RawColumn] | None = None,
) -> Labelled:
    """Read a file, and take its targets apart from its features.

    Args:
        path: CSV or Parquet.
        targets: Target columns.
        features: Columns of a model, or None for all others.
        ignored: Columns to leave out.
        known: What a model learnt about them, where there is one.
    """
    import numpy as np

    from priornet.tables.raw import unnamed_indices
    from priornet.tables.read import check_columns, check_present, read_frame

    frame = read_frame(path, known)
    path = called(path)
    index: tuple[str, ...] = ()
    for names, what in ((targets, "target"), (ignored, "column to ignore")):
        for name in names:
            check_present(path, name, list(frame.columns), what)
    if len(set(targets)) < len(targets):
        raise InputError(f"a target is named twice: {', '.join(targets)}.")
    for name in targets:
        if name in ignored:
            raise InputError(f'the target "{name}" is also to be ignored; name it once.')
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


def read_features(
    path: str, features: Sequence[str], known: Sequence[RawColumn] | None = None
) -> pd.DataFrame:
    """The columns of a model from a file that need not have targets."""
    from priornet.tables.read import check_columns, read_frame

    frame = read_frame(path, known)
    check_columns(path, features, list(frame.columns))
    return frame.filter(list(features))


def check_stdin(*paths: str | None) -> None:
    """Refuse to read standard input twice: the second time nothing is left."""
    if paths.count("-") > 1:
        raise InputError("standard input is named twice; name a file in one of its places.")


def _numeric_target(path: str, frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """One target column as numbers, nan where it is missing."""
    import numpy as np

    from priornet.tables.raw import read_table
    from priornet.tables.values import Numbers, decimals_among_thousands, parse_labels

    column = read_table(frame[[name]]).column(0)
    if isinstance(column, Numbers):
        if column.is_date:
            raise InputError(f'{path}: the target "{name}" holds dates; it must be numeric.')
        values = column.values
    else:
        parsed = parse_labels(column.labels)
        if parsed is None or parsed[0] == "date":
            odd = decimals_among_thousands(column.labels)
            wrong = [
                label in odd if odd else parse_labels([label], "number") is None
                for label in column.labels
            ]
            row = int(np.argmax(np.array([*wrong, False])[column.codes]))
            text = column.labels[column.codes[row]][:80]
            why = ", though most commas group thousands: write all with a point" if odd else ""
            raise InputError(
                f'{path}: the target "{name}" must be numeric; row {row + 1} holds "{text}"{why}.'
            )
        values = np.append(parsed[1], np.nan)[column.codes]
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values))) + 1
        raise InputError(f'{path}: the target "{name}" is infinite in row {row}.')
    return values


def model_columns(model: Any) -> list[str]:
    """Names of the columns that a model reads."""
    names = model.fitted_.preprocessor.feature_names_in_
    if names is None:
        raise InputError("the model was trained on an array, whose columns have no names.")
    return list(names)


def load_model(path: Path) -> Any:
    """A model from its folder; what there is to say about that goes to standard error."""
    from priornet.estimators.files.folders import found_folder

    if not found_folder(path).is_dir():
        found = "it is a file, not a model folder" if path.exists() else "no such folder"
        raise InputError(f"{path}: {found}; `priornet fit --out` writes one.")
    from priornet.estimators import load

    with blamed_on(path), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = load(path)
    for warning in heard:
        typer.echo(f"Warning: {one_line(str(warning.message))}", err=True)
    return model


def check_interval(path: Path, model: Any, interval: Interval, coverage: float) -> None:
    """Refuse a coverage between 0 and 1 that a model's held-out rows are too few for."""
    if interval is not Interval.CONFORMAL:
        return
    from priornet.estimators import DistilledRegressor
    from priornet.estimators.held_out import conformal_quantile

    try:
        conformal_quantile(model.fitted_.calibration_scores, coverage)
    except ValueError as error:
        reason = one_line(error).partition(": ")[0]
        way = "fit again with more rows, or with a larger --calibration"
        if isinstance(model, DistilledRegressor):  # of `fit`, or of `distill`
            way += "; a student of `priornet distill`: with --target and more rows"
        raise InputError(f"{path}: {reason}; {way}.") from error


def is_network(path: Path) -> bool:
    """Tell if a path is meant for a file of weights, not for a model's folder."""
    return path.is_file() or (path.suffix == ".safetensors" and not path.exists())


def load_network(path: Path, interval: Interval = Interval.PREDICTIVE) -> SavedDepth:
    """Load a depth network from its file."""
    if interval is not Interval.PREDICTIVE:
        raise InputError(
            f"{path}: a depth network has no held-out rows for --interval {interval.value}."
        )
    writers = "`priornet reproduce depth` and `priornet.depth.save_depth` write them."
    if not path.exists():
        raise InputError(f"{path}: no such file; {writers}")
    with path.open("rb"):  # a file that may not be read is not damaged
        pass
    from priornet.depth import load_depth
    from priornet.nn.weights import TensorFileError

    try:
        return load_depth(path)
    except TensorFileError as error:
        raise InputError(
            f"{path}: it is a file, but no file of weights of a depth network, or damaged; "
            f"{writers} A model of tables is a folder."
        ) from error
    except ValueError as error:
        raise InputError(one_line(error)) from error
