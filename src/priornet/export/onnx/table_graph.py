"""A fitted estimator as one ONNX graph: raw columns in, uncertainty and verdict out.

The in-domain score counts reference rows (:mod:`priornet.estimators.held_out`). They are sorted,
and searched in two steps: the block of some forty rows, and the position in it. Memory is then a
few hundred bytes a row, not thousands.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.held_out import NOISY, WORDS, Reference
from priornet.estimators.prediction import Fitted
from priornet.export.interface import Interval, fitted_part, input_names, interval_of, origin
from priornet.export.onnx.beliefs import MEASURES, add_outputs, measures
from priornet.export.onnx.graph import LEAST_OPSET, Graph, Value, check_opset, unlike
from priornet.export.onnx.raw_columns import ROWS, preprocess
from priornet.nn import StackedMLP
from priornet.nn.architecture import RampedMLP
from priornet.writing import write_bytes

PREFIX = "priornet_"
"""Begins the names of all outputs where a column has the name of one."""
_STANDING = ("in_domain", "verdict")


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
    # In the type of the network: double for models of a few rows.
    inputs = preprocess(graph, fitted.preprocessor, stack.weights.detach().cpu().numpy().dtype)
    several = stack.n_networks > 1
    raw = perceptron(graph, stack, inputs.matrix).cast(np.float64)  # as the estimator does
    found = measures(graph, stack.head, raw, 2 + several, interval, is_ensemble=several)
    targets = fitted.targets
    add_outputs(graph, found, targets.scaling, [ROWS], is_vector=targets.is_vector, prefix=prefix)
    odd = graph.add("Or", inputs.unseen, no_number(graph, found.mean), dtype=bool)
    variances, n_targets = (found.knowledge_variance, found.data_variance), len(targets.names)
    outputs = standing(
        graph, fitted.reference, *variances, n_targets, odd, is_enough=fitted.reference.is_enough
    )
    for name, value in outputs.items():
        graph.output(prefix + name, value, [ROWS])


def perceptron(graph: Graph, stack: StackedMLP, x: Value) -> Value:
    """Add the layers of a stack: ``(rows, n)`` of one network, ``(S, rows, n)`` of several."""
    x = _with_ramps(graph, stack, x)
    parts = [part.detach().cpu().numpy() for part in stack.pieces().values()]
    # Weights (S, in, out), biases (S, out).
    layers = list(zip(parts[::2], parts[1::2], strict=True))
    for i, (weight, bias) in enumerate(layers):
        if stack.n_networks == 1:
            w, b = (graph.constant(part[0], x.dtype) for part in (weight, bias))
            x = x.do("Gemm", w, b)
        else:
            x = x @ weight + bias[:, None]
        if i < len(layers) - 1:
            x = x.do("Relu")
    return x


def _with_ramps(graph: Graph, stack: StackedMLP, x: Value) -> Value:
    """Append the ramps of a stack that has them to its inputs."""
    if not isinstance(stack, RampedMLP):
        return x
    own = {name: part.cpu().numpy() for name, part in stack.named_buffers()}
    n_inputs, n_all = own["pick"].shape
    pick, shift = (graph.constant(own[name], x.dtype) for name in ("pick", "shift"))
    laid = x.do("Gemm", pick, shift)
    ends = (graph.constant(end, x.dtype) for end in (0.0, 1.0))
    ramps = (laid.at(list(range(n_inputs, n_all))) * own["slope"]).do("Clip", *ends)
    return graph.join([laid.at(list(range(n_inputs))), ramps])


def standing(
    graph: Graph,
    reference: Reference,
    knowledge: Value,
    data: Value,
    n_targets: int,
    odd: Value,
    *,
    is_enough: bool = True,
) -> dict[str, Value]:
    """Add the nodes from variances of standardised targets to in-domain score and verdict.

    Args:
        graph: Gets the nodes.
        reference: The model's.
        knowledge: Knowledge variance, ``(rows, K)``.
        data: Data variance, ``(rows, K)``.
        n_targets: K.
        odd: Rows that are unfamiliar whatever their variances, ``(rows, 1)``.
        is_enough: Whether the model had rows enough; otherwise all are unfamiliar.

    Returns:
        ``in_domain``, unless the model has no knowledge uncertainty, and ``verdict``; ``(rows,)``.
    """
    if n_targets > 1:
        knowledge, data = (v.reduce("ReduceMean", 1, keep=True) for v in (knowledge, data))
    noisy = data.do("Sqrt").compare("Greater", NOISY * reference.data)
    place = noisy.cast(np.int64)
    outputs: dict[str, Value] = {}
    if reference.has_knowledge:
        outputs["in_domain"] = _familiarity(graph, reference.knowledge, knowledge)
        familiar = knowledge.compare("LessOrEqual", reference.limit)  # nan is not
        place = graph.where(familiar, place, graph.constant(2, np.int64))
    place = graph.where(odd, graph.constant(2, np.int64), place)
    words = graph.constant(list(WORDS) if is_enough else [WORDS[2]] * len(WORDS), object)
    return outputs | {"verdict": words.do("Gather", place.at(0), axis=0)}


def no_number(graph: Graph, mean: Value) -> Value:
    """Find rows whose prediction ``(rows, K)`` overflows, ``(rows, 1)``: a graph cannot refuse."""
    largest = np.finfo(np.float64).max
    is_finite = mean.cast(np.float64).do("Abs").compare("LessOrEqual", largest)
    every = is_finite.cast(np.int64).reduce("ReduceMin", 1, keep=True)
    return every.compare("Equal", 0)


def _familiarity(graph: Graph, ordered: NDArray[np.float64], knowledge: Value) -> Value:
    """Compute the in-domain score, ``(rows,)``, from knowledge ``(rows, 1)``."""
    n = len(ordered)
    size = math.ceil(math.sqrt(n))
    n_blocks = n // size + 1  # the last ends with infinity
    blocks = np.full((n_blocks, size), np.inf)
    blocks.reshape(-1)[:n] = ordered

    def n_below(numbers: Value) -> Value:
        below = graph.add("Less", numbers, knowledge, dtype=bool).cast(np.float64)
        return below.reduce("ReduceSum", 1)

    block = n_below(graph.constant(blocks[:-1, -1], np.float64))
    table = graph.constant(blocks, np.float64)
    rest = n_below(table.do("Gather", block.cast(np.int64), axis=0))
    return (1.0 + n - (block * size + rest)) * (1 / (1 + n))
