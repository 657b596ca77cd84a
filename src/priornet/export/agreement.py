"""Open exported files again, and compare them with their model row by row.

A difference is divided by the value itself; for a mean or an end of an interval by at least the
standard deviation of the row (a mean may be zero), for an entropy by at least 1 nat. Knowledge
uncertainty below the resolution of single precision counts as that. Scores and verdicts jump: a
row within the tolerance of a limit may fall on either side.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.held_out import WORDS
from priornet.estimators.prediction import Prediction, PredictionError, row_variances
from priornet.export.interface import (
    INPUT,
    ExportError,
    describe_columns,
    feeds,
    input_names,
    named,
    need,
    numbers,
    quiet,
)
from priornet.export.onnx.graph import LEAST_OPSET
from priornet.tables.read import TableReader, check_columns, convert_known_numbers, located

FloatArray = NDArray[np.float64]
Outputs = Mapping[str, NDArray[Any]]
"""Outputs by name; texts are objects."""

TOLERANCE = 1e-4
"""Largest relative difference that counts as equal."""
_LOCATIONS = ("mean", "lower", "upper")
_KNOWLEDGE = ("knowledge_variance", "mutual_information", "epkl")
_PER_ROW = ("entropy", "information", "epkl", "in_domain", "verdict")


def open_exported(path: Path) -> GraphFile | ProgramFile:
    """Open a file that :func:`to_onnx` or :func:`to_torch_export` wrote, whatever its name."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}.") from error
    return ProgramFile(path) if start == b"PK" else GraphFile(path)  # torch writes a zip archive


class GraphFile:
    """An ONNX file.

    Args:
        path: A file that this package wrote.
    """

    def __init__(self, path: Path) -> None:
        purpose = "run an exported model"
        onnx, runtime = need("onnx", purpose), need("onnxruntime", purpose)
        self._path = path
        try:
            model = onnx.load_model(path)
        except Exception as error:  # protobuf has many
            raise ExportError(f"{path}: it is no ONNX model.") from error
        versions = {entry.domain: entry.version for entry in model.opset_import}
        if not versions or not model.graph.node:
            raise ExportError(f"{path}: it is no ONNX model.")
        opset = versions.get("", 0)
        if opset < LEAST_OPSET:
            raise ExportError(
                f"{path}: its opset {opset} is too old; export the model again, with opset "
                f"{LEAST_OPSET} or newer."
            )
        self.about = _metadata(path, {p.key: p.value for p in model.metadata_props}.get("priornet"))
        try:
            self._session = runtime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class of its own for every kind
            why = f"onnxruntime cannot load it: {error}"
            if "supported IR version" in str(error) or "till opset" in str(error):
                why = (
                    f"its opset {opset} is too new for the installed onnxruntime; export the model "
                    f"again, with an older one (from {LEAST_OPSET})."
                )
            raise ExportError(f"{path}: {why}") from error

    @property
    def input_shapes(self) -> dict[str, list[Any]]:
        """Return the shapes of the inputs; a text stands for a size that may vary."""
        return {one.name: list(one.shape) for one in self._session.get_inputs()}

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the graph on the raw columns of a table."""
        kinds = {one.name: one.type for one in self._session.get_inputs()}
        wanted = input_names(model.fitted_.preprocessor) or (INPUT,)
        _check_columns(self._path, wanted, list(kinds))
        fed = feeds(model.fitted_.preprocessor, rows)
        for name, values in fed.items():
            if kinds[name] != ("tensor(string)" if values.dtype == object else "tensor(double)"):
                raise ExportError(
                    f'{self._path}: the column "{name}" is a {kinds[name]} in the file, but not in '
                    "the model; export it again."
                )
        return self.run(fed)

    def run(self, fed: Mapping[str, NDArray[Any]]) -> Outputs:
        """Return the outputs for given inputs, both by name."""
        prefix = self.about.get("prefix", "")
        outputs = [one.name.removeprefix(prefix) for one in self._session.get_outputs()]
        return dict(zip(outputs, self._session.run(None, dict(fed)), strict=True))


class ProgramFile:
    """A file of ``torch.export``."""

    def __init__(self, path: Path) -> None:
        import torch

        from priornet.export.torch_export import METADATA

        self._path = path
        texts = {METADATA: ""}
        try:
            with quiet("torch.export"):
                self._program: Any = torch.export.load(path, extra_files=texts).module()
        except Exception as error:  # torch has many
            raise ExportError(f"{path}: it is no program of torch.export.") from error
        self.about = _metadata(path, texts[METADATA])

    def score(self, model: BaseRegressor, rows: Any) -> Outputs:
        """Run the program on the raw columns of a table."""
        import torch

        prep = model.fitted_.preprocessor
        wanted, given = describe_columns(prep), self.about.get("columns", [])
        _check_columns(self._path, *([c["name"] for c in side] for side in (wanted, given)))
        for in_model, in_file in zip(wanted, given, strict=True):
            if in_model != in_file:
                raise ExportError(
                    f'{self._path}: the column "{in_model["name"]}" differs between file and model '
                    "in its kind or its labels; export the model again."
                )
        found = self._program(torch.from_numpy(numbers(prep, rows)))
        outputs = {name: value.numpy() for name, value in found.items()}
        if "verdict" in outputs:  # a program has only numbers
            outputs["verdict"] = np.array(WORDS, object)[outputs["verdict"]]
        return outputs


def _metadata(path: Path, text: str | None) -> dict[str, Any]:
    """Parse the metadata of a file."""
    with suppress(ValueError, TypeError, KeyError):
        about = json.loads(text or "")
        if 0 < about["coverage"] < 1 and about["interval"] in ("predictive", "conformal"):
            return about
    raise ExportError(f"{path}: `priornet export` did not write it: it names no coverage.")


def _check_columns(path: Path, wanted: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a file with other columns than the model."""
    for names, others, where in ((wanted, given, "the model"), (given, wanted, "the file")):
        name = next((name for name in names if name not in set(others)), None)
        if name is not None:
            raise ExportError(f'{path}: it has other columns: only {where} has "{name}".')


