"""Answers on disk as a teacher: the way to use a model in any language.

A Parquet (or CSV) file has a row per input: the columns of the input, and for member ``m`` the
columns ``mean_m`` and ``variance_m``. With several targets, ``mean_m_k`` and ``variance_m_k``, or
``covariance_m_j_k`` for ``j >= k``. Members and targets count from 0.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.distill.teacher import Teacher, TeacherError
from priornet.tables.raw import column_names, num_rows
from priornet.tables.values import is_missing

_ANSWER = re.compile(r"(mean|variance|covariance)_(\d+)(?:_(\d+))?(?:_(\d+))?")


class StoredTeacher(Teacher):
    """A file of inputs and a teacher's answers; it answers for these rows only.

    A student learns from the rows of the file and from no others;
    :func:`priornet.distill.draw_inputs` proposes rows for the file.

    Args:
        path: Parquet or CSV.
        columns: Columns of the input; by default all that are not answers.

    Attributes:
        inputs: The inputs, a frame.
        index: Columns with the unnamed index of a frame, which are no inputs.
    """

    is_stored = True

    def __init__(self, path: str | Path, *, columns: tuple[str, ...] | None = None) -> None:
        from priornet.tables.raw import unnamed_indices
        from priornet.tables.read import read_frame

        frame = read_frame(path)
        names = [str(name) for name in frame.columns]
        answers = [name for name in names if _ANSWER.fullmatch(name)]
        index = unnamed_indices(frame)
        inputs = [name for name in names if name not in {*answers, *index}]
        own = inputs if columns is None else list(columns)
        self.index = tuple(name for name in index if name not in own)
        for name in own:
            if name not in names:
                raise TeacherError(f'{path}: the column "{name}" is not in the table.')
        if not own or not len(frame):
            raise TeacherError(f"{path}: no {'inputs' if len(frame) else 'rows'} in the table.")
        self.path = str(path)
        self.inputs: Any = frame.filter(own)
        self._means, self._covariances = _read_answers(str(path), frame, answers)
        keys = _keys(self.inputs, self.feature_names)
        self._row = {key: i for i, key in reversed(list(enumerate(keys)))}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the input."""
        return tuple(str(name) for name in self.inputs.columns)

    def gaussians(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Look up the answers of rows."""
        found = [self._row.get(key, -1) for key in _keys(X, self.feature_names)]
        missing = [i for i, row in enumerate(found) if row < 0]
        if missing:
            raise TeacherError(
                f"{self.path}: {len(missing)} of {num_rows(X)} rows are not in the file (the "
                f"first is row {missing[0] + 1}); a stored teacher knows no others."
            )
        rows = np.array(found)
        return self._means[:, rows], self._covariances[:, rows]


def _keys(table: Any, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Make a key of each row: numbers, text, and one word for every missing value."""
    own = column_names(table)
    if own is None:
        array = np.asarray(table)
        columns = [array[:, j] for j in range(min(len(names), array.shape[1]))]
    else:
        columns = [np.asarray(table[name]) for name in names if name in own]
    return list(zip(*([_cell(value) for value in column] for column in columns), strict=True))


def _cell(value: Any) -> Any:
    if is_missing(value):
        return "(missing)"
    return float(value) if isinstance(value, (int, float, np.number)) else str(value)


def _read_answers(path: str, frame: Any, names: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read means ``(M, N, K)``, and variances or covariances."""
    values = {_key(name): _read_numbers(path, frame, name) for name in names}
    means = sorted(numbers for kind, *numbers in values if kind == "mean")
    if not means:
        raise TeacherError(
            f'{path}: no answers in the table; it needs columns "mean_0", "variance_0", ...'
        )

    def column(*key: str | int) -> NDArray[Any]:
        if key not in values:
            name = "_".join(map(str, key))
            raise TeacherError(f'{path}: the column "{name}" is missing.')
        return values[key]

    is_flat = len(means[0]) == 1
    n_members = 1 + means[-1][0]
    k_dim = 1 if is_flat else 1 + max(numbers[1] for numbers in means)
    if len(means) != n_members * k_dim:  # before anything of that size is made
        for m, k in itertools.product(range(len(means) + 1), range(k_dim)):
            column("mean", *([m] if is_flat else [m, k]))
    n_rows, is_full = len(frame), any(key[0] == "covariance" for key in values)
    mean = np.empty((n_members, n_rows, k_dim))
    spread = np.empty((n_members, n_rows, *[k_dim] * (1 + is_full)))
    for m, k in itertools.product(range(n_members), range(k_dim)):
        place = [m] if is_flat else [m, k]
        mean[m, :, k] = column("mean", *place)
        if not is_full:
            spread[m, :, k] = column("variance", *place)
            continue
        for j in range(k, k_dim):
            spread[m, :, j, k] = spread[m, :, k, j] = column("covariance", m, j, k)
    return mean, spread


def _key(name: str) -> tuple[Any, ...]:
    kind, *numbers = name.split("_")
    return kind, *map(int, numbers)


def _read_numbers(path: str, frame: Any, name: str) -> NDArray[Any]:
    """Read a column of answers; variances must be positive."""
    try:
        values = frame[name].to_numpy(np.float64)
    except (TypeError, ValueError) as error:
        raise TeacherError(f'{path}: the column "{name}" is not numeric: {error}.') from error
    kind, *numbers = _key(name)
    is_variance = kind == "variance" or (kind == "covariance" and len(set(numbers[1:])) == 1)
    wrong = np.flatnonzero(values <= 0)
    if is_variance and len(wrong):
        raise TeacherError(
            f'{path}: column "{name}", row {wrong[0] + 1}: the variance is '
            f"{values[wrong[0]]:g}; it must be positive."
        )
    return values
