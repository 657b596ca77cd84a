"""A fitted estimator as an ONNX graph: raw columns in, uncertainty and verdict out.

Every raw column is an input of shape ``(rows, 1)``, in the form that
:mod:`priornet.export.interface` defines. A model of an array has one input ``X``,
``(rows, columns)``; columns of labels without names are called ``x0``, ``x1``, ...

The in-domain score counts reference rows (:mod:`priornet.estimators.held_out`). They are sorted,
and searched in two steps: the block of some forty rows, and the position in it. Memory is then a
few hundred bytes a row, not thousands.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.held_out import NOISY, WORDS, Reference
from priornet.estimators.prediction import Fitted
from priornet.export.interface import (
    INPUT,
    ExportError,
    Interval,
    fitted_part,
    input_names,
    interval_of,
    origin,
)
from priornet.export.onnx.beliefs import MEASURES, add_outputs, fitted_measures, measures
from priornet.export.onnx.graph import LEAST_OPSET, Graph, Value, check_opset, join, unlike
from priornet.export.onnx.networks import outputs_of_members, perceptron
from priornet.export.onnx.trees_graph import add_trees
from priornet.nn.shared import LEAST_EXCESS, SharedMLP
from priornet.tables.encoding import RawColumn
from priornet.tables.preprocessing import LIMIT, TablePreprocessor
from priornet.tables.values import MISSING_WORDS
from priornet.writing import write_bytes

PREFIX = "priornet_"
"""Begins the names of all outputs where a column has the name of one."""
_STANDING = ("in_domain", "verdict")
_ROWS = "rows"  # name of the varying number of rows
_ML = "ai.onnx.ml"
_MISSING_WORDS = sorted(
    {
        "".join(letters)
        for word in MISSING_WORDS - {""}
        for letters in product(*((char, char.upper()) for char in word))
    }
)  # in every spelling: the graph compares letter by letter


def to_onnx(
    model: BaseRegressor,
    path: str | os.PathLike[str] | None = None,
    *,
    coverage: float = 0.9,
    interval: Literal["predictive", "conformal"] = "predictive",
    opset: int = LEAST_OPSET,
) -> Any:
    """Write a fitted estimator as an ONNX model of plain operators, for any number of rows.

    Inputs are the raw columns, in the form of :mod:`priornet.export.interface`; outputs, in
    double precision and in units of the targets, have the names and shapes of
    :meth:`~priornet.BaseRegressor.predict_uncertainty`, beside ``mean``, ``lower`` and ``upper``;
    ``in_domain`` and ``verdict`` are those of ``predict_familiarity`` and ``predict_verdict``.
    Where a column has one of these names, all outputs begin with ``priornet_``.

    Args:
        model: Fitted.
        path: File to write; None to return the model only.
        coverage: Coverage of the interval from ``lower`` to ``upper``.
        interval: Its method: see :meth:`~priornet.BaseRegressor.predict_interval`.
        opset: Version of the operators.

    Returns:
        The ``onnx.ModelProto``.
    """
    fitted = fitted_part(model)
    if fitted.targets.maps is not None:
        kinds = ", ".join(sorted({own.kind for own in fitted.targets.maps}))
        raise ExportError(
            f"this model learnt mapped targets (target_transform: {kinds}), for which there is no "
            "ONNX graph yet: use `to_torch_export` (a name that ends in .pt2), or fit the model "
            'with target_transform="none".'
        )
    check_opset(opset)
    wanted = interval_of(fitted, coverage, interval)
    columns = input_names(fitted.preprocessor) or ()
    prefix = unlike(columns, PREFIX) if {*MEASURES, *_STANDING} & set(columns) else ""
    graph = Graph(taken=columns)
    _add_table(graph, fitted, wanted, prefix)
    proto = graph.model(opset, origin(model, coverage, interval) | {"prefix": prefix})
    if path is not None:
        write_bytes(Path(path), proto.SerializeToString())
    return proto


def _add_table(graph: Graph, fitted: Fitted, interval: Interval, prefix: str) -> None:
    """Add everything from the inputs to the outputs."""
    stack: Any = fitted.stack
    reference, targets = fitted.reference, fitted.targets
    words = WORDS if reference.is_enough else WORDS[-1:] * len(WORDS)
    head, several = stack.head, stack.n_networks > 1
    # In the type of the network: double for models of a few rows.
    inputs = preprocess(graph, fitted.preprocessor, stack.weights.detach().cpu().numpy().dtype)
    if isinstance(stack, SharedMLP):
        matrix = inputs.matrix
        if fitted.trees is not None:
            witness = add_trees(graph, fitted.trees, inputs.raw, fitted.preprocessor.columns_)
            matrix = join([matrix, witness.cast(matrix.dtype)])
        raw = outputs_of_members(stack, matrix).cast(np.float64)
        found = fitted_measures(head, raw, 3, interval, LEAST_EXCESS)
    else:
        raw = perceptron(stack, inputs.matrix).cast(np.float64)  # as the estimator does
        found = measures(head, raw, 2 + several, interval, is_ensemble=several)
    add_outputs(found, targets.scaling, [_ROWS], is_vector=targets.is_vector, prefix=prefix)
    odd = inputs.unseen.do("Or", no_number(found["mean"]))
    variances = (found["knowledge_variance"], found["data_variance"])
    n_targets = len(targets.names)
    for name, value in standing(reference, words, *variances, n_targets, odd).items():
        graph.output(prefix + name, value, [_ROWS])


class Inputs(NamedTuple):
    """The preprocessed columns."""

    matrix: Value
    """Inputs of the network, in its type, ``(rows, outputs)``."""
    unseen: Value
    """Rows with values that training never had, ``(rows, 1)``: :mod:`priornet.tables.encoding`."""
    raw: list[Value]
    """The raw columns: see :func:`raw_columns`."""


@dataclass
class _Made:
    """The nodes of some raw columns."""

    parts: list[Value] = field(default_factory=list[Value])
    """Features."""
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The raw column of each feature, and its position among that column's features."""
    unseen: list[Value] = field(default_factory=list[Value])
    """Values that training never had, ``(rows, some columns)``."""
    missing: list[Value] = field(default_factory=list[Value])
    """Missing values in columns where training had some."""


