"""A table ready for training: inputs and targets in standardised units, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.data.preprocessing import TablePreprocessor
from priornet.estimators.plan import SMALL, Split
from priornet.estimators.targets import FloatArray, TargetColumns

__all__ = ["Prepared", "standardised"]


@dataclass
class Prepared:
    """A table ready for training, in standardised units."""

    preprocessor: TablePreprocessor
    columns: TargetColumns
    inputs: Tensor
    """``(N, D)``."""
    targets: Tensor
    """``(N, K)``."""
    weight: Tensor
    """``(N,)``, of mean 1 over the training rows."""
    split: Split
    rng: np.random.RandomState


def standardised(
    preprocessor: TablePreprocessor,
    columns: TargetColumns,
    table: Any,
    values: FloatArray,
    weight: FloatArray,
    split: Split,
    rng: np.random.RandomState,
    device: str,
) -> Prepared:
    """Checked rows and targets ``(N, K)`` in the units of a preprocessor and of target columns."""
    # Tables of a few rows afford double precision: weighting and repeating a row then agree.
    dtype = torch.float64 if len(values) < SMALL else torch.float32
    shift, scale = columns.scaling

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, dtype=dtype, device=device)

    return Prepared(
        preprocessor,
        columns,
        tensor(preprocessor.transform(table)),
        tensor((values - shift) / scale),
        tensor(weight),
        split,
        rng,
    )