@dataclass(frozen=True)
class Jumping:
    """An output that jumps where an uncertainty passes a limit.

    Attributes:
        value: Value of each row, numbers or texts.
        others: Its values for a slightly smaller and a slightly larger uncertainty.
    """

    value: NDArray[Any]
    others: tuple[NDArray[Any], ...]

    def errors(self, found: NDArray[Any]) -> FloatArray:
        """Compute relative differences from the range of the values; 1 for another text."""
        if self.value.dtype == object:
            same = np.any([found == one for one in (self.value, *self.others)], axis=0)
            return np.where(same, 0.0, 1.0)
        low, high = (f.reduce([self.value, *self.others]) for f in (np.minimum, np.maximum))
        nearest = np.where(np.isnan(found), self.value, np.clip(found, low, high))
        return _relative(nearest, found, np.abs(self.value))


Expected = Mapping[str, FloatArray | Jumping]


@dataclass(frozen=True)
class Worst:
    """The largest difference of an output, with its row from 0 and the number of its target."""

    error: float
    row: int
    target: int
    expected: float | str
    found: float | str


@dataclass
class Comparison:
    """The largest difference of each output over all rows.

    Attributes:
        worst: The largest difference of each output.
        n_rows: Number of compared rows.
        least_knowledge: Smaller knowledge uncertainty, as a share of the total variance and in
            nats, counts as this much.
    """

    worst: dict[str, Worst] = field(default_factory=dict[str, Worst])
    n_rows: int = 0
    least_knowledge: float = 1e-8

    @property
    def output(self) -> str:
        """Name of the output that differs most."""
        return max(self.worst, key=lambda name: self.worst[name].error)

    @property
    def holds(self) -> bool:
        """Tell if every difference is within the tolerance."""
        return self.worst[self.output].error <= TOLERANCE

    def add(self, expected: Expected, found: Outputs) -> None:
        """Compare some more rows."""
        missing = sorted(set(expected) - set(found))
        if missing:
            raise ExportError(f'it has no output "{missing[0]}"; export the model again.')
        deviations = np.sqrt(_as_matrix(expected["total_variance"]))
        for name, right in expected.items():
            value, given = right.value if isinstance(right, Jumping) else right, found[name]
            if given.shape != value.shape:
                raise ExportError(
                    f'the output "{name}" has shape {given.shape}, not {value.shape}.'
                )
            if isinstance(right, Jumping):
                errors = right.errors(given)
            else:
                errors = self._errors(name, _as_matrix(value), _as_matrix(given), deviations)
            self._note(name, errors.reshape(len(given), -1), value, given)
        self.n_rows += len(deviations)

    def _errors(
        self, name: str, expected: FloatArray, found: FloatArray, deviations: FloatArray
    ) -> FloatArray:
        """Compute relative differences; two equal infinities or nan are no difference."""
        scale = np.abs(expected)
        if name in _LOCATIONS:
            scale = np.maximum(scale, deviations)
        elif name.endswith("entropy"):
            scale = np.maximum(scale, 1.0)
        elif name in _KNOWLEDGE:
            unit = deviations**2 if name.endswith("variance") else 1.0
            scale = np.maximum(scale, self.least_knowledge * unit)
        return _relative(expected, found, scale)

    def _note(
        self, name: str, errors: FloatArray, expected: NDArray[Any], found: NDArray[Any]
    ) -> None:
        """Keep the largest difference if it exceeds those before."""
        row, target = (int(i) for i in np.unravel_index(int(np.argmax(errors)), errors.shape))
        worst = self.worst.get(name)
        if worst is None or errors[row, target] > worst.error:
            right, given = (v.reshape(len(v), -1)[row, target] for v in (expected, found))
            if expected.dtype != object:
                right, given = float(right), float(given)
            place = self.n_rows + row
            self.worst[name] = Worst(float(errors[row, target]), place, target, right, given)

    def summary(self, place: Callable[[str, Worst], dict[str, Any]]) -> dict[str, Any]:
        """Report the differences, ready for JSON.

        Args:
            place: Describes the place of an output's largest difference.
        """

        def worst_of(name: str) -> dict[str, Any]:
            worst = self.worst[name]
            values = {"error": worst.error, "expected": worst.expected, "found": worst.found}
            return {"column": name, **place(name, worst), **values}

        return {
            "tolerance": TOLERANCE,
            "holds": self.holds,
            "worst": worst_of(self.output),
            "outputs": [worst_of(name) for name in self.worst],
        }