def preprocess(graph: Graph, preprocessor: TablePreprocessor, dtype: Any) -> Inputs:
    """Add the nodes from the raw columns to the matrix, and to the rows unlike training."""
    made, raw = _Made(), raw_columns(graph, preprocessor)
    numbers = {j: c for j, c in enumerate(preprocessor.columns_) if c.kind == "numeric"}
    if numbers:
        values = join([raw[j] for j in numbers]) if len(raw) > 1 else raw[0]
        _add_numbers(made, values, numbers, dtype)
    for j, column in enumerate(preprocessor.columns_):
        if j not in numbers:
            _add_labels(made, raw[j], j, column, dtype)
    if made.missing:
        n_missing = _over_columns("ReduceSum", made.missing)
        made.unseen.append(n_missing.compare("Greater", preprocessor.most_missing_))
    matrix = join(made.parts)
    order = sorted(range(len(made.places)), key=lambda i: made.places[i])
    if order != list(range(len(order))):
        matrix = matrix.at(order)
    return Inputs(matrix, _over_columns("ReduceMax", made.unseen).cast(bool), raw)


def raw_columns(graph: Graph, preprocessor: TablePreprocessor) -> list[Value]:
    """Add the inputs: one for each column, or one matrix of all."""
    names = input_names(preprocessor)
    if names is None:
        return [graph.input(INPUT, np.float64, [_ROWS, preprocessor.n_features_in_])]
    if "" in names:
        raise ExportError("a column has an empty name, which ONNX does not know; rename it.")
    kinds = [np.float64 if c.kind == "numeric" else np.object_ for c in preprocessor.columns_]
    return [graph.input(n, kind, [_ROWS, 1]) for n, kind in zip(names, kinds, strict=True)]


def _add_numbers(made: _Made, values: Value, columns: dict[int, RawColumn], dtype: Any) -> None:
    """Add the features of all numeric columns at once, by their positions in the table."""
    own = list(columns.values())
    is_missing = values.graph.add("IsNaN", values, dtype=bool)
    # In double precision: large numbers close together keep their digits.
    medians = np.array([column.median for column in own])
    filled = is_missing.where(values.graph.constant(medians, np.float64), values)
    centred = filled - np.array([column.mean for column in own])
    scaled = centred * np.array([1 / column.scale for column in own])
    made.parts.append(scaled.clip(-LIMIT, LIMIT).cast(dtype))
    made.places += [(j, 0) for j in columns]
    low, high = np.array([column.reach for column in own]).T
    is_far = values.compare("Less", low).do("Or", values.compare("Greater", high))
    made.unseen.append(is_far)  # nan is not
    whole = [i for i, column in enumerate(own) if column.is_whole]
    if whole:
        chosen = values.at(whole)
        made.unseen.append(chosen.compare("Greater", chosen.do("Floor")))
    marked = [i for i, column in enumerate(own) if column.has_missing]
    if marked:
        made.missing.append(is_missing.at(marked))
        made.parts.append(made.missing[0].cast(dtype))
        made.places += [(j, 1) for j, column in columns.items() if column.has_missing]
    complete = [i for i, column in enumerate(own) if not column.has_missing]
    if complete:
        made.unseen.append(is_missing.at(complete))


