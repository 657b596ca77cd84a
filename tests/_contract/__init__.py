"""One description of every distribution and loss, which the contract tests run over.

A case keeps the parameters apart from the object they make, so that the same case can be cast,
sliced, expanded, transformed and differentiated. Parameters are ``(*batch, *event)``, or
``(M, *batch, *event)`` where ``lead`` is 1.
"""

from __future__ import annotations

from _beliefs import BATCHES
from _contract.combinations import each, every, settings, spread
from _contract.distributions import DISTRIBUTIONS, MAPPED, DistributionCase, answers
from _contract.losses import LOSSES, LossCase
from _contract.tensors import MEMBERS, Tensors, cast, points, select

__all__ = [
    "BATCHES",
    "DISTRIBUTIONS",
    "LOSSES",
    "MAPPED",
    "MEMBERS",
    "DistributionCase",
    "LossCase",
    "Tensors",
    "answers",
    "cast",
    "each",
    "every",
    "points",
    "select",
    "settings",
    "spread",
]
