"""A function as a teacher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from priornet.distill.teachers.protocol import Teacher
from priornet.tables.raw import copy_table

__all__ = ["FunctionTeacher"]


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
