"""From the columns of a table to the matrix that a network reads.

Numbers: a missing value becomes the training median, and a 0/1 column marks it if training had any;
then the column is standardised. Labels: one 0/1 column each; rare labels share one. What training
never had stays visible: an unknown label joins the rare ones, or is all zeros; a far value stays
far.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priornet.tables.column_summaries import CLIPPED, ColumnSummary, summarise
from priornet.tables.encoding import RawColumn, Role, Unseen, are_texts, expect, most_missing
from priornet.tables.learning import MaxLabels, fair_limit, learn_column
from priornet.tables.raw import read_table
from priornet.tables.values import FloatArray, Table, Texts, check_not_infinite

_FORMAT = 2  # the first had "max_categories", always a number, and left no column out
# If the limit of labels is "auto": numbers in all their columns together, over the rows, or the
# inputs at which a student asks its teacher where these are more. 0.5 GB in single precision.
_MOST_VALUES, _LEAST_ROWS = 1 << 27, 200_000
_BLOCK = 8192  # rows that fit the cache, all columns together
LIMIT = 1e12
"""Bound of standardised values: further out nothing changes, and float32 squares stay finite."""


@dataclass(frozen=True)
class OutputColumn:
    """An output column: the index of its raw column, and its role."""

    column: int
    role: Role

    @property
    def is_continuous(self) -> bool:
        """Check if it holds standardised numbers, rather than 0 and 1."""
        return self.role == "value"


class TablePreprocessor:
    """Raw columns to a matrix of numbers.

    Takes arrays of numbers (nan = missing), pandas frames (numbers, text, categories, dates), Arrow
    tables or batches, and mappings from names to arrays. A text column whose values all spell
    numbers, ISO dates or true and false counts as numeric. The same values give the same matrix
    whatever carries them: text, typed columns or categories.

    Args:
        max_labels: A label column with more distinct labels keeps the most frequent ones and pools
            the rest, so that it makes this many columns. ``"auto"`` keeps every label of at least
            three rows, and of more than 50 labels at least 49. All label columns together then make
            at most 671 columns, fewer for more than 200 000 rows (134 for a million), but each
            may make 50.
        leave_out_ids: Leave out named columns in which nearly every row has a label of its own, and
            those of whole numbers, all different, that are named as ids (``id``, ``customer_id``,
            ``rownames``). :meth:`transform` then ignores them, and does not need them.

    Attributes:
        n_features_in_: Number of raw columns.
        feature_names_in_: Their names; None for columns without names.
        feature_names_out_: Names of the output columns.
        columns_: The raw columns as training learnt them.
        source_: Raw column and role of each output column.
        most_missing_: More values than these are too many for a row to lack.
        left_out_: Names of columns that are ids; they do not count as raw columns.

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
    left_out_: tuple[str, ...]

    def __init__(self, *, max_labels: MaxLabels = "auto", leave_out_ids: bool = False) -> None:
        check_max_labels(max_labels)
        self.max_labels: MaxLabels = max_labels
        self.leave_out_ids = leave_out_ids

    def fit(self, X: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn medians, scales and labels.

        Args:
            X: The table.
            sample_weight: Weight per row: 2 counts as two equal rows, 0 as none.
        """
        table = read_table(X)
        shape = (table.n_rows, table.n_columns)
        for size, what in zip(reversed(shape), ("feature", "sample"), strict=True):
            if size == 0:  # in scikit-learn's words
                raise ValueError(
                    f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is "
                    "required."
                )
        weight = None if sample_weight is None else _checked_weight(sample_weight, table.n_rows)
        columns: dict[int, RawColumn] = {}
        summaries: list[ColumnSummary] = []
        n_missing = np.zeros(table.n_rows, np.int64)
        for j, (label, values) in enumerate(table):
            column, summary, is_missing, is_id = learn_column(
                label, values, weight, self.max_labels
            )
            is_left_out = is_id and self.leave_out_ids and table.names is not None
            summaries.append(replace(summary, kind="id") if is_left_out else summary)
            if not is_left_out:
                columns[j] = column
                n_missing += is_missing
        if not columns:
            reasons = " ".join(note for one in summaries for note in one.notes())
            raise ValueError(f"no column is left to learn from: {reasons}")
        if self.max_labels == "auto":
            _keep_within_memory(table, weight, columns, summaries)
        out = tuple(str(one.column) for one in summaries if one.kind == "id")
        names = None if table.names is None else tuple(table.names[j] for j in columns)
        self._set(names, list(columns.values()), most_missing(n_missing, weight), out)
        self._labels = table.labels
        self.summaries_ = tuple(summaries)
        return self

    def fit_transform(
        self, X: Any, sample_weight: ArrayLike | None = None, *, dtype: Any = np.float64
    ) -> NDArray[Any]:
        """Fit to a table, then transform it."""
        return self.fit(X, sample_weight).transform(X, dtype=dtype)

    def transform(
        self,
        X: Any,
        *,
        dtype: Any = np.float64,
        extra: Literal["error", "ignore"] = "error",
        unseen: Unseen | None = None,
    ) -> NDArray[Any]:
        """Return the matrix of a table, shape ``(rows, len(feature_names_out_))``.

        Args:
            X: A table with the columns of training, in any order where they have names.
            dtype: Floating type of the result; the arithmetic is float64.
            extra: ``"ignore"`` to leave out columns that training had not.
            unseen: An empty record, to be filled with the values that training never had.
        """
        table = read_table(X)
        places = self.places(table, extra)
        if unseen is not None:
            unseen.n_rows, unseen.most_missing = table.n_rows, self.most_missing_
        with np.errstate(over="ignore"):  # too far for a float is clipped like any far value
            if not self._is_plain or table.matrix is None:
                return self._assembled(table, places, dtype, unseen)
            in_order = places == tuple(range(table.n_columns))
            matrix = table.matrix if in_order else table.matrix[:, list(places)]
            return self._standardised(matrix, dtype, unseen)

    def read_columns(self, X: Any) -> Iterator[tuple[RawColumn, FloatArray | Texts]]:
        """Yield each column of training with the numbers or labels that a table has there.

        Args:
            X: A table with the columns of training, in any order where they have names, and others.
        """
        table = read_table(X)
        places = self.places(table, extra="ignore")
        for column, place in zip(self.columns_, places, strict=True):
            raw, name = table.column(place), table.label(place)
            is_number = column.kind == "numeric"
            yield column, column.read_numbers(raw, name) if is_number else column.read_labels(raw)

    def columns_matrix(self, X: Any) -> FloatArray:
        """Return the raw columns of a table as numbers, ``(rows, n_features_in_)``.

        A label is its place in :attr:`RawColumn.known_labels`, -1 if it is not there; pooled labels
        come last, and are new to trees. A missing value is nan. Nothing is standardised: programs
        and trees read these columns.

        Args:
            X: As for :meth:`read_columns`.
        """
        found: list[FloatArray] = []
        for column, values in self.read_columns(X):
            if isinstance(values, Texts):
                place = {label: float(i) for i, label in enumerate(column.known_labels)}
                values = values.lookup([place.get(text, -1.0) for text in values.labels], np.nan)
            found.append(values)
        return np.column_stack(found)

    @cached_property
    def summaries_(self) -> tuple[ColumnSummary, ...]:
        """Describe each raw column as training read it; a loaded preprocessor has no counts."""
        return tuple(map(summarise, self._names, self.columns_))

    def within(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Clip outliers as training does: to the range of the other training values.

        Only rows to learn from need it; a row to predict stays as far as it is.

        Args:
            matrix: From :meth:`transform`; returned as it is where nothing is that far.
        """
        taken = matrix
        for i, source in enumerate(self.source_):
            if not source.is_continuous:
                continue
            j, values = source.column, matrix[:, i]
            low, middle, high = ((end[j] - self._mean[j]) * self._inverse[j] for end in self._range)
            reach = max(high - middle, middle - low)
            # Half as far: rounding may move a clipped value nearer than CLIPPED.
            far = np.abs(values - middle) > CLIPPED / 2 * reach if reach > 0 else np.zeros(1, bool)
            if far.any():
                taken = matrix.copy() if taken is matrix else taken
                taken[:, i] = np.where(far, np.clip(values, low, high), values)
        return taken

    def to_json(self) -> dict[str, Any]:
        """Return the whole state: dicts, lists, text, numbers, booleans, None."""
        return {
            "format": _FORMAT,
            "max_labels": self.max_labels,
            "has_names": self.feature_names_in_ is not None,
            "left_out": list(self.left_out_),
            "most_missing": self.most_missing_,
            "columns": [column.to_json() for column in self.columns_],
        }

    @classmethod
    def from_json(cls, state: Any) -> Self:
        """Load the state that :meth:`to_json` returned; refuse any other, with the reason."""
        expect(isinstance(state, dict), "it is not an object")
        found = state.get("format")
        expect(
            found in (1, _FORMAT) and not isinstance(found, bool),
            f'"format" is {found!r}; this version reads up to {_FORMAT}',
        )
        if found == 1:
            state = {**state, "max_labels": state.get("max_categories"), "left_out": []}
        limit, has_names, out = (state.get(k) for k in ("max_labels", "has_names", "left_out"))
        expect(limit == "auto" or (_is_whole(limit) and limit >= 2), f'"max_labels" is {limit!r}')
        expect(isinstance(has_names, bool), f'"has_names" is {has_names!r}')
        records = state.get("columns")
        expect(isinstance(records, list) and len(records) > 0, '"columns" is not a filled list')
        columns = [RawColumn.from_json(record, j, has_names) for j, record in enumerate(records)]
        names = tuple(str(column.name) for column in columns) if has_names else None
        expect(names is None or len(set(names)) == len(names), "two columns have the same name")
        expect(are_texts(out), '"left_out" must be distinct texts')
        expect(not out or set(out).isdisjoint(names or out), '"left_out" has the name of a column')
        most = state.get("most_missing", len(columns) - 1)  # older versions did not count them
        fits = _is_whole(most) and 0 <= most < len(columns)
        expect(fits, f'"most_missing" is {most!r} with {len(columns)} columns')
        loaded = cls(max_labels=limit)
        loaded._set(names, columns, most, tuple(out))
        return loaded

    def _set(
        self,
        names: tuple[str, ...] | None,
        columns: Sequence[RawColumn],
        most_missing: int,
        left_out: tuple[str, ...] = (),
    ) -> None:
        """Keep the learnt columns, and lay out what every call of :meth:`transform` needs."""
        self.n_features_in_ = len(columns)
        self.left_out_ = left_out
        self.most_missing_ = min(most_missing, len(columns) - 1)  # a row needs one value
        self.feature_names_in_ = names
        self._labels: tuple[Hashable, ...] | None = None  # not saved
        self.columns_ = tuple(columns)
        self._names = [
            j if column.name is None else column.name for j, column in enumerate(columns)
        ]
        outputs = [
            column.outputs(name if isinstance(name, str) else f"x{name}")
            for column, name in zip(columns, self._names, strict=True)
        ]
        self.feature_names_out_ = tuple(name for own in outputs for name, _ in own)
        self.source_ = tuple(
            OutputColumn(j, role) for j, own in enumerate(outputs) for _, role in own
        )
        self._ends = np.cumsum([len(own) for own in outputs]).tolist()
        self._is_plain = all(
            column.kind == "numeric" and column.parser != "date" and not column.has_missing
            for column in columns
        )
        numbers = [(c.mean, 1 / c.scale, c.minimum, c.median, c.maximum, *c.reach) for c in columns]
        self._mean, self._inverse, *self._range, low, high = np.array(numbers, np.float64).T
        self._reach = low, high
        self._is_whole = np.array([column.is_whole for column in columns])

    def places(self, table: Table, extra: Literal["error", "ignore"] = "error") -> tuple[int, ...]:
        """Find the place of each training column in this table."""
        known, given = self.feature_names_in_, table.names
        if known is None or given is None:
            return self._unnamed_places(table)
        if known == given:
            return tuple(range(self.n_features_in_))
        place = {name: j for j, name in enumerate(given)}
        unseen = sorted({*given} - {*known, *self.left_out_}) if extra == "error" else []
        missing = sorted(set(known) - set(given))
        message = "The feature names should match those that were passed during fit.\n"
        if unseen or missing:  # in scikit-learn's words, which its users and checks know
            message += _listed("Feature names unseen at fit time:", unseen)
            message += _listed("Feature names seen at fit time, yet now missing:", missing)
            raise ValueError(message)
        return tuple(place[name] for name in known)

    def _unnamed_places(self, table: Table) -> tuple[int, ...]:
        """Find the columns where training or this table has no names.

        Labels that are not text are followed where both have the same; else columns are taken by
        their place, with a warning if a frame calls them something else.
        """
        n_columns, own, given = self.n_features_in_, self._labels, table.labels
        if table.n_columns != n_columns:
            raise ValueError(
                f"X has {table.n_columns} features, but {type(self).__name__} is expecting "
                f"{n_columns} features as input."
            )
        problem = None
        if self.feature_names_in_ is not None and given is not None:  # in scikit-learn's words
            problem = "X does not have valid feature names, but this model was fitted with them"
        elif own is not None and table.names is not None:
            problem = "X has feature names, but this model was fitted without feature names"
        elif given is not None and given != (own or tuple(range(n_columns))):
            if own is not None and set(own) == set(given):
                return tuple(given.index(label) for label in own)
            problem = "training did not know the labels of X's columns"
        if problem is not None:
            message = f"{problem}: the columns are taken by their place; give them names of text."
            warnings.warn(message, UserWarning, stacklevel=2)
        return tuple(range(n_columns))

    def _standardised(self, matrix: FloatArray, dtype: Any, unseen: Unseen | None) -> NDArray[Any]:
        """Transform a matrix of numbers whose columns make one output each."""
        filled = matrix
        if not np.isfinite(matrix).all():
            if np.isinf(matrix).any():
                first = int(np.nonzero(np.isinf(matrix))[1][0])  # column of the first row with one
                check_not_infinite(self._names[first], matrix[:, first])
            filled = np.where(np.isnan(matrix), self._range[1], matrix)
        if unseen is not None:
            low, high = self._reach
            is_odd = ~((matrix >= low) & (matrix <= high)).all(0)  # also where a value is missing
            for j in np.flatnonzero(is_odd | self._is_whole).tolist():
                column, values = self.columns_[j], matrix[:, j]
                unseen.add(self._names[j], column, np.isnan(values), column.find_far(values))
        out = np.empty(matrix.shape, dtype)
        for start in range(0, len(matrix), _BLOCK):
            rows = slice(start, start + _BLOCK)
            out[rows] = np.clip((filled[rows] - self._mean) * self._inverse, -LIMIT, LIMIT)
        return out

    def _assembled(
        self, table: Table, places: tuple[int, ...], dtype: Any, unseen: Unseen | None
    ) -> NDArray[Any]:
        """Transform column by column; numbers in blocks of rows, so that they stay in the cache."""
        out = np.zeros((table.n_rows, len(self.source_)), dtype)
        numbers: list[tuple[int, int, FloatArray]] = []
        for j, (column, place) in enumerate(zip(self.columns_, places, strict=True)):
            values, is_missing, is_new = column.encode(table.column(place), self._names[j])
            if unseen is not None:
                unseen.add(self._names[j], column, is_missing, is_new)
            start, end = self._ends[j - 1] if j else 0, self._ends[j]
            if column.kind == "numeric":
                numbers.append((j, start, values))
            else:
                hit = np.flatnonzero(values >= 0)
                out[hit, start + values[hit]] = 1
            if column.has_missing:
                out[is_missing, end - 1] = 1
        for first in range(0, table.n_rows, _BLOCK):
            rows = slice(first, first + _BLOCK)
            for j, start, values in numbers:
                scaled = (values[rows] - self._mean[j]) * self._inverse[j]
                out[rows, start] = np.clip(scaled, -LIMIT, LIMIT)
        return out


def check_max_labels(value: object) -> None:
    """Refuse a limit that leaves no label apart from the pooled ones."""
    if value != "auto" and not (isinstance(value, Integral) and int(value) >= 2):
        raise ValueError(
            f'`max_labels` must be a whole number of at least 2, or "auto"; got {value!r}.'
        )


def _keep_within_memory(
    table: Table,
    weight: FloatArray | None,
    columns: dict[int, RawColumn],
    summaries: list[ColumnSummary],
) -> None:
    """Learn the columns with the most labels again, with fewer, where all have too many."""
    widths = {j: column.width for j, column in columns.items() if column.kind == "categorical"}
    limit = fair_limit(list(widths.values()), _MOST_VALUES // max(table.n_rows, _LEAST_ROWS))
    for j, width in widths.items():
        if width > limit:
            columns[j], summaries[j], *_ = learn_column(
                table.label(j), table.column(j), weight, limit
            )


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
