"""What a teacher is: anything that answers M Gaussians for inputs; a function is the simplest."""

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
            numbers: a transfer set exchanges their values but never moves them.
        is_stored: Whether it only knows answers for rows of its own.
        kind: How its answers vary, on which the size of a student depends: ``"smooth"`` as those of
            networks, ``"fine"`` if they bend more often (Gaussian processes), ``"steps"`` in single
            columns (boosted trees), ``"rows"`` if they follow single rows as well (forests).
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
        """Names of the columns it wants, where it knows them."""
        return None

    def n_bytes(self) -> int | None:
        """How large it is; None where that cannot be said. By default: pickled."""
        counter = _Counter()
        try:
            pickle.dump(self, counter)
        except (pickle.PicklingError, TypeError, AttributeError):
            return None
        return counter.n_bytes


class _Counter(io.RawIOBase):
    """A file that only counts what is written."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, data: Any, /) -> int:
        self.n_bytes += memoryview(data).nbytes
        return memoryview(data).nbytes


class FunctionTeacher(Teacher):
    """A function from a table to means and covariances.

    Args:
        function: Takes a table of N rows; returns what :meth:`Teacher.gaussians` says.
        label_columns: Columns that it reads as labels although they hold numbers.

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
        """Call it, with a copy: functions like to scale and fill their table in place."""
        return self.function(copy_table(X))

    def n_bytes(self) -> None:
        """What a function needs cannot be seen from outside."""


def columns_by_name(table: Any, names: tuple[str, ...] | None) -> Any:
    """The columns of these names, in their order; others may be there.

    Args:
        table: An array, a frame, or a mapping. An array has no names, and stays as it is.
        names: Those that the teacher was fitted with; None where it knows none.
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
