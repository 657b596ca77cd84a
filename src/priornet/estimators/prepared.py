"""A table ready for training: inputs and targets in standardised units, as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.estimators.plan import SMALL, Split
from priornet.estimators.verdict import FEWEST
from priornet.notices import warn_user
from priornet.tables.column_summaries import TableWarning
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import num_rows, take_rows
from priornet.tables.target_columns import FloatArray, TargetColumns

__all__ = ["Prepared", "chosen_device", "fit_preprocessor", "standardised"]


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


def chosen_device(device: Any) -> torch.device:
    """Find the device that a name stands for, and see that it can be used here.

    Args:
        device: ``"auto"`` for the GPU where there is one and the processor elsewhere, or a name
            that torch knows, such as ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    """
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f'`device` must be "auto", "cpu", "cuda" or "cuda:1", for example; got {device!r}.'
        ) from error
    try:
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        n_found = torch.cuda.device_count()
        seen = {0: "no GPU", 1: "one GPU"}.get(n_found, f"{n_found} GPUs")
        raise ValueError(
            f"`device` is {str(device)!r}, which cannot be used here (torch {torch.__version__} "
            f'sees {seen}): give "cpu", or "auto" for the GPU where there is one.'
        ) from error
    return found


def fit_preprocessor(
    table: Any, weight: FloatArray | None, train: NDArray[np.int64]
) -> TablePreprocessor:
    """Learn columns from training rows, and summarise them over all rows.

    Args:
        table: All rows, which messages count.
        weight: Weight per row, or None.
        train: The rows to learn from.
    """
    whole = TablePreprocessor().fit(table, weight)
    if len(train) == num_rows(table):
        return whole
    own = None if weight is None else weight[train]
    learned = TablePreprocessor().fit(take_rows(table, train), own)
    learned.summaries_ = whole.summaries_
    return learned


def standardised(
    preprocessor: TablePreprocessor,
    columns: TargetColumns,
    table: Any,
    values: FloatArray,
    weight: FloatArray,
    split: Split,
    rng: np.random.RandomState,
    device: Any,
) -> Prepared:
    """Checked rows and targets ``(N, K)`` in the units of a preprocessor and of target columns."""
    # Tables of a few rows afford double precision: weighting and repeating a row then agree.
    dtype = torch.float64 if len(values) < SMALL else torch.float32
    if len(values) < FEWEST:
        warn_user(
            f"{len(values)} rows to learn from are fewer than {FEWEST}: nothing that the model "
            "says can be trusted, and it calls every row unfamiliar.",
            TableWarning,
        )
    shift, scale = columns.scaling
    where = chosen_device(device)
    inputs, train = preprocessor.transform(table), split.train.numpy()
    inputs[train] = preprocessor.within(inputs[train])

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.as_tensor(array, dtype=dtype, device=where)

    return Prepared(
        preprocessor,
        columns,
        tensor(inputs),
        tensor((values - shift) / scale),
        tensor(weight),
        split,
        rng,
    )
