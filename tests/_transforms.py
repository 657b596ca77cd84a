"""Shared parts of the tests of torch.func and torch.compile."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from _beliefs import DIMENSIONS
from _contract import BATCHES, LOSSES, each, every, settings, spread
from priornet.nn import MLP, GaussianHead, GaussianMixtureHead, NormalWishartHead

MAPPED = 3  # size of an axis that a transform takes away: what it leaves has each batch shape
EVERY_LOSS = every(settings(LOSSES))
# Slower questions about a loss, whose gradients other tests take in every batch shape.
EVERY_LOSS_AND_K = every(spread(LOSSES))
EVERY_K = each("k_dim", DIMENSIONS)
EVERY_BATCH = each("batch", BATCHES)

MODELS = {
    "gaussian": lambda k: nn.Sequential(MLP(3, 8), GaussianHead(8, k, init_gain=1.0)),
    "nw": lambda k: nn.Sequential(MLP(3, 8), NormalWishartHead(8, k, init_gain=1.0)),
    "diagonal": lambda k: nn.Sequential(
        MLP(3, 8), NormalWishartHead(8, k, covariance="diagonal", init_gain=1.0)
    ),
    "mixture": lambda k: nn.Sequential(
        MLP(3, 8), GaussianMixtureHead(8, k, n_members=3, init_gain=1.0)
    ),
}


def tolerance(dtype) -> dict[str, Any]:
    return {"rel": 1e-9, "abs": 1e-10} if dtype == torch.float64 else {"rel": 1e-4, "abs": 1e-4}
