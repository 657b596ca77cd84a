"""The teacher: anything that answers M Gaussians for inputs; a function is the simplest."""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal

from priornet.tables.raw import column_names, copy_table, pick_columns

__all__ = ["AnswerKind", "FunctionTeacher", "Teacher", "TeacherError", "columns_by_name"]

AnswerKind = Literal["smooth", "fine", "steps", "rows"]


class TeacherError(ValueError):
    """A teacher failed, or its answers cannot be used; the message says why."""


class Teacher(ABC):
    """Anything that answers M Gaussians for inputs; subclass it, or wrap a function.

    Attributes:
        label_columns: Columns, by name or number, that it reads as labels although they hold
            numbers: a transfer set exchanges their values but never changes them.
        is_stored: True if it only knows answers for its own rows.
        kind: The way in which its answers vary, which decides on the size of a student:
            ``"smooth"`` as networks do, ``"fine"`` with more bends (Gaussian processes),
            ``"steps"`` in single columns (boosted trees), ``"rows"`` following single rows too
            (forests).
    """

    label_columns: tuple[str | int, ...] = ()
    is_stored: bool = False
    kind: AnswerKind = "smooth"

    @abstractmethod
    def gaussians(self, X: Any) -> tuple[Any, Any]:
        """Answer for a table of N rows, of the kind that it learnt from.

        Returns:
            Means ``(M, N, K)``, and covariances ``(M, N, K, K)`` or variances ``(M, N, K)``; for
            one target also ``(M, N)`` both. Arrays or tensors, on any device. Rows without an
            answer are nan.
        """

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns that it reads; None if it knows no names."""
        return None

    def n_bytes(self) -> int | None:
        """Measure its size, by default pickled; None if that is not possible."""
        counter = _Counter()
        try:
            pickle.dump(self, counter)
        except (pickle.PicklingError, TypeError, AttributeError):
            return None
        return counter.n_bytes


class _Counter(io.RawIOBase):
    """A file that only counts bytes."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, data: Any, /) -> int:
        self.n_bytes += memoryview(data).nbytes
        return memoryview(data).nbytes


class FunctionTeacher(Teacher):
    """A function from a table to means and covariances.

    Args:
        function: Takes a table of N rows, and returns what :meth:`Teacher.gaussians` returns.
        label_columns: See :class:`Teacher`.

    Example:
        >>> import numpy as np
        >>> def two_lines(X):
        ...     return np.stack([X[:, 0], -X[:, 0]]), np.ones((2, len(X)))
        >>> means, variances = FunctionTeacher(two_lines).gaussians(np.ones((5, 3)))
        >>> means.shape
        (2, 5)
    """

    def __init__(
        self,
        function: Callable[[Any], tuple[Any, Any]],
        *,
        label_columns: tuple[str | int, ...] = (),
    ) -> None:
        if not callable(function):
            raise TypeError(f"`function` must be callable; got {type(function).__name__}.")
        self.function = function
        self.label_columns = label_columns

    def gaussians(self, X: Any) -> tuple[Any, Any]:
        """Call the function on a copy: it may scale and fill its table in place."""
        return self.function(copy_table(X))

    def n_bytes(self) -> None:
        """Return None: the size of a function is unknown."""


def columns_by_name(table: Any, names: tuple[str, ...] | None) -> Any:
    """Take the columns of these names, in their order.

    Args:
        table: An array, a frame or a mapping, perhaps with more columns. An array stays as it is.
        names: Names with which the teacher was fitted; None if it knows none.
    """
    own = column_names(table)
    if own is None or names is None or own == names:
        return table
    for name in names:
        if name not in own:
            raise TeacherError(
                f'the table has no column "{name}", with which the teacher was fitted.'
            )
    return pick_columns(table, names)
