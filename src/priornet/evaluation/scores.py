"""Every score of an evaluation as one dictionary of plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet import metrics
from priornet.distributions.ensemble import ensemble_information
from priornet.evaluation.numbers import json_number
from priornet.metrics import LEVELS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Central intervals at every coverage of :data:`priornet.metrics.LEVELS`.

    Attributes:
        lower: Lower ends, shape ``(L, N, K)``; nan at a level that the model cannot give.
        upper: Upper ends, same shape.
    """

    lower: FloatArray
    upper: FloatArray


def level_name(level: float) -> str:
    """How a coverage is called in results: ``"0.9"``."""
    return f"{level:g}"


def target_scores(
    names: Sequence[str],
    y: FloatArray,
    prediction: FloatArray,
    area: FloatArray,
    intervals: Mapping[str, Intervals],
) -> dict[str, Any]:
    """Scores of each target by itself."""
    rmse = metrics.rmse(torch.from_numpy(prediction), torch.from_numpy(y))
    return {
        name: {
            "rmse": json_number(rmse[k]),
            "miscalibration_area": json_number(area[k]),
            **interval_scores(y[:, k : k + 1], intervals, k),
        }
        for k, name in enumerate(names)
    }


def interval_scores(
    y: FloatArray, intervals: Mapping[str, Intervals], target: int | None = None
) -> dict[str, Any]:
    """Coverage and mean width by method and level; over all targets where ``target`` is None."""
    pick = slice(None) if target is None else slice(target, target + 1)
    coverage: dict[str, Any] = {}
    width: dict[str, Any] = {}
    for method, ends in intervals.items():
        coverage[method], width[method] = {}, {}
        for i, level in enumerate(LEVELS):
            lower, upper = ends.lower[i][:, pick], ends.upper[i][:, pick]
            if np.isnan(lower).any():
                continue
            inside = metrics.coverage(*(torch.from_numpy(a) for a in (lower, upper, y)))
            share = float(inside.share.mean())
            coverage[method][level_name(level)] = {
                "share": share,
                # Targets of one row rise and fall together, so that rows are what counts.
                "standard_error": float(np.sqrt(share * (1 - share) / len(y))),
            }
            width[method][level_name(level)] = json_number(np.mean(upper - lower))
    return {"coverage": coverage, "interval_width": width}


def ranking_scores(
    error: FloatArray,
    measures: Mapping[str, FloatArray],
    measures_ood: Mapping[str, FloatArray] | None,
) -> dict[str, Any]:
    """PRR of every measure, and the OOD AUC where there are out-of-domain rows."""
    errors = torch.from_numpy(error)
    prr = {
        name: json_number(metrics.prediction_rejection_ratio(errors, torch.from_numpy(values)))
        for name, values in measures.items()
    }
    if measures_ood is None:
        return {"prr": prr}
    auc = {
        name: json_number(
            metrics.ood_auroc(torch.from_numpy(values), torch.from_numpy(measures_ood[name]))
        )
        for name, values in measures.items()
    }
    return {"prr": prr, "ood_auc": auc}


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