def _add_labels(made: _Made, raw: Value, j: int, column: RawColumn, dtype: Any) -> None:
    """Add the features of a column of labels, and mark unknown ones."""
    width, n_own = column.width, len(column.categories)
    missing = [width - 1 if column.has_missing else -1]
    spellings = [""]
    if column.has_missing:
        is_missing = column.means_missing(_MISSING_WORDS)
        spellings += [w for w, found in zip(_MISSING_WORDS, is_missing, strict=True) if found]
    is_counted = column.has_other and len(column.pooled) > 0
    default = width if is_counted else n_own if column.has_other else -1
    slots = raw.graph.add(  # the feature that is 1 in each row, (rows, 1); -1 for none
        "LabelEncoder",
        raw,
        dtype=np.int64,
        domain=_ML,
        keys_strings=[*column.known_labels, *spellings],
        values_int64s=[*range(n_own), *[n_own] * len(column.pooled), *missing * len(spellings)],
        default_int64=default,
    )
    if is_counted:  # a new label joins the pooled ones, which are known
        is_new = slots.compare("Equal", width)
        made.unseen.append(is_new)
        slots = is_new.where(raw.graph.constant(n_own, np.int64), slots)
    made.parts.append(slots.compare("Equal", np.arange(width)).cast(dtype))
    made.places += [(j, i) for i in range(width)]
    made.unseen.append(slots.compare("Less", 0))
    if column.has_missing:
        made.missing.append(slots.compare("Equal", width - 1))


def _over_columns(kind: str, parts: list[Value]) -> Value:
    """Reduce booleans ``(rows, ...)`` to one number per row, ``(rows, 1)``."""
    return join([part.cast(np.int64) for part in parts]).reduce(kind, 1, keep=True)


def standing(
    reference: Reference,
    words: Sequence[str],
    knowledge: Value,
    data: Value,
    n_targets: int,
    odd: Value,
) -> dict[str, Value]:
    """Add the nodes from variances of standardised targets to in-domain score and verdict.

    Variances have shape ``(rows, K)``. Rows that are ``odd``, ``(rows, 1)``, are unfamiliar
    whatever their variances. A model without knowledge uncertainty has no score.
    """
    if n_targets > 1:
        knowledge, data = (v.reduce("ReduceMean", 1, keep=True) for v in (knowledge, data))
    noisy = data.do("Sqrt").compare("Greater", NOISY * reference.data)
    place, outputs = noisy.cast(np.int64), dict[str, Value]()
    unfamiliar = data.graph.constant(2, np.int64)
    if reference.has_knowledge:
        outputs["in_domain"] = _familiarity(reference.knowledge, knowledge)
        familiar = knowledge.compare("LessOrEqual", reference.limit)  # nan is not
        place = familiar.where(place, unfamiliar)
    place = odd.where(unfamiliar, place)
    verdicts = data.graph.constant(words, object)
    return outputs | {"verdict": verdicts.do("Gather", place.at(0), axis=0)}


def no_number(mean: Value) -> Value:
    """Find rows whose prediction ``(rows, K)`` overflows, ``(rows, 1)``: a graph cannot refuse."""
    largest = np.finfo(np.float64).max
    is_finite = mean.cast(np.float64).do("Abs").compare("LessOrEqual", largest)
    every = is_finite.cast(np.int64).reduce("ReduceMin", 1, keep=True)
    return every.compare("Equal", 0)


def _familiarity(ordered: NDArray[np.float64], knowledge: Value) -> Value:
    """Compute the in-domain score, ``(rows,)``, from knowledge ``(rows, 1)``."""
    n, graph = len(ordered), knowledge.graph
    size = math.ceil(math.sqrt(n))
    n_blocks = n // size + 1  # the last ends with infinity
    blocks = np.full((n_blocks, size), np.inf)
    blocks.reshape(-1)[:n] = ordered

    def n_below(numbers: Value) -> Value:
        return numbers.compare("Less", knowledge).cast(np.float64).reduce("ReduceSum", 1)

    block = n_below(graph.constant(blocks[:-1, -1], np.float64))
    table = graph.constant(blocks, np.float64)
    rest = n_below(table.do("Gather", block.cast(np.int64), axis=0))
    return (1.0 + n - (block * size + rest)) * (1 / (1 + n))
