"""Everything that is measured of one model on one fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet import metrics
from priornet_paper.runs.scores import accuracy, measures

_KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
_CURVES = ("total_variance", "variance_of_mean")  # drawn as rejection curves
_FRACTIONS = torch.linspace(0, 1, 51, dtype=torch.float64)


def _known(belief: Any) -> dict[str, Tensor | None]:
    """Every measure; None for those that a single Gaussian has not: zeros would score as chance."""
    found: dict[str, Tensor | None] = {**measures(belief)}
    if bool((found["variance_of_mean"] == 0).all()):
        found |= dict.fromkeys(_KNOWLEDGE)
    return found


@torch.no_grad()
def score(belief: Any, y: NDArray[np.float64], foreign: Any) -> dict[str, Any]:
    """Scores of a belief about test rows, one target, in units of the target.

    Args:
        belief: Batch shape ``(N,)``.
        y: Targets, ``(N,)``.
        foreign: Belief of the same model about out-of-domain inputs.
    """
    target = torch.from_numpy(y)
    error = (belief.predictive().mean.squeeze(-1) - target) ** 2
    inside, outside = _known(belief), _known(foreign)
    return {
        **accuracy(belief, target),
        "prr": {
            name: None if u is None else float(metrics.prediction_rejection_ratio(error, u))
            for name, u in inside.items()
        },
        "ood_auc": {
            name: None if u is None else _auc(u, outside[name]) for name, u in inside.items()
        },
        "rejection": _curves(error, inside),
    }


def _auc(inside: Tensor, outside: Tensor | None) -> float:
    assert outside is not None
    return float(metrics.ood_auroc(inside, outside))


def _curves(error: Tensor, inside: dict[str, Tensor | None]) -> dict[str, list[float]]:
    """Share of the error left at shares rejected, for the curves that are drawn."""
    found: dict[str, Tensor] = {}
    fraction = _FRACTIONS
    for name in _CURVES:
        values = inside[name]
        if values is None:
            continue
        curve = metrics.rejection_curve(error, values)
        found |= {"oracle": curve.oracle, "random": curve.random, name: curve.uncertainty}
        fraction = curve.fraction
    at, known = _FRACTIONS.numpy(), fraction.numpy()

    def sampled(curve: Tensor) -> list[float]:
        return [round(v, 5) for v in np.interp(at, known, (curve / curve[0]).numpy()).tolist()]

    return {"fraction": at.tolist()} | {name: sampled(curve) for name, curve in found.items()}