def _as_matrix(values: Any) -> FloatArray:
    array = np.asarray(values, np.float64)
    return array.reshape(len(array), -1)


def _relative(expected: FloatArray, found: FloatArray, scale: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        errors = np.abs(found - expected) / scale
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isfinite(errors), errors, math.inf))


def outputs_of(model: BaseRegressor, rows: Any, about: Mapping[str, Any]) -> Expected:
    """Return what the model predicts: the outputs that an export of it has."""
    found = model.predict_all(rows, about["coverage"], about["interval"])
    outputs: dict[str, Any] = {"mean": found.mean, "lower": found.lower, "upper": found.upper}
    return outputs | found.uncertainty.measures() | _standing(found)


def _standing(found: Prediction) -> dict[str, Jumping]:
    """Return score and verdict of each row, also for a little more or less uncertainty."""
    reference = found.reference
    knowledge, data = row_variances(found.standard_belief)
    nearby = (1 - TOLERANCE, 1 + TOLERANCE)
    unseen = found.unseen.rows
    words = tuple(reference.words(a * knowledge, b * data, unseen) for a in nearby for b in nearby)
    outputs = {"verdict": Jumping(found.verdict, words)}
    if reference.has_knowledge:
        scores = tuple(reference.familiarity(factor * knowledge) for factor in nearby)
        outputs["in_domain"] = Jumping(found.in_domain, scores)
    return outputs


def verify_file(model: BaseRegressor, exported: str | Path, source: str | Path) -> dict[str, Any]:
    """Compare an exported file with its model on every row of a table file, on the CPU.

    Args:
        model: A fitted estimator whose columns have names.
        exported: A file that :func:`to_onnx` or :func:`to_torch_export` wrote.
        source: CSV or Parquet file; ``-`` for CSV on standard input.

    Returns:
        The largest difference of each output with its place, ready for JSON.
    """
    fitted = model.fitted_
    names, targets = fitted.preprocessor.feature_names_in_, fitted.targets.names
    if names is None:
        raise ValueError("the model was trained on an array, whose columns have no names.")
    comparison = Comparison()
    with TableReader(source) as reader:
        check_columns(reader.path, names, reader.names)
        file = open_exported(Path(exported))
        _check_interval(model, exported, file.about)
        for batch in reader:
            rows = convert_known_numbers(batch.select(list(names)), fitted.preprocessor.columns_)
            first_row = comparison.n_rows
            try:
                with located(reader.path, first_row):
                    expected = outputs_of(model, rows, file.about)
            except PredictionError as error:
                raise PredictionError(first_row + error.row, error.n_wrong) from error
            found = file.score(model, rows)
            with named(exported):
                comparison.add(expected, found)

    def place(name: str, worst: Worst) -> dict[str, Any]:
        target = None if name.endswith(_PER_ROW) else targets[worst.target]
        return {"target": target, "row": worst.row + 1}

    return {"n_rows": comparison.n_rows, **comparison.summary(place)}


def _check_interval(model: Any, exported: str | Path, about: Mapping[str, Any]) -> None:
    """Refuse an export whose kind of interval the model cannot give."""
    coverage, scores = about["coverage"], model.fitted_.calibration_scores
    if about["interval"] == "conformal" and not model.fitted_.has_conformal(coverage):
        raise ExportError(
            f"{exported}: it is of another model: its intervals are conformal with coverage "
            f"{coverage:g}, and this model held out too few rows for that ({len(scores)}); export "
            "the model again."
        )
