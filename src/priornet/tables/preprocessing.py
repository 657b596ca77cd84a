"""From the columns of a table to the numbers that a network reads, and the state as plain JSON.

Numbers: holes take the training median, and a 0/1 column says where they were if training had any;
then the column is standardised. Labels: one 0/1 column each, the rare ones pooled. What training
never saw stays visible: an unknown label is all zeros, a far value stays far.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priornet.tables.column_summaries import CLIPPED, ColumnSummary
from priornet.tables.containers import read_table
from priornet.tables.encoding import (
    RawColumn,
    as_labels,
    as_numbers,
    check_not_infinite,
    expect,
    infinite,
    learn_column,
    place_unnamed,
    read_column,
)
from priornet.tables.unseen import Tally, Unseen, most_missing
from priornet.tables.values import CellError, Column, Table, Texts

__all__ = ["LIMIT", "CellError", "OutputColumn", "RawColumn", "TablePreprocessor", "Tally"]

FloatArray = NDArray[np.float64]

_FORMAT = 1
_BLOCK = 8192  # rows that fit the cache, all columns together
LIMIT = 1e12
"""Where standardised values stop: further out nothing changes, and float32 squares stay finite."""


@dataclass(frozen=True)
class OutputColumn:
    """Where an output column comes from.

    Attributes:
        column: Index of its raw column.
        role: A standardised number, a label's 0/1 column, or the 0/1 column of missing values.
    """

    column: int
    role: Literal["value", "category", "missing"]

    @property
    def is_continuous(self) -> bool:
        """Whether it holds any number, rather than 0 or 1."""
        return self.role == "value"


class TablePreprocessor:
    """Raw columns to a matrix of numbers.

    Takes arrays of numbers (nan = missing), pandas frames (numbers, text, categories, dates), Arrow
    tables or batches, and mappings from names to arrays. A text column whose values all spell
    numbers, ISO dates or true and false counts as numeric. The same values give the same matrix
    whatever carries them: text, typed columns or categories.

    Args:
        max_categories: A label column with more distinct labels keeps the most frequent ones and
            pools the rest, so that it makes this many columns.

    Attributes:
        n_features_in_: Number of raw columns.
        feature_names_in_: Their names, or None where they have none.
        feature_names_out_: Names of the output columns.
        columns_: What training learnt about each raw column.
        source_: Where each output column comes from.
        most_missing_: More missing values than these are too many for a row.
        summaries_: How each raw column was read, with counts where it was fitted here.

    Example:
        >>> prep = TablePreprocessor().fit({"age": [1.0, 3.0], "colour": ["red", "blue"]})
        >>> prep.feature_names_out_
        ('age', 'colour = blue', 'colour = red')
        >>> prep.transform({"age": [2.0], "colour": ["green"]})
        array([[0., 0., 0.]])
    """

    n_features_in_: int
    feature_names_in_: tuple[str, ...] | None
    feature_names_out_: tuple[str, ...]
    columns_: tuple[RawColumn, ...]
    source_: tuple[OutputColumn, ...]
    most_missing_: int
    summaries_: tuple[ColumnSummary, ...]

    def __init__(self, *, max_categories: int = 50) -> None:
        if max_categories < 2:
            raise ValueError(f"`max_categories` must be at least 2; got {max_categories}.")
        self.max_categories = max_categories

    def fit(self, X: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn medians, scales and labels.

        A row of weight 2 counts as two equal rows, one of weight 0 as none.

        Args:
            X: The table.
            sample_weight: Weight per row, not negative.
        """
        table = read_table(X)
        if table.n_columns == 0:
            raise ValueError(
                f"Found array with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 "
                "is required."
            )
        if table.n_rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {table.n_columns})) while a minimum of 1 "
                "is required."
            )
        weight = None if sample_weight is None else _checked_weight(sample_weight, table.n_rows)
        learned = [
            learn_column(
                None if table.names is None else table.names[j],
                table.label(j),
                table.column(j),
                weight,
                self.max_categories,
            )
            for j in range(table.n_columns)
        ]
        columns = tuple(column for column, _ in learned)
        self._set(table.names, columns, most_missing(_count_missing(table, columns), weight))
        self._labels = table.labels
        self.summaries_ = tuple(summary for _, summary in learned)
        return self

    def fit_transform(
        self, X: Any, sample_weight: ArrayLike | None = None, *, dtype: Any = np.float64
    ) -> NDArray[Any]:
        """:meth:`fit`, then :meth:`transform`."""
        return self.fit(X, sample_weight).transform(X, dtype=dtype)

    def transform(
        self,
        X: Any,
        *,
        dtype: Any = np.float64,
        extra: Literal["error", "ignore"] = "error",
        tally: Tally | None = None,
        unseen: Unseen | None = None,
    ) -> NDArray[Any]:
        """The matrix of a table, shape ``(rows, len(feature_names_out_))``.

        Args:
            X: A table with the columns of training, in any order where they have names.
            dtype: Floating type of the result; the arithmetic is float64.
            extra: What to do about names that training had not.
            tally: Where given, counts what training never had.
            unseen: Where given, a fresh one, learns which rows have that.
        """
        table = read_table(X)
        order = self.places(table, extra)
        if unseen is None and tally is not None:
            unseen = Unseen()
        if unseen is not None:
            unseen.n_rows, unseen.most_missing = table.n_rows, self.most_missing_
        matrix = self._matrix(table, order, dtype, unseen)
        if tally is not None and unseen is not None:
            tally.count(unseen)
        return matrix

    def _matrix(
        self, table: Table, order: tuple[int, ...], dtype: Any, unseen: Unseen | None
    ) -> NDArray[Any]:
        """The columns of a table in the order of training, as numbers."""
        if self._is_plain and table.matrix is not None:
            matrix = table.matrix
            if table.n_columns != len(order) or order != tuple(range(len(order))):
                matrix = matrix[:, list(order)]
            with np.errstate(over="ignore"):  # too far for a float is clipped like any far value
                return self._standardised(matrix, dtype, unseen)
        with np.errstate(over="ignore"):
            return self._assembled(table, order, dtype, unseen)

    def within(self, matrix: FloatArray) -> FloatArray:
        """Bring numbers that training clips to the end of the range that it saw.

        Only rows to learn from need it; a row to predict stays as far as it is.

        Args:
            matrix: From :meth:`transform`; returned as it is where nothing is that far.
        """
        out = [i for i, source in enumerate(self.source_) if source.is_continuous]
        raw = [self.source_[i].column for i in out]
        ends = [self._minimum[raw], self._median[raw], self._maximum[raw]]
        low, middle, high = ((end - self._mean[raw]) * self._inverse[raw] for end in ends)
        reach = np.maximum(high - middle, middle - low)
        # Half as far, for the farthest value in training may itself be nearer by rounding alone.
        far = np.abs(matrix[:, out] - middle) > np.where(reach > 0, CLIPPED / 2 * reach, np.inf)
        if not far.any():
            return matrix
        taken = matrix.copy()
        taken[:, out] = np.where(far, np.clip(matrix[:, out], low, high), matrix[:, out])
        return taken

    def to_json(self) -> dict[str, Any]:
        """The whole state: dicts, lists, text, numbers, booleans, None."""
        return {
            "format": _FORMAT,
            "max_categories": self.max_categories,
            "has_names": self.feature_names_in_ is not None,
            "most_missing": self.most_missing_,
            "columns": [
                {**asdict(column), "categories": list(column.categories)}
                for column in self.columns_
            ],
        }

    @classmethod
    def from_json(cls, state: Any) -> Self:
        """Rebuild from :meth:`to_json`; whatever else comes is refused, with the reason."""
        expect(isinstance(state, dict), "it is not an object")
        found = state.get("format")
        expect(
            found == _FORMAT and not isinstance(found, bool),
            f'"format" is {found!r}; this version reads {_FORMAT}',
        )
        limit, has_names = state.get("max_categories"), state.get("has_names")
        expect(_is_whole(limit) and limit >= 2, f'"max_categories" is {limit!r}')
        expect(isinstance(has_names, bool), f'"has_names" is {has_names!r}')
        records = state.get("columns")
        expect(isinstance(records, list) and len(records) > 0, '"columns" is not a filled list')
        columns = tuple(read_column(record, j, has_names) for j, record in enumerate(records))
        names = tuple(str(column.name) for column in columns) if has_names else None
        expect(names is None or len(set(names)) == len(names), "two columns have the same name")
        most = state.get("most_missing", len(columns) - 1)  # older versions did not count them
        fits = _is_whole(most) and 0 <= most < len(columns)
        expect(fits, f'"most_missing" is {most!r} with {len(columns)} columns')
        loaded = cls(max_categories=limit)
        loaded._set(names, columns, most)
        loaded.summaries_ = tuple(column.summary(j) for j, column in enumerate(columns))
        return loaded

    def _set(
        self, names: tuple[str, ...] | None, columns: tuple[RawColumn, ...], most_missing: int
    ) -> None:
        """Take over the learnt columns, and lay out what :meth:`transform` needs each time."""
        self.n_features_in_ = len(columns)
        self.most_missing_ = min(most_missing, len(columns) - 1)  # a row without any is too bare
        self.feature_names_in_ = names
        self._labels: tuple[Hashable, ...] | None = None  # of this process only: no file has them
        self.columns_ = columns
        out: list[str] = []
        source: list[OutputColumn] = []
        self._start: list[int] = []
        for j, column in enumerate(columns):
            self._start.append(len(out))
            name = f"x{j}" if column.name is None else column.name
            if column.kind == "numeric":
                out.append(name)
                source.append(OutputColumn(j, "value"))
            else:
                labels = (*column.categories, *(["(other)"] if column.has_other else []))
                out += [f"{name} = {label}" for label in labels]
                source += [OutputColumn(j, "category")] * len(labels)
            if column.has_missing:
                out.append(f"{name} is missing")
                source.append(OutputColumn(j, "missing"))
        self.feature_names_out_ = tuple(out)
        self.source_ = tuple(source)
        self._is_plain = all(
            column.kind == "numeric" and column.parser != "date" and not column.has_missing
            for column in columns
        )
        self._mean = np.array([column.mean for column in columns])
        self._inverse = np.array([1 / column.scale for column in columns])
        self._median = np.array([column.median for column in columns])
        self._reach = np.array([column.reach for column in columns]).T
        self._minimum = np.array([column.minimum for column in columns])
        self._maximum = np.array([column.maximum for column in columns])
        self._codes = [{label: i for i, label in enumerate(c.categories)} for c in columns]

    def places(self, table: Table, extra: Literal["error", "ignore"] = "error") -> tuple[int, ...]:
        """For each training column its place in this table."""
        known, given = self.feature_names_in_, table.names
        if known is None or given is None:
            if table.n_columns != self.n_features_in_:
                raise ValueError(
                    f"X has {table.n_columns} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            own, has_names = self._labels, known is not None
            return place_unnamed(table, own, self.n_features_in_, has_names=has_names)
        if known == given:
            return tuple(range(self.n_features_in_))
        place = {name: j for j, name in enumerate(given)}
        unseen = sorted(set(given) - set(known)) if extra == "error" else []
        missing = sorted(set(known) - set(given))
        message = "The feature names should match those that were passed during fit.\n"
        if unseen or missing:  # in scikit-learn's words, which its users and checks know
            message += _listed("Feature names unseen at fit time:", unseen)
            message += _listed("Feature names seen at fit time, yet now missing:", missing)
            raise ValueError(message)
        return tuple(place[name] for name in known)

    def _standardised(self, matrix: FloatArray, dtype: Any, unseen: Unseen | None) -> NDArray[Any]:
        """All columns are numbers, none has an indicator: one pass over the matrix."""
        given = matrix
        if not np.isfinite(matrix).all():
            matrix = self._filled(matrix, unseen)
        if unseen is not None and len(matrix):
            far = (matrix.min(0) < self._reach[0]) | (matrix.max(0) > self._reach[1])
            for j, column in enumerate(self.columns_):
                if far[j] or column.is_whole:
                    unseen.note_far(
                        self._name(j), given[:, j], column.reach, is_whole=column.is_whole
                    )
        if len(matrix) <= _BLOCK:
            return _clipped((matrix - self._mean) * self._inverse).astype(dtype, copy=False)
        out = np.empty(matrix.shape, dtype)
        for start in range(0, len(matrix), _BLOCK):
            rows = slice(start, start + _BLOCK)
            out[rows] = _clipped((matrix[rows] - self._mean) * self._inverse)
        return out

    def _filled(self, matrix: FloatArray, unseen: Unseen | None) -> FloatArray:
        """Medians for nan; inf is refused."""
        if np.isinf(matrix).any():
            row, j = (int(place[0]) for place in np.nonzero(np.isinf(matrix)))
            raise infinite(self._name(j), row, matrix[row, j])
        holes = np.isnan(matrix)
        if unseen is not None:
            for j in range(holes.shape[1]):
                unseen.note_missing(self._name(j), holes[:, j], is_new=True)
        return np.where(holes, self._median, matrix)

    def _name(self, index: int) -> str | int:
        name = self.columns_[index].name
        return index if name is None else name

    def _assembled(
        self, table: Table, order: tuple[int, ...], dtype: Any, unseen: Unseen | None
    ) -> NDArray[Any]:
        """Column by column; numbers in blocks of rows, so that a block stays in the cache."""
        out = np.zeros((table.n_rows, len(self.source_)), dtype)
        numbers: list[tuple[int, FloatArray, RawColumn]] = []
        for j, (place, start) in enumerate(zip(order, self._start, strict=True)):
            column, raw = self.columns_[j], table.column(place)
            if column.kind == "categorical":
                slots, holes = self._slots(j, raw, unseen)
                hit = np.flatnonzero(slots >= 0)
                out[hit, start + slots[hit]] = 1
            else:
                values = as_numbers(column, self._name(j), raw)
                if unseen is not None:
                    unseen.note_far(self._name(j), values, column.reach, is_whole=column.is_whole)
                holes = None if np.isfinite(values).all() else np.isnan(values)
                if holes is not None:
                    check_not_infinite(self._name(j), values)
                    values = np.where(holes, column.median, values)
                numbers.append((start, values, column))
            if holes is None or not holes.any():
                continue
            if unseen is not None:
                unseen.note_missing(self._name(j), holes, is_new=not column.has_missing)
            if column.has_missing:
                out[holes, start + column.width - 1] = 1
        for first in range(0, table.n_rows, _BLOCK):
            rows = slice(first, first + _BLOCK)
            for start, values, column in numbers:
                out[rows, start] = _clipped((values[rows] - column.mean) * (1 / column.scale))
        return out

    def _slots(
        self, index: int, raw: Column, unseen: Unseen | None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Per row the label's place in the block, -1 for none; and where the value is missing."""
        column, known = self.columns_[index], self._codes[index]
        texts = as_labels(column, raw)
        unknown = len(known) if column.has_other else -1
        slots = np.array([known.get(label, unknown) for label in texts.labels] + [-1], np.int64)
        if unseen is not None:
            is_new = np.append(slots[:-1] < 0, False)  # code -1, a missing value, reads the last
            unseen.note_unknown(self._name(index), is_new[texts.codes])
        return slots[texts.codes], texts.codes < 0


def _count_missing(table: Table, columns: tuple[RawColumn, ...]) -> NDArray[np.int64]:
    """Missing values of each row, as the learnt columns read them: among numbers NA is one."""
    count = np.zeros(table.n_rows, np.int64)
    for j, learned in enumerate(columns):
        column = table.column(j)
        if learned.kind == "numeric":
            count += np.isnan(as_numbers(learned, table.label(j), column))
        elif isinstance(column, Texts):
            count += column.codes < 0
    return count


def _clipped(values: FloatArray) -> FloatArray:
    np.minimum(values, LIMIT, out=values)
    return np.maximum(values, -LIMIT, out=values)


def _checked_weight(sample_weight: ArrayLike, n_rows: int) -> FloatArray:
    weight = np.asarray(sample_weight, np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must have shape ({n_rows},), one per row; got {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("`sample_weight` must be finite and not negative.")
    if not (weight > 0).any():
        raise ValueError("`sample_weight` must be positive in at least one row; all are zero.")
    return weight


def _listed(title: str, names: list[str]) -> str:
    if not names:
        return ""
    lines = [f"- {name}" for name in names[:5]] + (["- ..."] if len(names) > 5 else [])
    return "\n".join([title, *lines, ""])


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
