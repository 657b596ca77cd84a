"""What every experiment measures of a belief about one target: how good, and how unsure."""

from __future__ import annotations

from typing import Any

import torch
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
