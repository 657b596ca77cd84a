"""The columns of a table: numbers with nan for holes, or labelled codes; and a wrong cell in them.

:func:`priornet.tables.containers.read_table` finds them in whatever holds a table.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellError", "Column", "Numbers", "Table", "Texts", "shown"]

FloatArray = NDArray[np.float64]


class CellError(ValueError):
    """A value that cannot be used, with the place where it stands.

    Attributes:
        column: Name of the column, or its position where it has none.
        row: Row, counted from 0.
        problem: What is wrong there.
    """

    def __init__(self, column: str | int, row: int, problem: str) -> None:
        self.column, self.row, self.problem = column, row, problem
        super().__init__(f"column {shown(column)}, row {row}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.row, self.problem)


def shown(column: str | int) -> str:
    """A column's name in quotes, or its number."""
    return f'"{column}"' if isinstance(column, str) else str(column)


@dataclass(frozen=True)
class Numbers:
    """A numeric column: float64, nan where a value is missing; days since 1970 if ``is_date``."""

    values: FloatArray
    is_date: bool = False


@dataclass(frozen=True)
class Texts:
    """A column of labels: ``labels[code]`` for each row, -1 where the value is missing.

    ``is_declared`` marks a column that its owner called categorical, whatever the labels look like.
    """

    codes: NDArray[np.int64]
    labels: tuple[str, ...]
    is_declared: bool = False


Column = Numbers | Texts


@dataclass(frozen=True)
class Table:
    """Columns of equal length; ``matrix`` instead where all of them are plain numbers.

    ``labels`` are what a frame calls columns that have no ``names``: numbers, or tuples.
    """

    names: tuple[str, ...] | None
    n_rows: int
    columns: tuple[Column, ...] | None = None
    matrix: FloatArray | None = None
    labels: tuple[Hashable, ...] | None = None

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return len(self.columns) if self.columns is not None else self._matrix.shape[1]

    @property
    def _matrix(self) -> FloatArray:
        assert self.matrix is not None
        return self.matrix

    def column(self, index: int) -> Column:
        """One column."""
        if self.columns is not None:
            return self.columns[index]
        return Numbers(self._matrix[:, index])

    def label(self, index: int) -> str | int:
        """How messages call a column."""
        return self.names[index] if self.names is not None else index
