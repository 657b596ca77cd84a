"""Uncertainty of rows, and every score of an evaluation, as arrays and plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet import metrics
from priornet.distributions import TransformedBelief, ensemble_information
from priornet.evaluation.numbers import json_number
from priornet.metrics import LEVELS

FloatArray = NDArray[np.float64]

LEVEL_NAMES = tuple(f"{level:g}" for level in LEVELS)
"""Coverages as results name them: ``"0.9"``."""
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
    """Uncertainty of N rows of K targets."""

    total: FloatArray
    """Standard deviations in units of the target, ``(N, K)``."""
    data: FloatArray
    knowledge: FloatArray
    rows: dict[str, FloatArray]
    """One standard deviation per row by part, ``(N,)``: see :func:`joint`."""
    measures: dict[str, FloatArray]
    """Every measure by its name in results, each ``(N,)``; larger is less certain. Over several
    targets variances are in units of each target's own variance, summed."""


def spread_of(prediction: Any, scale: FloatArray, *, with_measures: bool = True) -> Spread:
    """Collect the uncertainty of rows.

    Args:
        prediction: A :class:`priornet.estimators.Prediction` of the rows.
        scale: Unit of each target in numbers of the whole row, ``(K,)``.
        with_measures: Give the measures of the whole row as well.
    """
    record = prediction.uncertainty
    variance = {part: np.asarray(getattr(record, f"{part}_variance"), float) for part in PARTS}
    deviation = {part: np.sqrt(v.reshape(len(v), -1)) for part, v in variance.items()}
    rows = {part: joint(value, scale) for part, value in deviation.items()}
    if not with_measures:
        return Spread(**deviation, rows=rows, measures={})
    data_entropy, information = record.data_entropy, record.mutual_information
    if information is None:
        belief: Any = prediction.belief
        if isinstance(belief, TransformedBelief):  # a map changes no information
            belief = belief.base
        information = ensemble_information(belief)
    total_entropy = record.total_entropy
    if total_entropy is None:
        total_entropy = data_entropy + information
    measures = {
        "total_entropy": total_entropy,
        "total_variance": rows["total"] ** 2,
        "expected_entropy": data_entropy,
        "mutual_information": information,
        "epkl": record.epkl,
        "variance_of_mean": rows["knowledge"] ** 2,
    }
    measures = {name: np.asarray(values, float) for name, values in measures.items()}
    return Spread(**deviation, rows=rows, measures=measures)


def joint(deviation: FloatArray, scale: FloatArray) -> FloatArray:
    """Give one standard deviation per row, ``(N,)``: of the one target, or the root of the trace.

    Targets of different units are brought to their own scale before they are added.
    """
    if deviation.shape[1] == 1:
        return deviation[:, 0]
    return np.sqrt(((deviation / scale) ** 2).sum(1))


@dataclass(frozen=True)
class Intervals:
    """Central intervals at every coverage of :data:`priornet.metrics.LEVELS`."""

    lower: FloatArray
    """Lower ends, shape ``(L, N, K)``; nan at a level that the model cannot give."""
    upper: FloatArray


def target_scores(
    names: Sequence[str],
    y: FloatArray,
    prediction: FloatArray,
    area: FloatArray,
    intervals: Mapping[str, Intervals],
) -> dict[str, Any]:
    """Score each target by itself; ``area`` is its miscalibration area."""
    rmse = metrics.rmse(torch.from_numpy(prediction), torch.from_numpy(y))
    return {
        name: {
            "rmse": json_number(rmse[k]),
            "miscalibration_area": json_number(area[k]),
            **interval_scores(y[:, [k]], intervals, [k]),
        }
        for k, name in enumerate(names)
    }


def interval_scores(
    y: FloatArray, intervals: Mapping[str, Intervals], targets: Any = slice(None)
) -> dict[str, Any]:
    """Score coverage and mean width by method and level, over the targets at given places."""
    coverage: dict[str, Any] = {}
    width: dict[str, Any] = {}
    for method, ends in intervals.items():
        coverage[method], width[method] = {}, {}
        for level, low, high in zip(LEVEL_NAMES, ends.lower, ends.upper, strict=True):
            lower, upper = low[:, targets], high[:, targets]
            if np.isnan(lower).any():
                continue
            inside = metrics.coverage(*(torch.from_numpy(a) for a in (lower, upper, y)))
            share = float(inside.share.mean())
            coverage[method][level] = {
                "share": share,
                # Targets of one row rise and fall together, so that rows are what counts.
                "standard_error": float(np.sqrt(share * (1 - share) / len(y))),
            }
            width[method][level] = json_number(np.mean(upper - lower))
    return {"coverage": coverage, "interval_width": width}


def ranking_scores(error: FloatArray, spread: Spread, spread_ood: Spread | None) -> dict[str, Any]:
    """Score every measure: its PRR, and its OOD AUC where there are out-of-domain rows."""
    errors = torch.from_numpy(error)
    measures = {name: torch.from_numpy(values) for name, values in spread.measures.items()}
    prr = {
        name: json_number(metrics.prediction_rejection_ratio(errors, values))
        for name, values in measures.items()
    }
    if spread_ood is None:
        return {"prr": prr}
    auc = {
        name: json_number(metrics.ood_auroc(values, torch.from_numpy(spread_ood.measures[name])))
        for name, values in measures.items()
    }
    return {"prr": prr, "ood_auc": auc}
