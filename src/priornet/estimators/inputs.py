"""What estimators accept: arrays as scikit-learn has them, and tables with text and holes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import (
    _check_feature_names,  # pyright: ignore[reportPrivateUsage] # for frames with text columns
    _check_sample_weight,  # pyright: ignore[reportPrivateUsage] # every weighted estimator uses it
    validate_data,
)

from priornet.tables.matching import Unseen
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import column_names, num_rows, pick_columns, unmasked
from priornet.tables.target_columns import check_magnitude

__all__ = [
    "check_inputs",
    "check_targets",
    "check_weight",
    "is_table",
    "known_columns",
    "merge_equal_rows",
    "row_index",
    "row_names",
    "unseen_notice",
]

FloatArray = NDArray[np.float64]

_MOST_NAMED = 5
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)


def is_table(X: object) -> bool:
    """Whether these are named columns of any kind, not one array of numbers."""
    module = type(X).__module__.partition(".")[0]
    # One kind of sparse matrix is a dict too.
    return module in ("pandas", "pyarrow") or (isinstance(X, dict) and module != "scipy")


def check_inputs(
    estimator: BaseEstimator, X: Any, *, known: TablePreprocessor | None = None
) -> Any:
    """Return inputs in the form that the preprocessor takes; of a table, the columns it knows.

    Args:
        estimator: Who asks; gets ``n_features_in_`` and ``feature_names_in_`` in a fit.
        X: An array of numbers (nan is a missing value), or a table.
        known: What training learnt of the columns; None in a fit.
    """
    table = unmasked(X)
    if not is_table(table):
        return validate_data(
            estimator,
            table,
            reset=known is None,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=1,
        )
    if known is None:
        _check_feature_names(estimator, table, reset=True)
        return table
    return known_columns(table, known)


def known_columns(X: Any, known: TablePreprocessor) -> Any:
    """Return the columns of a table that training knew, in its order; others are left out.

    Args:
        X: A table, or anything else, which stays as it is.
        known: What training learnt; it will name the columns that are not there.
    """
    names, given = known.feature_names_in_, column_names(X) if is_table(X) else None
    if names is None or given is None or given == names:
        return X
    present = [name for name in names if name in set(given)]
    return pick_columns(X, present) if present else X  # numbered columns are known by their order


def check_targets(y: Any, X: Any) -> tuple[FloatArray, tuple[str, ...], bool]:
    """Targets ``(N, K)``, their names, and whether they came as a vector."""
    if y is None:
        raise ValueError(
            "this estimator requires y to be passed, but the target y is None; give the targets."
        )
    names = _target_names(y)
    _check_cells(y, names)
    try:
        # scikit-learn infers that `dtype` is text from its default.
        kind: Any = np.float64
        values = check_array(y, ensure_2d=False, dtype=kind, input_name="y", allow_nd=True)
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"the target {names[0]!r} is not numeric: {error}.") from error
        raise
    if values.ndim > 2:
        raise ValueError(f"`y` must have one or two dimensions; got shape {values.shape}.")
    check_consistent_length(np.empty(num_rows(X)), values)
    is_vector = values.ndim == 1
    values = values.reshape(len(values), -1)
    if len(names) != values.shape[1]:
        names = tuple(f"y{k}" for k in range(values.shape[1]))
    check_magnitude(values, names)
    return values, names, is_vector


def _check_cells(y: Any, names: tuple[str, ...]) -> None:
    """Refuse masked targets, and moments and durations, which NumPy counts in units of its own."""
    if np.ma.is_masked(y):
        row = int(np.nonzero(np.ma.getmaskarray(y))[0][0])
        raise ValueError(
            f"the target {names[0]!r} is masked in row {row}: leave rows without a target out."
        )
    is_frame = hasattr(y, "iloc") and y.ndim == 2
    columns = [y.iloc[:, k] for k in range(y.shape[1])] if is_frame else [y]
    for name, column in zip(names, columns, strict=False):
        array = np.asarray(column)
        if array.dtype.kind in "mM" or (
            array.dtype.kind == "O" and any(isinstance(value, _TIMES) for value in array.flat)
        ):
            raise ValueError(
                f"the target {name!r} holds dates or durations; it must be numeric: convert it, "
                "such as to days."
            )


def _target_names(y: Any) -> tuple[str, ...]:
    columns = getattr(y, "columns", None)
    if columns is not None:
        return tuple(str(name) for name in columns)
    name = getattr(y, "name", None)
    return (str(name),) if name is not None else ("y",)


def check_weight(sample_weight: Any, y: FloatArray) -> FloatArray | None:
    """Weights per row, checked; None where there are none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("`sample_weight` must be positive for at least one row.")
    return weight


def merge_equal_rows(
    X: FloatArray, y: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int64]]:
    """Distinct rows in a fixed order, each with the weight of all its copies and its first place.

    A few rows, trained on for long, turn the last digit of a sum into the fifth of a prediction. So
    that weight 2 and a repeated row agree, both are brought to one form first.
    """
    rows = np.concatenate([X, y], axis=1)
    distinct, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    weight = np.ones(len(rows)) if weight is None else weight
    total: FloatArray = np.zeros(len(distinct))
    np.add.at(total, inverse.reshape(-1), weight)
    return distinct[:, : X.shape[1]], distinct[:, X.shape[1] :], total, first


def row_names(X: Any, rows: NDArray[np.int64]) -> Callable[[int], object]:
    """What the user calls some rows of a table: by a frame's index, else by position from 0.

    Args:
        X: The table as it was given.
        rows: Positions in it of the rows at work.
    """
    index = row_index(X)
    return lambda row: rows[row] if index is None else index[rows[row]]


def row_index(X: Any) -> Any:
    """Return the index of a pandas frame; None for tables whose rows have positions only."""
    return X.index if hasattr(X, "iloc") else None


def unseen_notice(unseen: Unseen, index: Any = None) -> str:
    """Name the first rows with what training never had, and the columns.

    Args:
        unseen: Of at least one row.
        index: Names of the rows; by default their positions.
    """
    columns, rows = unseen.columns, np.flatnonzero(unseen.rows)
    shown = [f"row {i if index is None else index[i]} ({columns[i]})" for i in rows[:_MOST_NAMED]]
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return (
        f"{len(rows)} of {unseen.n_rows} rows are unfamiliar for what training never had (a "
        "missing value, a new label, a number far out of range, or too few values): "
        f"{', '.join(shown)}{more}; `return_columns=True` names the columns of each row instead."
    )
