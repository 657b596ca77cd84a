"""From standardised inputs of a transfer set back to rows that a teacher can read.

Numbers are moved; everything else (text, categories, dates, truth values, holes, and numbers that
the teacher reads as labels) keeps a value that the table has, taken from one of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet.distill.transfer import Drawn, TransferSet
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import num_rows, take_rows, without_arrow

__all__ = ["Questions", "draw_inputs"]


class Questions:
    """A table whose rows can be moved, for teachers that read raw rows.

    Args:
        table: An array, a frame, an Arrow table (which teachers get as a frame), or a mapping.
        preprocessor: Fitted, to the same columns.
        label_columns: Columns, by name or number, that are never moved.
    """

    def __init__(
        self,
        table: Any,
        preprocessor: TablePreprocessor,
        label_columns: Sequence[str | int] = (),
    ) -> None:
        self.table = without_arrow(table)
        self.preprocessor = preprocessor
        names = preprocessor.feature_names_in_
        self._order: list[str | int] = (
            list(range(preprocessor.n_features_in_)) if names is None else list(names)
        )
        for label in label_columns:
            if label not in self._order and not (isinstance(label, int) and names is not None):
                raise ValueError(f"the teacher's column {label!r} is not in the table.")
        fixed = {self._order[c] if isinstance(c, int) else c for c in label_columns}
        self._moved = {
            j
            for j, column in enumerate(preprocessor.columns_)
            if column.is_plain
            and self._order[j] not in fixed
            and _holds_numbers(self.table, self._order[j])
        }

    @property
    def inputs(self) -> NDArray[np.float64]:
        """The table's rows, standardised, as training takes them."""
        return self.preprocessor.within(self.preprocessor.transform(self.table))

    @property
    def continuous(self) -> list[bool]:
        """Which standardised columns may be moved."""
        return [s.is_continuous and s.column in self._moved for s in self.preprocessor.source_]

    def draw(
        self, transfer: TransferSet, inputs: Tensor, n: int, generator: Generator
    ) -> tuple[Drawn, Any]:
        """Draw inputs, and the raw rows that say the same.

        Args:
            transfer: Where.
            inputs: The table's rows, standardised.
            n: How many.
            generator: Source of randomness.
        """
        drawn = transfer.draw(inputs, n, generator, self.continuous)
        drawn = drawn._replace(inputs=self._with_holes(drawn, inputs))
        return drawn, self.raw(drawn)

    def _with_holes(self, drawn: Drawn, inputs: Tensor) -> Tensor:
        """A missing number looks as in the row that it is missing in, wherever the row went."""
        values = drawn.inputs.clone()
        place = {s.column: i for i, s in enumerate(self.preprocessor.source_) if s.is_continuous}
        for i, source in enumerate(self.preprocessor.source_):
            if source.role == "missing" and source.column in place:
                hole = inputs[drawn.labels, i] > 0.5
                k = place[source.column]
                values[hole, k] = inputs[drawn.labels[hole], k]
        return values

    def raw(self, drawn: Drawn) -> Any:
        """Raw rows of drawn inputs, as a table of the kind that was given."""
        rows = take_rows(self.table, drawn.labels.cpu().numpy())
        rows = rows.copy()
        values = drawn.inputs.double().cpu().numpy()
        for i, source in enumerate(self.preprocessor.source_):
            if not source.is_continuous or source.column not in self._moved:
                continue
            column = self.preprocessor.columns_[source.column]
            number = values[:, i] * column.scale + column.mean
            if isinstance(rows, np.ndarray):
                kept = rows[:, source.column]
                rows[:, source.column] = np.where(np.isnan(kept), np.nan, number)
            else:
                name = self._order[source.column]
                kept = np.asarray(rows[name], np.float64)
                rows[name] = np.where(np.isnan(kept), np.nan, number)
        return rows


def _holds_numbers(table: Any, name: str | int) -> bool:
    if isinstance(table, np.ndarray):
        return table.dtype.kind in "iuf"
    dtype = getattr(table[name], "dtype", None)
    return getattr(np.asarray(table[name]).dtype if dtype is None else dtype, "kind", "O") in "iuf"


def draw_inputs(
    X: Any,
    n: int,
    *,
    transfer: TransferSet | None = None,
    seed: int = 0,
    label_columns: Sequence[str | int] = (),
) -> Any:
    """Rows at which to ask a teacher that lives elsewhere, as raw as those given.

    Write them to a file, let the teacher add its answers, and read it with
    :class:`~priornet.distill.StoredTeacher`.

    Args:
        X: The table.
        n: How many rows.
        transfer: Where; by default as :class:`TransferSet` says.
        seed: Source of randomness.
        label_columns: Columns of numbers that are labels.

    Example:
        >>> draw_inputs(np.random.default_rng(0).standard_normal((50, 3)), 1000).shape
        (1000, 3)
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1; got {n}.")
    table = np.asarray(X, np.float64) if isinstance(X, (list, np.ndarray)) else without_arrow(X)
    if num_rows(table) == 0:
        raise ValueError("`X` has no rows.")
    questions = Questions(table, TablePreprocessor().fit(table), label_columns)
    inputs = torch.from_numpy(questions.inputs)
    generator = Generator().manual_seed(seed)
    return questions.draw(transfer or TransferSet(), inputs, n, generator)[1]
