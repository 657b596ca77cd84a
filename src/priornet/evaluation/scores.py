"""Every score of an evaluation as one dictionary of plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from priornet import metrics
from priornet.evaluation.numbers import json_number
from priornet.metrics import LEVELS

__all__ = ["Intervals", "interval_scores", "level_name", "ranking_scores", "target_scores"]

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
