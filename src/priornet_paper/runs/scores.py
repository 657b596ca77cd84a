"""What every experiment measures of a belief about one target: how good, and how unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet import metrics
from priornet.distributions import GaussianEnsemble, ensemble_information
from priornet.uncertainty import uncertainty

SCORES = ("rmse", "nll", "crps", "coverage90")


def accuracy(belief: Any, target: Tensor) -> dict[str, float]:
    """Scores of the predictive, in units of the target; lower is better but for the coverage.

    Args:
        belief: Batch shape ``(N,)``.
        target: Shape ``(N,)``.
    """
    predictive = belief.predictive().univariate()
    place = predictive.cdf(target)
    return {
        "rmse": float(metrics.rmse(predictive.mean, target)),
        "nll": float(metrics.nll(predictive, target).mean()),
        "crps": float(metrics.crps(predictive, target).mean()),
        "coverage90": float(((place >= 0.05) & (place <= 0.95)).double().mean()),
    }


def measures(belief: Any) -> dict[str, Tensor]:
    """Every measure by its name in results, ``(N,)`` each; an ensemble's information by quadrature.

    A single Gaussian is sure of itself: its knowledge measures are zero.
    """
    record = uncertainty(belief)
    total, information = record.total_entropy, record.mutual_information
    if isinstance(belief, GaussianEnsemble):
        information = torch.from_numpy(ensemble_information(belief)).to(record.data_entropy)
        total = record.data_entropy + information
    assert total is not None
    assert information is not None
    return {
        "total_entropy": total,
        "total_variance": record.total_variance.squeeze(-1),
        "expected_entropy": record.data_entropy,
        "mutual_information": information,
        "epkl": record.epkl,
        "variance_of_mean": record.knowledge_variance.squeeze(-1),
    }


# -- one model on the rows of a fold ---------------------------------------------------------------

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
