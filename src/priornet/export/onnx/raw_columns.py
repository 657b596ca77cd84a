"""The preprocessor as nodes: raw columns in, the matrix that the network reads out.

Every column is an input of shape ``(rows, 1)``, in the form that
:mod:`priornet.export.interface` defines. A model of an array has one input ``X``,
``(rows, columns)``; columns of labels without names are called ``x0``, ``x1``, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from priornet.export.interface import INPUT, ExportError, input_names
from priornet.export.onnx.graph import Graph, Value
from priornet.tables.encoding import RawColumn
from priornet.tables.preprocessing import LIMIT, TablePreprocessor
from priornet.tables.values import MISSING_WORDS

ROWS = "rows"
"""Name of the varying number of rows."""
_ML = "ai.onnx.ml"
_WORDS = sorted(
    {
        "".join(letters)
        for word in MISSING_WORDS - {""}
        for letters in product(*((char, char.upper()) for char in word))
    }
)  # in every spelling: the graph compares letter by letter


class Inputs(NamedTuple):
    """The preprocessed columns."""

    matrix: Value
    """Inputs of the network, in its type, ``(rows, outputs)``."""
    unseen: Value
    """Rows with values that training never had, ``(rows, 1)``: :mod:`priornet.tables.encoding`."""


@dataclass
class _Made:
    """The nodes so far."""

    parts: list[Value]
    """Features."""
    places: list[tuple[int, int]]
    """The raw column of each feature, and its position among that column's features."""
    unseen: list[Value]
    """Values that training never had, ``(rows, some columns)``."""
    missing: list[Value]
    """Missing values in columns where training had some."""


def preprocess(graph: Graph, preprocessor: TablePreprocessor, dtype: Any) -> Inputs:
    """Add the nodes from the raw columns to the matrix, and to the rows unlike training."""
    columns = preprocessor.columns_
    raw = _inputs(graph, preprocessor)
    made = _Made([], [], [], [])
    if any(column.kind == "numeric" for column in columns):
        _add_numbers(graph, columns, raw, dtype, made)
    for j, column in enumerate(columns):
        if column.kind == "categorical":
            slots = _slots(graph, column, raw[j])
            made.parts.append(slots.compare("Equal", np.arange(column.width)).cast(dtype))
            made.places += [(j, i) for i in range(column.width)]
            made.unseen.append(slots.compare("Less", 0))
            if column.has_missing:
                made.missing.append(slots.compare("Equal", column.width - 1))
    if made.missing:
        n_missing = _over_columns("ReduceSum", graph, made.missing)
        made.unseen.append(n_missing.compare("Greater", preprocessor.most_missing_))
    matrix = graph.join(made.parts)
    order = sorted(range(len(made.places)), key=lambda i: made.places[i])
    if order != list(range(len(order))):
        matrix = matrix.at(order)
    return Inputs(matrix, _over_columns("ReduceMax", graph, made.unseen).cast(bool))


def _add_numbers(
    graph: Graph, columns: Sequence[RawColumn], raw: list[Value], dtype: Any, made: _Made
) -> None:
    """Add the features of all numeric columns at once."""
    numeric = [j for j, column in enumerate(columns) if column.kind == "numeric"]
    own = [columns[j] for j in numeric]
    values = raw[0] if len(raw) < len(columns) else graph.join([raw[j] for j in numeric])
    is_missing = graph.add("IsNaN", values, dtype=bool)
    made.parts.append(_standardised(graph, own, values, is_missing, dtype))
    made.places += [(j, 0) for j in numeric]
    made.unseen.append(_far(graph, own, values))
    whole = [i for i, column in enumerate(own) if column.is_whole]
    if whole:
        chosen = values.at(whole)
        made.unseen.append(graph.add("Greater", chosen, chosen.do("Floor"), dtype=bool))
    marked = [i for i, column in enumerate(own) if column.has_missing]
    if marked:
        made.missing.append(is_missing.at(marked))
        made.parts.append(made.missing[0].cast(dtype))
        made.places += [(numeric[i], 1) for i in marked]
    complete = [i for i, column in enumerate(own) if not column.has_missing]
    if complete:
        made.unseen.append(is_missing.at(complete))


def _inputs(graph: Graph, preprocessor: TablePreprocessor) -> list[Value]:
    """Add the inputs: one for each column, or one matrix of all."""
    names = input_names(preprocessor)
    if names is not None and "" in names:
        raise ExportError("a column has an empty name, which ONNX does not know; rename it.")
    if names is None:
        return [graph.input(INPUT, np.float64, [ROWS, preprocessor.n_features_in_])]
    kinds = [np.float64 if c.kind == "numeric" else np.object_ for c in preprocessor.columns_]
    return [graph.input(n, kind, [ROWS, 1]) for n, kind in zip(names, kinds, strict=True)]


def _standardised(
    graph: Graph, columns: list[RawColumn], values: Value, is_missing: Value, dtype: Any
) -> Value:
    """Standardise in double precision: large numbers close together keep their digits."""
    medians = np.array([column.median for column in columns])
    filled = graph.where(is_missing, graph.constant(medians, np.float64), values)
    centred = filled - np.array([column.mean for column in columns])
    scaled = centred * np.array([1 / column.scale for column in columns])
    limits = (graph.constant(limit, np.float64) for limit in (-LIMIT, LIMIT))
    return scaled.do("Clip", *limits).cast(dtype)


def _over_columns(kind: str, graph: Graph, parts: list[Value]) -> Value:
    """Reduce booleans ``(rows, ...)`` to one number per row, ``(rows, 1)``."""
    return graph.join([part.cast(np.int64) for part in parts]).reduce(kind, 1, keep=True)


def _far(graph: Graph, columns: list[RawColumn], values: Value) -> Value:
    """Find numbers far out of the training range; nan is none."""
    low, high = np.array([column.reach for column in columns]).T
    below, above = values.compare("Less", low), values.compare("Greater", high)
    return graph.add("Or", below, above, dtype=bool)


def _slots(graph: Graph, column: RawColumn, raw: Value) -> Value:
    """Return the feature of the column that is 1 in each row, ``(rows, 1)``; -1 for none."""
    n_own = len(column.categories)
    missing = [column.width - 1 if column.has_missing else -1]
    spellings = [""]
    if column.has_missing:
        is_missing = column.means_missing(_WORDS)
        spellings += [word for word, found in zip(_WORDS, is_missing, strict=True) if found]
    return graph.add(
        "LabelEncoder",
        raw,
        dtype=np.int64,
        domain=_ML,
        keys_strings=[*column.categories, *spellings],
        values_int64s=[*range(n_own), *missing * len(spellings)],
        default_int64=n_own if column.has_other else -1,
    )
