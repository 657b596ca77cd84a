"""Raw columns to the matrix that the network reads, as nodes: what the preprocessor does.

Every column is an input of shape ``(rows, 1)``: numbers in double precision, nan where missing
(dates as days since 1970, true and false as 1 and 0), labels as text, ``""`` where missing.
A model of an array has one input ``X``, ``(rows, columns)``; columns without names that hold labels
are called ``x0``, ``x1``, ...
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from priornet.export.errors import ExportError
from priornet.export.onnx.graph import Graph, Value
from priornet.tables.encoding import means_missing
from priornet.tables.preprocessing import LIMIT, RawColumn, TablePreprocessor
from priornet.tables.values import MISSING_WORDS

__all__ = ["INPUT", "ROWS", "Inputs", "input_names", "preprocess"]

ROWS = "rows"
"""Name of the size that varies."""
INPUT = "X"
"""The one input of a model without column names."""
_ML = "ai.onnx.ml"
_WORDS = sorted(
    {
        "".join(letters)
        for word in MISSING_WORDS - {""}
        for letters in product(*((char, char.upper()) for char in word))
    }
)  # as any program spells them: the graph compares letter by letter


class Inputs(NamedTuple):
    """What the raw columns say."""

    matrix: Value
    """For the network, in its type, ``(rows, outputs)``."""
    unseen: Value
    """Whether a row has what training never had, ``(rows, 1)``: :mod:`priornet.tables.unseen`."""


def preprocess(graph: Graph, preprocessor: TablePreprocessor, dtype: Any) -> Inputs:
    """Nodes from the raw columns to the matrix, and to the rows without grounds."""
    columns = preprocessor.columns_
    numeric = [j for j, column in enumerate(columns) if column.kind == "numeric"]
    parts: list[Value] = []
    places: list[tuple[int, int]] = []  # (raw column, its how manieth output) of each made column
    raw = _inputs(graph, preprocessor)
    unseen: list[Value] = []  # where a value is, (rows, some columns)
    missing: list[Value] = []  # where one is missing, as in training
    if numeric:
        values = raw[0] if len(raw) < len(columns) else graph.join([raw[j] for j in numeric])
        holes = graph.add("IsNaN", values, dtype=bool)
        parts.append(_standardised(graph, [columns[j] for j in numeric], values, holes, dtype))
        places += [(j, 0) for j in numeric]
        unseen.append(_far(graph, [columns[j] for j in numeric], values))
        whole = [i for i, j in enumerate(numeric) if columns[j].is_whole]
        if whole:
            chosen = values.at(whole)
            unseen.append(graph.add("Greater", chosen, chosen.do("Floor"), dtype=bool))
        marked = [i for i, j in enumerate(numeric) if columns[j].has_missing]
        if marked:
            missing.append(holes.at(marked))
            parts.append(missing[0].cast(dtype))
            places += [(numeric[i], 1) for i in marked]
        unmarked = [i for i in range(len(numeric)) if i not in set(marked)]
        if unmarked:
            unseen.append(holes.at(unmarked))
    for j, column in enumerate(columns):
        if column.kind == "categorical":
            slots = _slots(graph, column, raw[j])
            parts.append(slots.compare("Equal", np.arange(column.width)).cast(dtype))
            places += [(j, i) for i in range(column.width)]
            unseen.append(slots.compare("Less", 0))
            if column.has_missing:
                missing.append(slots.compare("Equal", column.width - 1))
    if missing:
        lacking = _over_columns("ReduceSum", graph, missing)
        unseen.append(lacking.compare("Greater", preprocessor.most_missing_))
    made = graph.join(parts)
    order = sorted(range(len(places)), key=lambda i: places[i])
    matrix = made if order == list(range(len(order))) else made.at(order)
    return Inputs(matrix, _over_columns("ReduceMax", graph, unseen).cast(bool))


def input_names(preprocessor: TablePreprocessor) -> tuple[str, ...] | None:
    """Names of the columns as inputs; None where one input holds them all."""
    if preprocessor.feature_names_in_ is not None:
        return preprocessor.feature_names_in_
    if all(column.kind == "numeric" for column in preprocessor.columns_):
        return None
    return tuple(f"x{j}" for j in range(preprocessor.n_features_in_))


def _inputs(graph: Graph, preprocessor: TablePreprocessor) -> list[Value]:
    """The raw columns; where they are one matrix and there are several, just that."""
    names = input_names(preprocessor)
    if names is not None and "" in names:
        raise ExportError("a column has an empty name, which ONNX does not know; rename it.")
    if names is None:
        return [graph.input(INPUT, np.float64, [ROWS, preprocessor.n_features_in_])]
    kinds = [np.float64 if c.kind == "numeric" else np.object_ for c in preprocessor.columns_]
    return [graph.input(n, kind, [ROWS, 1]) for n, kind in zip(names, kinds, strict=True)]


def _standardised(
    graph: Graph, columns: list[RawColumn], values: Value, holes: Value, dtype: Any
) -> Value:
    """In double precision: a column of large numbers close together keeps its digits."""
    medians = np.array([column.median for column in columns])
    filled = graph.where(holes, graph.constant(medians, np.float64), values)
    centred = filled - np.array([column.mean for column in columns])
    scaled = centred * np.array([1 / column.scale for column in columns])
    limits = (graph.constant(limit, np.float64) for limit in (-LIMIT, LIMIT))
    return scaled.do("Clip", *limits).cast(dtype)


def _over_columns(kind: str, graph: Graph, parts: list[Value]) -> Value:
    """Booleans ``(rows, ...)`` as one number per row, ``(rows, 1)``."""
    return graph.join([part.cast(np.int64) for part in parts]).reduce(kind, 1, keep=True)


def _far(graph: Graph, columns: list[RawColumn], values: Value) -> Value:
    """Where numbers are out of reach; nan never is."""
    low, high = np.array([column.reach for column in columns]).T
    below, above = values.compare("Less", low), values.compare("Greater", high)
    return graph.add("Or", below, above, dtype=bool)


def _slots(graph: Graph, column: RawColumn, raw: Value) -> Value:
    """Which of the column's outputs is 1 in each row, ``(rows, 1)``; -1 for none."""
    n_own = len(column.categories)
    hole = [column.width - 1 if column.has_missing else -1]
    words = [
        word for word, is_hole in zip(_WORDS, means_missing(column, _WORDS), strict=True) if is_hole
    ]
    holes = ["", *words] if column.has_missing else [""]
    return graph.add(
        "LabelEncoder",
        raw,
        dtype=np.int64,
        domain=_ML,
        keys_strings=[*column.categories, *holes],
        values_int64s=[*range(n_own), *hole * len(holes)],
        default_int64=n_own if column.has_other else -1,
    )
