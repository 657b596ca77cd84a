"""Whether an exported file says what its model says, row by row.

The yardstick of an error is the value itself; of a mean or an end of an interval at least the
standard deviation of the row (a mean may be zero), of an entropy at least 1 nat. Knowledge
uncertainty far below what single precision tells from none counts as that. Counts and words jump:
there, what uncertainties within the tolerance would have made of a row is right too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.estimators.base import BaseRegressor
from priornet.estimators.prediction import Prediction
from priornet.export.exported import Outputs
from priornet.export.interface import ExportError

__all__ = ["TOLERANCE", "Comparison", "Jumping", "Worst", "outputs_of"]

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-4
"""Largest relative difference that counts as equal."""
_LOCATIONS = ("mean", "lower", "upper")
_KNOWLEDGE = ("knowledge_variance", "mutual_information", "epkl")


@dataclass(frozen=True)
class Jumping:
    """An output that jumps where what it depends on passes a limit.

    Attributes:
        value: Of each row, numbers or texts.
        others: What it is when that is a little smaller, or larger.
    """

    value: NDArray[Any]
    others: tuple[NDArray[Any], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the value."""
        return self.value.shape

    def errors(self, found: NDArray[Any]) -> FloatArray:
        """0 where it is one of these, or between them; 1 for another text."""
        if self.value.dtype == object:
            same = np.any([found == one for one in (self.value, *self.others)], axis=0)
            return np.where(same, 0.0, 1.0)
        low, high = (f.reduce([self.value, *self.others]) for f in (np.minimum, np.maximum))
        nearest = np.where(np.isnan(found), self.value, np.clip(found, low, high))
        return _relative(nearest, found, np.abs(self.value))


Expected = Mapping[str, FloatArray | Jumping]


@dataclass(frozen=True)
class Worst:
    """Where an output differs most: the row from 0, and the target's number."""

    error: float
    row: int
    target: int
    expected: float | str
    found: float | str


@dataclass
class Comparison:
    """The largest difference of each output over all rows.

    Attributes:
        worst: Per output.
        n_rows: How many rows were compared.
        least_knowledge: Smaller knowledge uncertainty, as a share of the total variance and in
            nats, counts as this much.
    """

    worst: dict[str, Worst] = field(default_factory=dict[str, Worst])
    n_rows: int = 0
    least_knowledge: float = 1e-8

    @property
    def output(self) -> str:
        """The output that differs most."""
        return max(self.worst, key=lambda name: self.worst[name].error)

    @property
    def holds(self) -> bool:
        """Whether every difference is within the tolerance."""
        return self.worst[self.output].error <= TOLERANCE

    def add(self, expected: Expected, found: Outputs) -> None:
        """Compare some more rows."""
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
        """Relative differences; 0 where both are the same infinity or nan, else infinite there."""
        scale = np.abs(expected)
        if name in _LOCATIONS:
            scale = np.maximum(scale, deviations)
        elif name.endswith("entropy"):
            scale = np.maximum(scale, 1.0)
        elif name in _KNOWLEDGE:
            is_variance = name.endswith("variance")
            scale = np.maximum(
                scale, self.least_knowledge * (deviations**2 if is_variance else 1.0)
            )
        return _relative(expected, found, scale)

    def _note(
        self, name: str, errors: FloatArray, expected: NDArray[Any], found: NDArray[Any]
    ) -> None:
        """Keep the place if it is worse than those before it."""
        row, target = (int(i) for i in np.unravel_index(int(np.argmax(errors)), errors.shape))
        worst = self.worst.get(name)
        if worst is None or errors[row, target] > worst.error:
            right, given = (v.reshape(len(v), -1)[row, target] for v in (expected, found))
            if expected.dtype != object:
                right, given = float(right), float(given)
            place = self.n_rows + row
            self.worst[name] = Worst(float(errors[row, target]), place, target, right, given)


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
    """Score and word of each row, and what a little more or less uncertainty would make of it."""
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
