"""Tensors by name: where to evaluate, and what is done to all of them at once."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from _beliefs import random_normal, random_tril, random_uniform

Tensors = dict[str, Tensor]
Shape = tuple[int, ...]

MEMBERS = 6  # more than the largest K, so that the members' means span every direction


def spd(k_dim: int, batch: Shape, seed: int) -> Tensor:
    tril = random_tril(k_dim, batch, seed)
    return tril @ tril.mT


def points(k_dim: int, batch: Shape) -> Tensors:
    """Points at which to evaluate: a target, a matrix, positive numbers, probabilities."""
    return {
        "y": random_normal((*batch, k_dim), 900),
        "matrix": spd(k_dim, batch, 910),
        "positive": random_uniform(0.5, 2.0, (*batch, k_dim), 920),
        "probability": random_uniform(0.05, 0.95, batch, 930),
        "fraction": random_uniform(0.05, 0.95, (*batch, k_dim), 940),
    }


def cast(tensors: Tensors, *args: Any) -> Tensors:
    """``.to(...)`` on each."""
    return {name: value.to(*args) for name, value in tensors.items()}


def select(tensors: Tensors, index: tuple[int, ...], lead: dict[str, int] | int = 0) -> Tensors:
    """One batch element of each."""
    return {
        name: value[(slice(None),) * (lead if isinstance(lead, int) else lead[name]) + index]
        for name, value in tensors.items()
    }
