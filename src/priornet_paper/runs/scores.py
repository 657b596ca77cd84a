"""Scores of a belief about one target, the same for every experiment on tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet import metrics
from priornet.distributions import GaussianEnsemble, ensemble_information
from priornet.uncertainty import uncertainty

SCORES = ("rmse", "nll", "crps", "coverage90")
_KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
_CURVES = ("total_variance", "variance_of_mean")  # drawn as rejection curves
_FRACTIONS = np.linspace(0, 1, 51)

Measures = Mapping[str, Tensor | None]
"""Every measure by its name in results, ``(N,)`` each; None if the model does not have it."""


@torch.no_grad()
def score(belief: Any, y: NDArray[np.float64], ood: Any) -> dict[str, Any]:
    """Compute all scores of a belief about test rows, one target, in units of the target.

    Args:
        belief: Batch shape ``(N,)``.
        y: Targets, ``(N,)``.
        ood: Belief of the same model about out-of-domain inputs.
    """
    target = torch.from_numpy(y)
    error = (belief.predictive().mean.squeeze(-1) - target) ** 2
    inside, outside = _known(belief), _known(ood)
    return {
        **accuracy(belief, target),
        **ranking(error, inside, outside),
        "rejection": _curves(error, inside),
    }


def accuracy(belief: Any, target: Tensor) -> dict[str, float]:
    """Compute scores of the predictive; lower is better but for the coverage.

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
    """Compute every measure; an ensemble's information by quadrature.

    The knowledge measures of a single Gaussian are zero.
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


def _known(belief: Any) -> Measures:
    """Compute every measure, without the zeros of a single Gaussian: they would score as chance."""
    found = measures(belief)
    has_knowledge = bool((found["variance_of_mean"] != 0).any())
    return {n: u if has_knowledge or n not in _KNOWLEDGE else None for n, u in found.items()}


def ranking(error: Tensor, inside: Measures, outside: Measures) -> dict[str, Any]:
    """Compute by each measure the PRR of the errors ``(N,)``, and the AUC of OOD inputs."""
    prr: dict[str, float | None] = dict.fromkeys(inside)
    ood_auc: dict[str, float | None] = dict.fromkeys(inside)
    for name, values in inside.items():
        others = outside[name]
        if values is not None and others is not None:
            prr[name] = float(metrics.prediction_rejection_ratio(error, values))
            ood_auc[name] = float(metrics.ood_auroc(values, others))
    return {"prr": prr, "ood_auc": ood_auc}


def _curves(error: Tensor, inside: Measures) -> dict[str, list[float]]:
    """Compute the share of the error left at shares rejected, for the curves that are drawn."""
    found: dict[str, list[float]] = {"fraction": _FRACTIONS.tolist()}
    for name in _CURVES:
        values = inside[name]
        if values is None:
            continue
        curve = metrics.rejection_curve(error, values)
        at = curve.fraction.numpy()
        for key, left in (
            ("oracle", curve.oracle),
            ("random", curve.random),
            (name, curve.uncertainty),
        ):
            sampled = np.interp(_FRACTIONS, at, (left / left[0]).numpy())
            found[key] = [round(share, 5) for share in sampled.tolist()]
    return found
