"""A fitted estimator as one ONNX graph, from raw columns to mean, interval and uncertainty."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from priornet._version import __version__
from priornet.estimators.base import BaseRegressor
from priornet.estimators.conformal import conformal_quantile
from priornet.estimators.model import Fitted
from priornet.export.errors import ExportError, check_fitted, need
from priornet.export.onnx.beliefs import Interval, Measures, measures
from priornet.export.onnx.columns import ROWS, input_names, preprocess
from priornet.export.onnx.graph import Graph, Value, unlike
from priornet.export.onnx.network import perceptron
from priornet.export.onnx.series import check_coverage
from priornet.export.onnx.standing import STANDING, no_number, standing
from priornet.tables.target_columns import Scaling
from priornet.writing import write_bytes

__all__ = [
    "LEAST_OPSET",
    "PREFIX",
    "check_opset",
    "describe",
    "give_out",
    "interval_of",
    "make_model",
    "to_onnx",
]

LEAST_OPSET = 18
"""The oldest version of the operators that can be written."""
PREFIX = "priornet_"
"""Begins the names of all outputs where a column has the name of one."""
_ML_OPSET = 3
_LOCATIONS = ("mean", "lower", "upper")
_METADATA = "priornet"


def to_onnx(
    model: BaseRegressor,
    path: str | os.PathLike[str] | None = None,
    *,
    coverage: float = 0.9,
    interval: Literal["predictive", "conformal"] = "predictive",
    opset: int = LEAST_OPSET,
) -> Any:
    """Write a fitted estimator as an ONNX model of plain operators, for any number of rows.

    Inputs are the raw columns (:mod:`priornet.export.onnx.columns` says in which form); outputs, in
    double precision and in units of the targets, have the names and shapes of
    :meth:`~priornet.BaseRegressor.predict_uncertainty`, beside ``mean``, ``lower`` and ``upper``;
    ``in_domain`` and ``verdict`` are those of ``predict_familiarity`` and ``predict_verdict``.
    Where a column has one of these names, all outputs begin with ``priornet_``.

    Args:
        model: Fitted.
        path: File to write; None to return the model only.
        coverage: Of the interval from ``lower`` to ``upper``.
        interval: Where it comes from: see :meth:`~priornet.BaseRegressor.predict_interval`.
        opset: Version of the operators.

    Returns:
        The ``onnx.ModelProto``.
    """
    check_fitted(model)
    check_opset(opset)
    fitted = model.fitted_
    wanted = interval_of(fitted, coverage, interval)
    taken = input_names(fitted.preprocessor) or ()
    graph = Graph(taken=taken)
    inputs = preprocess(graph, fitted.preprocessor, _dtype(fitted))
    stack: Any = fitted.stack
    several = stack.n_networks > 1
    raw = perceptron(graph, stack, inputs.matrix).cast(np.float64)  # as the estimator does
    found = measures(graph, stack.head, raw, 2 + several, wanted, is_ensemble=several)
    is_taken = {*(field.name for field in fields(Measures)), *STANDING} & set(taken)
    prefix = unlike(taken, PREFIX) if is_taken else ""
    targets = fitted.targets
    give_out(graph, found, targets.scaling, [ROWS], is_vector=targets.is_vector, prefix=prefix)
    variances = (found.knowledge_variance, found.data_variance)
    odd = graph.add("Or", inputs.unseen, no_number(graph, found.mean), dtype=bool)
    stands = standing(
        graph,
        fitted.reference,
        *variances,
        len(targets.names),
        odd,
        is_enough=fitted.reference.is_enough,
    )
    for name, value in stands._asdict().items():
        if value is not None:
            graph.output(prefix + name, value, [ROWS])
    about = {
        "version": __version__,
        "estimator": type(model).__name__,
        "coverage": coverage,
        "interval": interval,
        "targets": list(targets.names),
        "prefix": prefix,
    }
    proto = make_model(graph, opset, about)
    if path is not None:
        write_bytes(Path(path), proto.SerializeToString())
    return proto


def check_opset(opset: int) -> None:
    """Refuse operators too old for the graph, or too new for the installed package."""
    newest = need("onnx", "export a model").defs.onnx_opset_version()
    if not LEAST_OPSET <= opset <= newest:
        why = "too old" if opset < LEAST_OPSET else "not known to the installed onnx"
        raise ExportError(f"opset {opset} is {why}; choose one from {LEAST_OPSET} to {newest}.")


def interval_of(fitted: Fitted, coverage: float, method: str) -> Interval:
    """The interval that a model is asked for."""
    check_coverage(coverage)
    if method == "predictive":
        return Interval(coverage)
    if method != "conformal":
        raise ExportError(f'unknown interval "{method}"; choose one of: predictive, conformal.')
    factors = conformal_quantile(fitted.calibration_scores, coverage)
    return Interval(coverage, tuple(float(factor) for factor in factors))


def _dtype(fitted: Fitted) -> Any:
    """The type of the network: double for models of a few rows."""
    return fitted.stack.weights.detach().cpu().numpy().dtype


def give_out(
    graph: Graph,
    found: Measures,
    scaling: Scaling,
    sizes: list[Any],
    *,
    is_vector: bool,
    prefix: str = "",
    dtype: Any = np.float64,
) -> None:
    """Outputs in units of the targets: one product and one sum for all of them.

    Args:
        graph: Gets the outputs.
        found: Of standardised targets.
        scaling: Their mean and standard deviation.
        sizes: Shape of the batch.
        is_vector: Whether a single target has no axis of its own.
        prefix: Begins the names of the outputs.
        dtype: Their type.
    """
    shift, scale = scaling
    nothing, log_scale = np.zeros(len(scale)), np.log(scale).sum(keepdims=True)
    parts: dict[str, Value] = {}
    factors: list[Any] = []
    terms: list[Any] = []
    for name in (field.name for field in fields(Measures)):
        value = getattr(found, name)
        if value is None:
            continue
        parts[name] = value
        if name in _LOCATIONS:
            factor, term = scale, shift
        elif name.endswith("variance"):
            factor, term = scale * scale, nothing
        else:
            factor, term = np.ones(1), log_scale * name.endswith("entropy")
        factors.append(factor)
        terms.append(term)
    joined = graph.join(list(parts.values()))
    scaled = (joined * np.concatenate(factors) + np.concatenate(terms)).cast(dtype)
    start = 0
    for name, factor in zip(parts, factors, strict=True):
        width = len(factor)
        is_row = is_vector or name.endswith(("entropy", "information", "epkl"))
        columns = start if is_row else list(range(start, start + width))
        shape = [*sizes] if is_row else [*sizes, width]
        graph.output(prefix + name, scaled.at(columns), shape)
        start += width


def make_model(graph: Graph, opset: int, about: dict[str, Any]) -> Any:
    """A graph as a checked model that says where it comes from."""
    onnx = graph.onnx
    versions = [onnx.helper.make_opsetid("", opset)]
    versions += [onnx.helper.make_opsetid(d, _ML_OPSET) for d in sorted(graph.domains) if d]
    model = onnx.helper.make_model(
        graph.proto("priornet"),
        opset_imports=versions,
        producer_name="priornet",
        producer_version=__version__,
        ir_version=onnx.helper.find_min_ir_version_for(versions),
    )
    describe(onnx, model, about)
    return model


def describe(onnx: Any, model: Any, about: dict[str, Any]) -> None:
    """Let a model say where it comes from, and check it."""
    onnx.helper.set_model_props(model, {_METADATA: json.dumps(about)})
    onnx.checker.check_model(model, full_check=True)
