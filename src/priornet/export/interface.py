"""The interface of an exported table model: its raw columns, its interval, and its refusals.

ONNX files and ``torch.export`` programs have the same inputs in two forms. A graph takes every
column as it is: numbers, nan where missing (dates as days since 1970, true and false as 1 and 0),
and labels as text, ``""`` where missing. A program takes one matrix of numbers, because tensors
hold no text: a label is its position in the list of labels that the file contains, -1 if it is not
in the list, and nan where missing.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet._lazy import need_for
from priornet._version import __version__
from priornet.estimators.held_out import conformal_quantile
from priornet.estimators.prediction import Fitted
from priornet.messages import InputError
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.values import Texts

INPUT = "X"
"""The one input of a graph without column names."""
_EDGE = 1e-12  # least distance of a coverage from 0 and 1


class ExportError(InputError):
    """A model cannot be exported, or a file cannot be compared; the message is one line."""


need = partial(need_for, extra="onnx", error=ExportError)
"""Import a module of the extra ``onnx``; the error tells how to install it."""


@contextmanager
def named(path: object) -> Generator[None]:
    """Begin the messages of errors with the name of a file."""
    try:
        yield
    except ExportError as error:
        raise ExportError(f"{path}: {error}") from error


@contextmanager
def quiet(name: str) -> Generator[None]:
    """Hold back warnings, and a logger's messages below an error."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


@dataclass(frozen=True)
class Interval:
    """The interval of an exported file.

    Attributes:
        coverage: Between 0 and 1.
        factors: Conformal: half widths in standard deviations of the total, one per target. None
            for the quantiles of the predictive.
    """

    coverage: float
    factors: tuple[float, ...] | None = None


def fitted_part(model: Any) -> Fitted:
    """Return the fitted part of an estimator, and refuse one that is not fitted."""
    if not hasattr(model, "fitted_"):
        raise ExportError(f"this {type(model).__name__} is not fitted yet; call `fit` first.")
    return model.fitted_


def interval_of(fitted: Fitted, coverage: float, method: str) -> Interval:
    """Return the interval of a model by its coverage and method."""
    check_coverage(coverage)
    if method == "predictive":
        return Interval(coverage)
    if method != "conformal":
        raise ExportError(f'unknown interval "{method}"; choose one of: predictive, conformal.')
    factors = conformal_quantile(fitted.calibration_scores, coverage)
    return Interval(coverage, tuple(float(factor) for factor in factors))


def check_coverage(coverage: float) -> None:
    """Refuse a coverage that double precision cannot tell from 0 or 1."""
    if not _EDGE <= coverage <= 1 - _EDGE:
        near = f", {_EDGE:g} away from both" if 0 < coverage < 1 else ""
        raise ExportError(f"`coverage` must lie between 0 and 1{near}; got {coverage!r}.")


def normal_quantile(coverage: float) -> float:
    """Return half the width of the central interval of a standard normal."""
    return -NormalDist().inv_cdf((1 - coverage) / 2)


def origin(model: Any, coverage: float, interval: str) -> dict[str, Any]:
    """Describe the estimator that a file is made from, for the file's metadata."""
    return {
        "version": __version__,
        "estimator": type(model).__name__,
        "coverage": coverage,
        "interval": interval,
        "targets": list(model.fitted_.targets.names),
    }


def input_names(preprocessor: TablePreprocessor) -> tuple[str, ...] | None:
    """Return the names of a graph's inputs, one per column; None where one input holds them all."""
    if preprocessor.feature_names_in_ is not None:
        return preprocessor.feature_names_in_
    if all(column.kind == "numeric" for column in preprocessor.columns_):
        return None
    return _positional_names(preprocessor)


def _positional_names(preprocessor: TablePreprocessor) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(preprocessor.n_features_in_))


def feeds(preprocessor: TablePreprocessor, X: Any) -> dict[str, NDArray[Any]]:
    """Convert the rows of a table to the inputs of a graph.

    Args:
        preprocessor: The model's; it must be able to read this table.
        X: A table with the columns of training, in any order where they have names.
    """
    columns = [
        values.lookup(np.array(values.labels, object), "") if isinstance(values, Texts) else values
        for _, values in preprocessor.read_columns(X)
    ]
    names = input_names(preprocessor)
    if names is None:
        return {INPUT: np.column_stack(columns)}
    return {n: v.reshape(-1, 1) for n, v in zip(names, columns, strict=True)}


def numbers(preprocessor: TablePreprocessor, X: Any) -> NDArray[np.float64]:
    """Convert the rows of a table to the one matrix of a program; arguments as for ``feeds``."""
    return preprocessor.columns_matrix(X)


def describe_columns(preprocessor: TablePreprocessor) -> list[dict[str, Any]]:
    """Describe each column of a program's matrix: its name, its kind, and its labels in order."""
    names = input_names(preprocessor) or _positional_names(preprocessor)
    found: list[dict[str, Any]] = []
    for name, column in zip(names, preprocessor.columns_, strict=True):
        if column.kind == "numeric":
            plain = column.parser not in ("date", "boolean")  # however its text was written
            found.append({"name": name, "kind": "number" if plain else column.parser})
        else:
            found.append({"name": name, "kind": "label", "labels": list(column.known_labels)})
    return found
