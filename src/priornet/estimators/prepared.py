"""A table on its way to the networks: checked, split, and standardised as tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import (
    _check_feature_names,  # pyright: ignore[reportPrivateUsage] # for frames with text columns
    _check_sample_weight,  # pyright: ignore[reportPrivateUsage] # every weighted estimator uses it
    validate_data,
)
from torch import Tensor

from priornet.estimators.held_out import FEWEST
from priornet.estimators.target_transform import choose_transform, fit_maps
from priornet.messages import warn_user
from priornet.tables.column_summaries import TableWarning, column_notes, warn_of_columns
from priornet.tables.learning import (
    FloatArray,
    MaxLabels,
    TargetColumns,
    check_magnitude,
    clip_targets,
    target_notes,
    target_scaling,
)
from priornet.tables.memory import check_fits
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import column_names, num_rows, pick_columns, take_rows, unmasked
from priornet.tables.target_maps import map_targets
from priornet.tables.values import check_not_infinite
from priornet.training.stack_training import SMALL, Auto

Rows = NDArray[np.int64]

_TIMES = (date, timedelta, np.datetime64, np.timedelta64)
_CALIBRATION = (100, 1000)  # rows from which calibration rows are held out; most of them


@dataclass
class Prepared:
    """A table ready for training, in standardised units."""

    preprocessor: TablePreprocessor
    columns: TargetColumns
    inputs: Tensor
    """``(N, D)``."""
    targets: Tensor
    """``(N, K)``."""
    weight: Tensor
    """``(N,)``, of mean 1 over the training rows."""
    train: Tensor
    """Numbers of the rows to learn from."""
    held: Tensor
    """Numbers of the rows for calibration."""
    rng: np.random.RandomState
    table: Any
    """The rows as they were given, in the order of ``inputs``."""


def prepare_table(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    calibration_fraction: float | Auto,
) -> Prepared:
    """Check the table that an estimator learns from, split it, and standardise it."""
    shape = getattr(X, "shape", ())
    if len(shape) == 2:  # before any copy
        check_fits(*shape)
    table = check_inputs(model, X)
    values, names, is_vector = check_targets(y, table)
    weight = _check_weight(sample_weight, values)
    rows = np.arange(len(values))  # their numbers in X
    if weight is not None and not weight.all():  # a row of weight 0 does not count
        rows = np.flatnonzero(weight)
        table, values, weight = take_rows(table, rows), values[rows], weight[rows]
    if isinstance(table, np.ndarray) and len(values) < 4 * SMALL:
        distinct = _merge_equal_rows(table, values, weight)
        if len(distinct[0]) < SMALL:
            table, values, weight, first = distinct
            rows = rows[first]
    if len(values) < 2:
        raise ValueError(
            f"Found array with {len(values)} sample(s), n_samples={len(values)}, while a "
            "minimum of 2 is required."
        )
    rng = check_random_state(model.random_state)
    train, held = _split_rows(len(values), calibration_fraction, rng)
    preprocessor = _fit_preprocessor(table, weight, train, model.max_labels, leave_out_ids=True)
    row = _row_names(X, rows)
    notes = column_notes(preprocessor.summaries_, row)
    warn_of_columns([*target_notes(values, names, row), *notes])
    own = None if weight is None else weight[train]
    kind = model.target_transform
    if kind == "auto":
        values = clip_targets(values, train)  # a typing error must not choose the scale
        known = take_rows(table, train)
        kind = choose_transform(preprocessor, known, values[train], own, names, rng)
    maps = fit_maps(kind, values[train], own, names)
    # Of a mapped target it is the mapped value that is an outlier or not.
    mapped = clip_targets(values if maps is None else map_targets(values, maps, names), train)
    columns = TargetColumns(names, is_vector, target_scaling(mapped[train], own, names), maps)
    weight = np.ones(len(values)) if weight is None else weight / weight[train].mean()
    return _standardised(model, preprocessor, columns, table, mapped, weight, (train, held), rng)


def prepare_for_teacher(
    model: Any,
    table: Any,
    y: Any,
    sample_weight: Any,
    columns: TargetColumns,
    known: TablePreprocessor | None = None,
) -> Prepared:
    """Standardise checked inputs in the units of a teacher, by its preprocessor if it has one.

    Targets serve calibration alone; without them no row is held out.
    """
    rng, n_rows = check_random_state(model.random_state), num_rows(table)
    values, train, held = np.zeros((n_rows, len(columns.names))), np.arange(n_rows), np.arange(0)
    if y is not None:
        values, names, is_vector = check_targets(y, table)
        if len(names) != len(columns.names):
            raise ValueError(
                f"`y` has {len(names)} columns; the teacher predicts {len(columns.names)} targets."
            )
        columns = TargetColumns(names, is_vector, columns.scaling, columns.maps)
        values = columns.mapped(values)
        train, held = _split_rows(n_rows, model.calibration_fraction, rng)
    weight = _check_weight(sample_weight, values)
    counted = train if known is None else np.arange(n_rows)
    if known is None:
        known = _fit_preprocessor(table, weight, train, model.max_labels)
        warn_of_columns(column_notes(known.summaries_, _row_names(table, np.arange(n_rows))))
    weight = np.ones(n_rows) if weight is None else weight / weight[counted].mean()
    return _standardised(model, known, columns, table, values, weight, (train, held), rng)


def _split_rows(
    n_rows: int, calibration_fraction: float | Auto, rng: np.random.RandomState
) -> tuple[Rows, Rows]:
    """Hold out calibration rows: by default a tenth, at most 1000; none of fewer than 100."""
    least, most = _CALIBRATION
    if calibration_fraction == "auto":
        n_held = min(n_rows // 10, most) if n_rows >= least else 0
    elif 0 <= calibration_fraction < 1:
        n_held = round(n_rows * calibration_fraction)
    else:
        raise ValueError(
            f"`calibration_fraction` must be 'auto' or lie in [0, 1); got {calibration_fraction}."
        )
    if n_held == 0:  # no draw: the rows keep their order
        return np.arange(n_rows), np.arange(0)
    order = rng.permutation(n_rows)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def _fit_preprocessor(
    table: Any,
    weight: FloatArray | None,
    train: Rows,
    max_labels: MaxLabels,
    *,
    leave_out_ids: bool = False,
) -> TablePreprocessor:
    """Learn columns from training rows; summarise them, and find ids, over all rows."""
    whole = TablePreprocessor(max_labels=max_labels, leave_out_ids=leave_out_ids)
    whole.fit(table, weight)
    if len(train) == num_rows(table):
        return whole
    own = None if weight is None else weight[train]
    learned = TablePreprocessor(max_labels=max_labels)
    learned.fit(take_rows(known_columns(table, whole), train), own)
    learned.summaries_, learned.left_out_ = whole.summaries_, whole.left_out_
    return learned


def _standardised(
    model: Any,
    preprocessor: TablePreprocessor,
    columns: TargetColumns,
    table: Any,
    values: FloatArray,
    weight: FloatArray,
    split: tuple[Rows, Rows],
    rng: np.random.RandomState,
) -> Prepared:
    """Standardise checked rows and mapped targets ``(N, K)``."""
    # Tables of a few rows afford double precision: weighting and repeating a row then agree.
    dtype = torch.float64 if len(values) < SMALL else torch.float32
    if len(values) < FEWEST:
        warn_user(
            f"{len(values)} rows to learn from are fewer than {FEWEST}: no prediction of the model "
            "can be trusted, and it calls every row unfamiliar.",
            TableWarning,
        )
    check_fits(len(values), len(preprocessor.source_))
    tensor = partial(torch.as_tensor, dtype=dtype, device=chosen_device(model.device))
    train, held = split
    kind = np.float64 if dtype == torch.float64 else np.float32
    inputs = preprocessor.transform(table, dtype=kind)
    inputs[train] = preprocessor.within(inputs[train])
    shift, scale = columns.scaling
    return Prepared(
        preprocessor,
        columns,
        tensor(inputs),
        tensor((values - shift) / scale),
        tensor(weight),
        torch.from_numpy(train),
        torch.from_numpy(held),
        rng,
        table,
    )


def _merge_equal_rows(
    X: FloatArray, y: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray, Rows]:
    """Return distinct rows in a fixed order, with the weight of all copies and the first place.

    Long training on few rows turns the last digit of a sum into the fifth digit of a prediction.
    Weight 2 and a repeated row therefore get one form first, so that they agree.
    """
    rows = np.concatenate([X, y], axis=1)
    distinct, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    weight = np.ones(len(rows)) if weight is None else weight
    total: FloatArray = np.zeros(len(distinct))
    np.add.at(total, inverse.reshape(-1), weight)
    return distinct[:, : X.shape[1]], distinct[:, X.shape[1] :], total, first


def is_table(X: object) -> bool:
    """Tell if this is a table with columns of any kind, not one array of numbers."""
    module = type(X).__module__.partition(".")[0]
    # One kind of sparse matrix is a dict too.
    return module in ("pandas", "pyarrow") or (isinstance(X, dict) and module != "scipy")


def check_inputs(
    estimator: BaseEstimator, X: Any, *, known: TablePreprocessor | None = None
) -> Any:
    """Return inputs in the form that the preprocessor takes; of a table, the columns it knows.

    Args:
        estimator: The estimator; it gets ``n_features_in_`` and ``feature_names_in_`` in a fit.
        X: An array of numbers (nan is a missing value), or a table.
        known: Preprocessing of the training; None in a fit.
    """
    table = unmasked(X)
    if not is_table(table):
        array: Any = validate_data(
            estimator,
            table,
            reset=known is None,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=1,
        )
        if not np.isfinite(array).all():
            for j in range(array.shape[1]):
                check_not_infinite(j, array[:, j])
        return array
    if known is None:
        _check_feature_names(estimator, table, reset=True)
        return table
    return known_columns(table, known)


def known_columns(X: Any, known: TablePreprocessor) -> Any:
    """Return the columns of a table that training knew, in its order; arrays stay as they are."""
    names, given = known.feature_names_in_, column_names(X) if is_table(X) else None
    if names is None or given is None or given == names:
        return X
    present = [name for name in names if name in set(given)]
    return pick_columns(X, present) if present else X  # numbered columns are known by their order


def check_targets(y: Any, X: Any) -> tuple[FloatArray, tuple[str, ...], bool]:
    """Return targets ``(N, K)``, their names, and True if they were a vector."""
    if y is None:
        raise ValueError(
            "this estimator requires y to be passed, but the target y is None; give the targets."
        )
    names = _target_names(y)
    _check_cells(y, names)
    try:
        # scikit-learn infers that `dtype` is text from its default.
        kind: Any = np.float64
        values = check_array(
            y, ensure_2d=False, dtype=kind, input_name="y", allow_nd=True, ensure_all_finite=False
        )
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
    _check_finite(values, names, row_index(y))
    check_magnitude(values, names)
    return values, names, is_vector


def _check_finite(values: FloatArray, names: tuple[str, ...], index: Any) -> None:
    """Refuse missing and infinite targets ``(N, K)``, and name the first."""
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        row, k = wrong[0]
        is_missing = bool(np.isnan(values[row, k]))
        problem = "missing (NaN)" if is_missing else f"{values[row, k]:g} (infinity)"
        place = row if index is None else index[row]
        raise ValueError(
            f"the target {names[k]!r} is {problem} in row {place}: give a number, or leave the row "
            "out."
        )


def _check_cells(y: Any, names: tuple[str, ...]) -> None:
    """Refuse masked targets, and dates and durations, which NumPy counts in its own units."""
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


def _check_weight(sample_weight: Any, y: FloatArray) -> FloatArray | None:
    """Check weights per row; None stays None."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("`sample_weight` must be positive for at least one row.")
    return weight


def _row_names(X: Any, rows: Rows) -> Callable[[int], object]:
    """Return a function that names rows: by the index of the frame, else by position from 0."""
    index = row_index(X)
    return lambda row: rows[row] if index is None else index[rows[row]]


def row_index(X: Any) -> Any:
    """Return the index of a pandas frame; None for tables whose rows have positions only."""
    return X.index if hasattr(X, "iloc") else None


def chosen_device(device: Any) -> torch.device:
    """Find the device that a name stands for, and check that it can be used here."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f'`device` must be "auto", "cpu", "cuda" or "cuda:1", for example; got {device!r}.'
        ) from error
    try:
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        n_found = torch.cuda.device_count()
        seen = {0: "no GPU", 1: "one GPU"}.get(n_found, f"{n_found} GPUs")
        raise ValueError(
            f"`device` is {str(device)!r}, which cannot be used here (torch {torch.__version__} "
            f'sees {seen}): give "cpu", or "auto" for the GPU where there is one.'
        ) from error
    return found
