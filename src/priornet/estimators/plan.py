"""How a table is split and trained on: what "auto" means, and the rows each network sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from priornet.training.stack_training import Auto, Plan

__all__ = [
    "Auto",
    "Split",
    "check_count",
    "make_plan",
    "network_seeds",
    "split_rows",
    "validation_split",
    "weight_decay_for",
]


def check_count(name: str, value: object, other: object) -> None:
    """A whole number of at least 1, or the one other value that is allowed."""
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    if not whole and value != other:
        raise ValueError(
            f"`{name}` must be a whole number of at least 1, or {other!r}; got {value!r}."
        )


SMALL = 40
"""Networks with fewer training rows see all of them at every step."""
_CALIBRATION = (100, 1000)  # rows from which calibration rows are held out; most of them
# Fewer rows than these say nothing about the best epoch, and a network that trains on is sure of
# nonsense; but at most a share of the table.
_LEAST_HELD, _MOST_HELD = 4, 0.3


def make_plan(
    n_rows: int, epochs: int | Auto, batch_size: int | Auto, patience: int | None
) -> Plan:
    """Decide what was left to us.

    Batches of a thirtieth of the rows, 32 to 512; passes enough for some 8000 steps, 40 to 250.
    """
    if n_rows < SMALL:
        # One batch of everything: weighting a row is then the same as repeating it.
        size = SMALL
    elif batch_size == "auto":
        size = min(max(2 ** round(math.log2(n_rows / 30)), 32), 512)
    else:
        size = batch_size
    n_epochs = min(max(round(8000 * size / n_rows), 40), 250) if epochs == "auto" else epochs
    return Plan(n_epochs, size, patience)


def weight_decay_for(n_rows: int, weight_decay: float | Auto) -> float:
    """``"auto"``: a fifth per row, as of a Gaussian prior on weights that rows outvote."""
    return 0.2 / n_rows if weight_decay == "auto" else weight_decay


@dataclass(frozen=True)
class Split:
    """Row numbers to train on, and to calibrate on."""

    train: Tensor
    calibration: Tensor


def split_rows(
    n_rows: int, calibration_fraction: float | Auto, rng: np.random.RandomState
) -> Split:
    """Hold out calibration rows: by default a tenth, at most 1000, none of fewer than 100 rows."""
    least, most = _CALIBRATION
    if calibration_fraction == "auto":
        n_held = min(n_rows // 10, most) if n_rows >= least else 0
    else:
        if not 0 <= calibration_fraction < 1:
            raise ValueError(
                "`calibration_fraction` must be 'auto' or lie in [0, 1); got "
                f"{calibration_fraction}."
            )
        n_held = round(n_rows * calibration_fraction)
    if n_held == 0:  # no draw: the rows keep their order
        return Split(torch.arange(n_rows), torch.arange(0))
    order = torch.from_numpy(rng.permutation(n_rows))
    return Split(order[n_held:].sort().values, order[:n_held].sort().values)


def network_seeds(rng: np.random.RandomState, n: int) -> list[int]:
    """Seeds for networks, one each."""
    return [int(seed) for seed in rng.randint(0, 2**31 - 1, size=n)]


def validation_split(
    rows: Tensor, fraction: float, seeds: Sequence[int]
) -> tuple[list[Tensor], list[Tensor] | None]:
    """For each network its own training and validation rows.

    Every network holds out others, so that together they have trained on every row. Of few rows it
    holds out more than the fraction: 4, or three in ten.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"`validation_fraction` must lie in [0, 1); got {fraction:g}.")
    n_held = round(len(rows) * fraction)
    if fraction > 0:
        n_held = max(n_held, min(_LEAST_HELD, int(_MOST_HELD * len(rows))))
    if n_held == 0:
        return [rows] * len(seeds), None
    train: list[Tensor] = []
    held: list[Tensor] = []
    for seed in seeds:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed + 1))
        held.append(rows[order[:n_held]])
        train.append(rows[order[n_held:].sort().values])
    return train, held
