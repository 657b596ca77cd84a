"""Whether an exported file says what its model says, row by row.

The yardstick of an error is the value itself; of a mean or an end of an interval at least the
standard deviation of the row (a mean may be zero), of an entropy at least 1 nat. Knowledge
uncertainty far below what single precision tells from none counts as that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base import BaseRegressor
from priornet.export.columns import INPUT, input_names
from priornet.export.errors import ExportError, need
from priornet.export.feeds import feeds
from priornet.export.onnx_model import LEAST_OPSET
from priornet.export.quiet import quiet

__all__ = ["TOLERANCE", "Comparison", "Worst", "open_exported", "outputs_of"]

FloatArray = NDArray[np.float64]
Outputs = Mapping[str, FloatArray]

TOLERANCE = 1e-4
"""Largest relative difference that counts as equal."""
_LOCATIONS = ("mean", "lower", "upper")
_KNOWLEDGE = ("knowledge_variance", "mutual_information", "epkl")
_LEAST_KNOWLEDGE = 1e-8  # of the total variance, and in nats


class Exported(Protocol):
    """A file that scores rows."""

    @property
    def about(self) -> dict[str, Any]:
        """Coverage and method of its interval."""
        ...

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Its outputs for rows of a table that the model can read."""
        ...


@dataclass(frozen=True)
class Worst:
    """Where an output differs most: the row from 0, and the target's number."""

    error: float
    row: int
    target: int
    expected: float
    found: float


@dataclass
class Comparison:
    """The largest difference of each output over all rows.

    Attributes:
        worst: Per output.
        n_rows: How many rows were compared.
    """

    worst: dict[str, Worst] = field(default_factory=dict[str, Worst])
    n_rows: int = 0

    @property
    def output(self) -> str:
        """The output that differs most."""
        return max(self.worst, key=lambda name: self.worst[name].error)

    @property
    def holds(self) -> bool:
        """Whether every difference is within the tolerance."""
        return self.worst[self.output].error <= TOLERANCE

    def add(self, expected: Outputs, found: Outputs) -> None:
        """Compare some more rows."""
        deviations = np.sqrt(_as_matrix(expected["total_variance"]))
        for name, value in expected.items():
            if found[name].shape != value.shape:
                raise ExportError(
                    f'the output "{name}" has shape {found[name].shape}, not {value.shape}.'
                )
            right, given = _as_matrix(value), _as_matrix(found[name])
            errors = _errors(name, right, given, deviations)
            row, target = np.unravel_index(int(np.argmax(errors)), errors.shape)
            worst = self.worst.get(name)
            if worst is None or errors[row, target] > worst.error:
                self.worst[name] = Worst(
                    float(errors[row, target]),
                    self.n_rows + int(row),
                    int(target),
                    float(right[row, target]),
                    float(given[row, target]),
                )
        self.n_rows += len(deviations)


def _as_matrix(values: Any) -> FloatArray:
    array = np.asarray(values, np.float64)
    return array.reshape(len(array), -1)


def _errors(
    name: str, expected: FloatArray, found: FloatArray, deviations: FloatArray
) -> FloatArray:
    """Relative differences; 0 where both are the same infinity or nan, else infinite there."""
    scale = np.abs(expected)
    if name in _LOCATIONS:
        scale = np.maximum(scale, deviations)
    elif name.endswith("entropy"):
        scale = np.maximum(scale, 1.0)
    elif name in _KNOWLEDGE:
        is_variance = name.endswith("variance")
        scale = np.maximum(scale, _LEAST_KNOWLEDGE * (deviations**2 if is_variance else 1.0))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        errors = np.abs(found - expected) / scale
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isfinite(errors), errors, math.inf))


