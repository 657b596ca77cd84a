"""Which rows are for testing, training and choosing; and the table in each fold's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Fold", "FoldStack", "k_folds", "make_fold"]

Ints = NDArray[np.int64]


class Fold(NamedTuple):
    """Row numbers of one split."""

    number: int
    test: Ints
    train: Ints
    """All others."""
    inner: Ints
    """Rows of ``train`` on which settings are tried."""
    validation: Ints
    """The rest of ``train``, on which they are compared."""


def k_folds(n_rows: int, n_folds: int, seed: int) -> list[Ints]:
    """Test rows of each fold: a shuffled table cut into pieces that differ by one row at most."""
    order = np.random.RandomState(seed).permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def make_fold(
    number: int, test: Ints, n_rows: int, validation_share: float = 0.0, seed: int = 0
) -> Fold:
    """Training rows of a split, with validation rows drawn among them."""
    train = np.setdiff1d(np.arange(n_rows), test)
    order = np.random.RandomState([seed, number]).permutation(len(train))
    n_held = round(validation_share * len(train))
    return Fold(number, test, train, np.sort(train[order[n_held:]]), np.sort(train[order[:n_held]]))


@dataclass(frozen=True)
class FoldStack:
    """The whole table once per fold, standardised by that fold's training rows, end to end."""

    folds: list[Fold]
    inputs: Tensor
    """``(F N, D)``."""
    targets: Tensor
    """``(F N, 1)``."""
    shift: list[float]
    """Mean of the targets in each fold's training rows."""
    scale: list[float]
    """Their standard deviation."""

    @classmethod
    def of(
        cls,
        inputs: NDArray[np.float64],
        targets: NDArray[np.float64],
        folds: Sequence[Fold],
        device: str,
    ) -> FoldStack:
        """Standardise a table, inputs ``(N, D)`` and targets ``(N,)``, for every fold."""
        x, y = [], []
        shift, scale = [], []
        for fold in folds:
            mean, spread = inputs[fold.train].mean(0), inputs[fold.train].std(0)
            x.append((inputs - mean) / np.where(spread > 0, spread, 1.0))
            shift.append(float(targets[fold.train].mean()))
            scale.append(float(targets[fold.train].std()))
            y.append((targets - shift[-1]) / scale[-1])

        def tensor(parts: list[NDArray[np.float64]]) -> Tensor:
            return torch.as_tensor(np.concatenate(parts), dtype=torch.float32, device=device)

        return cls(list(folds), tensor(x), tensor(y).unsqueeze(-1), shift, scale)

    @property
    def n_rows(self) -> int:
        """Rows of the table, N."""
        return len(self.inputs) // len(self.folds)

    def rows(self, place: int, which: Ints) -> Tensor:
        """Numbers of a fold's rows in the tensors; ``place`` counts the folds of this stack."""
        return torch.from_numpy(which) + place * self.n_rows
