"""How scikit-learn models are called: with names where they learnt with names."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.distill.teachers.named_columns import by_name
from priornet.tables.raw import as_matrix

__all__ = ["as_targets", "call", "model_names", "quiet_about_names", "rows_for"]


def model_names(model: Any) -> tuple[str, ...] | None:
    """Names of the columns that a model was fitted with."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def rows_for(model: Any, X: Any) -> Any:
    """The rows in the form that a model knows: its columns, without names where it learnt none."""
    names = model_names(model)
    rows = by_name(X, names)
    return as_matrix(rows) if names is None or isinstance(rows, Mapping) else rows


def call(model: Any, X: Any) -> NDArray[np.float64]:
    """Its prediction, ``(N, K)``."""
    with quiet_about_names():
        answer = np.asarray(model.predict(rows_for(model, X)), np.float64)
    return answer.reshape(len(answer), -1)


def as_targets(y: Any) -> NDArray[np.float64]:
    """Targets ``(N, K)``."""
    values = np.asarray(y, np.float64)
    return values.reshape(len(values), -1)


@contextmanager
def quiet_about_names() -> Generator[None]:
    """An array for a model that learnt with names is no reason for a warning per tree."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="X has feature names, but")
        yield
