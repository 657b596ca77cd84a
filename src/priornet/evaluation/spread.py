"""Uncertainty of rows: standard deviations per target, and every measure of the whole row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.distributions.information import ensemble_information

__all__ = ["MEASURES", "PARTS", "Spread", "joint", "spread_of"]

FloatArray = NDArray[np.float64]

PARTS = ("total", "data", "knowledge")
MEASURES = {
    "total_entropy": "total, entropy",
    "total_variance": "total, variance",
    "expected_entropy": "data, expected entropy",
    "mutual_information": "knowledge, mutual information",
    "epkl": "knowledge, expected pairwise KL",
    "variance_of_mean": "knowledge, variance of the mean",
}
"""Names of the measures in results, and in words."""


@dataclass(frozen=True)
class Spread:
    """Standard deviations in units of the target, ``(N, K)``, and measures of the whole row.

    Attributes:
        total: Total uncertainty.
        data: Its data part.
        knowledge: Its knowledge part.
        measures: Every measure by its name in results, each ``(N,)``; larger is less certain. Over
            several targets variances are in units of each target's own variance, summed.
    """

    total: FloatArray
    data: FloatArray
    knowledge: FloatArray
    measures: dict[str, FloatArray]


def spread_of(prediction: Any, scale: FloatArray, *, with_measures: bool = True) -> Spread:
    """Collect the uncertainty of rows.

    Args:
        prediction: A :class:`priornet.estimators.Prediction` of the rows.
        scale: Unit of each target in measures of the whole row, ``(K,)``.
        with_measures: Whether to give the measures of the whole row as well.
    """
    record = prediction.uncertainty
    variance = {part: _by_target(getattr(record, f"{part}_variance")) for part in PARTS}
    deviation = {part: np.sqrt(value) for part, value in variance.items()}
    if not with_measures:
        return Spread(**deviation, measures={})
    data_entropy, information = record.data_entropy, record.mutual_information
    if information is None:
        information = ensemble_information(prediction.belief)
    total_entropy = record.total_entropy
    if total_entropy is None:
        total_entropy = data_entropy + information
    measures = {
        "total_entropy": total_entropy,
        "total_variance": joint(deviation["total"], scale) ** 2,
        "expected_entropy": data_entropy,
        "mutual_information": information,
        "epkl": record.epkl,
        "variance_of_mean": joint(deviation["knowledge"], scale) ** 2,
    }
    return Spread(**deviation, measures={n: np.asarray(v, float) for n, v in measures.items()})


def joint(deviation: FloatArray, scale: FloatArray) -> FloatArray:
    """One standard deviation per row, ``(N,)``: itself for one target, root of the trace for many.

    Targets of different units are brought to their own scale before they are added.
    """
    if deviation.shape[1] == 1:
        return deviation[:, 0]
    return np.sqrt(((deviation / scale) ** 2).sum(1))


def _by_target(variance: FloatArray) -> FloatArray:
    return np.asarray(variance, np.float64).reshape(len(variance), -1)
