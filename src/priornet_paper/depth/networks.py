"""The network that an objective wants, with its first weights."""

from __future__ import annotations

from typing import Any

from priornet.depth import DepthError
from priornet.nn import DenseDepth
from priornet.nn.dense_depth.efficientnet import EfficientNetLite0
from priornet_paper.depth.methods import Objective

__all__ = ["build"]


def build(objective: Objective, weights: str | None) -> DenseDepth:
    """A network that has learnt nothing of depth yet.

    Args:
        objective: What it is to learn, and its settings.
        weights: ImageNet weights of its encoder, as in ``Sources``; None for random ones.

    Raises:
        DepthError: Weights or widths, which the user chose, that do not fit.
    """
    config = objective.config
    encoder: Any = config.encoder
    try:
        network = DenseDepth(
            objective.make_head,
            encoder,
            n_decoder=config.n_decoder,
            pretrained=weights,
            early_split=config.early_split and objective.recipe.method == "MD-EnD",
            dropout=0.0 if objective.uses_teachers else config.dropout,
        )
    except (OSError, ValueError) as error:  # of weights and widths that the user chose
        raise DepthError(str(error)) from error
    if config.norm == "frozen" and isinstance(network.encoder, EfficientNetLite0):
        network.encoder.fold_norms()  # statistics that never change need no layers of their own
    return network