def outputs_of(model: BaseRegressor, rows: Any, about: Mapping[str, Any]) -> Outputs:
    """What the model says: the outputs that an export of it has."""
    record = model.predict_uncertainty(rows)
    lower, upper = model.predict_interval(rows, about["coverage"], about["interval"])
    found = {"mean": model.predict(rows), "lower": lower, "upper": upper}
    measures = {name: value for name, value in vars(record).items() if name != "target_names"}
    return found | {name: value for name, value in measures.items() if value is not None}


def open_exported(path: Path) -> Exported:
    """A file that :func:`to_onnx` or :func:`to_torch_export` wrote, whatever its name."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}.") from error
    return _Program(path) if start == b"PK" else _Graph(path)  # torch writes a zip archive


class _Graph:
    """An ONNX file."""

    def __init__(self, path: Path) -> None:
        purpose = "run an exported model"
        onnx, runtime = need("onnx", purpose), need("onnxruntime", purpose)
        self._path = path
        try:
            model = onnx.load_model(path)
        except Exception as error:  # whatever protobuf makes of such bytes
            raise ExportError(f"{path}: it is no ONNX model.") from error
        versions = {entry.domain: entry.version for entry in model.opset_import}
        if not versions or not model.graph.node:
            raise ExportError(f"{path}: it is no ONNX model.")
        if versions.get("", 0) < LEAST_OPSET:
            raise ExportError(
                f"{path}: its opset {versions.get('', 0)} is too old; export the model again, with "
                f"opset {LEAST_OPSET} or newer."
            )
        self.about = _about(path, {p.key: p.value for p in model.metadata_props}.get("priornet"))
        try:
            self._session = runtime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class of its own for every kind
            raise ExportError(f"{path}: onnxruntime cannot load it: {error}") from error

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the graph on raw columns."""
        names = input_names(model.fitted_.preprocessor) or (INPUT,)
        given = [one.name for one in self._session.get_inputs()]
        _check_same(self._path, "columns", names, given)
        fed = feeds(model.fitted_.preprocessor, rows)
        kinds = {one.name: one.type for one in self._session.get_inputs()}
        for name, values in fed.items():
            if kinds[name] != ("tensor(string)" if values.dtype == object else "tensor(double)"):
                raise ExportError(
                    f'{self._path}: the column "{name}" is a {kinds[name]} there, but not in the '
                    "model; export it again."
                )
        prefix = self.about.get("prefix", "")
        outputs = [one.name.removeprefix(prefix) for one in self._session.get_outputs()]
        return dict(zip(outputs, self._session.run(None, fed), strict=True))


class _Program:
    """A file of ``torch.export``."""

    def __init__(self, path: Path) -> None:
        import torch

        from priornet.export.torch_program import METADATA

        self._path = path
        texts = {METADATA: ""}
        try:
            with quiet("torch.export"):
                self._program: Any = torch.export.load(path, extra_files=texts).module()
        except Exception as error:  # torch raises what its parts do
            raise ExportError(f"{path}: it is no program of torch.export.") from error
        self.about = _about(path, texts[METADATA])

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the program on preprocessed columns."""
        import torch

        prep = model.fitted_.preprocessor
        _check_same(self._path, "columns", prep.feature_names_out_, self.about["inputs"])
        return {
            k: v.numpy() for k, v in self._program(torch.from_numpy(prep.transform(rows))).items()
        }


def _about(path: Path, text: str | None) -> dict[str, Any]:
    try:
        about = json.loads(text or "")
        coverage, method = about["coverage"], about["interval"]
        known = 0 < coverage < 1 and method in ("predictive", "conformal")
    except (ValueError, TypeError, KeyError):
        known, about = False, {}
    if not known:
        raise ExportError(f"{path}: `priornet export` did not write it: it names no coverage.")
    return about


def _check_same(path: Path, what: str, wanted: Any, given: Any) -> None:
    missing = [name for name in wanted if name not in set(given)]
    extra = [name for name in given if name not in set(wanted)]
    if missing or extra:
        name, where = (missing[0], "the model") if missing else (extra[0], "the file")
        raise ExportError(f'{path}: it has other {what}: only {where} has "{name}".')
