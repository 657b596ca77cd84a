"""Compare an exported file with its model, row by row.

A difference is divided by the value itself; for a mean or an end of an interval by at least the
standard deviation of the row (a mean may be zero), for an entropy by at least 1 nat. Knowledge
uncertainty below the resolution of single precision counts as that. Scores and verdicts jump: a
row within the tolerance of a limit may fall on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.prediction import Prediction, PredictionError
from priornet.export.exported import Outputs, open_exported
from priornet.export.interface import ExportError, named
from priornet.tables.read import TableReader, check_columns, convert_known_numbers, located

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-4
"""Largest relative difference that counts as equal."""
_LOCATIONS = ("mean", "lower", "upper")
_KNOWLEDGE = ("knowledge_variance", "mutual_information", "epkl")
_PER_ROW = ("entropy", "information", "epkl", "in_domain", "verdict")


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
    reference, record = found.reference, found.uncertainty
    square = np.square(found.targets.scaling.scale)
    parts = (record.knowledge_variance, record.data_variance)
    knowledge, data = ((_as_matrix(part) / square).mean(-1) for part in parts)
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
