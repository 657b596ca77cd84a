"""Networks of a stack: which fold each learns, with which settings, and its seed."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from priornet.nn import Stack
from priornet_paper.uci.config import Paper, Setting
from priornet_paper.uci.folds import Fold

__all__ = ["Part", "Task", "members_of", "seed_of"]

Part = Literal["inner", "train"]
"""Rows of a training fold: those that settings are tried on, or all."""


class Task(NamedTuple):
    """One network: which fold it learns, how, and which of several with the same settings it is."""

    place: int
    setting: Setting
    member: int = 0


def members_of(stack: Stack, place: int, n_members: int) -> Stack:
    """One fold's ensemble, from a stack that has one fold's after the other's."""
    return stack.select(range(place * n_members, (place + 1) * n_members))


What = Literal["network", "outside", "noise"]
# The numbers with which the committed results were made. Inputs drawn outside share the seed of
# the second network: other draws from it, so that nothing depends on it.
_NUMBERS: dict[What, int] = {"network": 7, "outside": 7, "noise": 5}


def seed_of(config: Paper, fold: Fold, member: int, what: What = "network") -> int:
    """A seed per fold and member; settings of one fold share theirs, for a fair comparison."""
    numbers = [config.seed, fold.number, member, _NUMBERS[what]]
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
