"""Raw columns to the matrix that the network reads, as a module: what the preprocessor does.

Tensors hold no text, so all columns are numbers: a number is itself (a date is days since 1970,
true and false are 1 and 0), a label is its place in the list of labels that the file gives, -1 for
a label that is not in it, and nan is a hole in either.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from priornet.export.onnx.columns import input_names
from priornet.tables.preprocessing import LIMIT, RawColumn, TablePreprocessor

__all__ = ["RawColumns", "describe_columns"]

_NO_LABEL = -2.0  # what no column holds


class RawColumns(nn.Module):
    """Columns ``(rows, columns)`` in double precision to network inputs ``(rows, features)``.

    Args:
        preprocessor: Of a fitted model.
    """

    index: Tensor
    """Which raw column each feature is made of."""
    is_value: Tensor
    is_hole: Tensor
    """Whether it says that the column is missing."""
    is_other: Tensor
    """Whether it stands for all labels without a feature of their own."""
    label: Tensor
    """Which label it stands for."""
    n_labels: Tensor
    """How many the column has."""
    median: Tensor
    mean: Tensor
    scale: Tensor
    low: Tensor
    """Of each raw column: the least number that is not far out of the training range."""
    high: Tensor
    is_whole: Tensor
    """Of each raw column: whether training had no numbers but 0 and 1."""
    has_missing: Tensor
    """Of each raw column: whether values were missing in training."""

    def __init__(self, preprocessor: TablePreprocessor) -> None:
        super().__init__()
        made = [
            feature
            for place, column in enumerate(preprocessor.columns_)
            for feature in _features(place, column)
        ]
        for name in made[0]:
            values = [feature[name] for feature in made]
            kind = torch.float64 if isinstance(values[0], float) else None
            self.register_buffer(name, torch.tensor(values, dtype=kind))
        reach = torch.tensor([_reach(c) for c in preprocessor.columns_], dtype=torch.float64)
        self.register_buffer("low", reach[:, 0].clone())
        self.register_buffer("high", reach[:, 1].clone())
        is_whole = torch.tensor([column.is_whole for column in preprocessor.columns_])
        self.register_buffer("is_whole", is_whole)
        has_missing = torch.tensor([column.has_missing for column in preprocessor.columns_])
        self.register_buffer("has_missing", has_missing)
        self._most_missing = preprocessor.most_missing_

    def unseen(self, columns: Tensor) -> Tensor:
        """Tell which rows have what training never had, ``(rows,)``: ``priornet.tables.unseen``."""
        hole = columns.isnan()
        wrong = (columns < self.low) | (columns > self.high) | (hole & ~self.has_missing)
        wrong = wrong | (self.is_whole & (columns > columns.floor()))
        return wrong.any(-1) | ((hole & self.has_missing).sum(-1) > self._most_missing)

    def forward(self, columns: Tensor) -> Tensor:
        """The preprocessed matrix."""
        x = columns[:, self.index]
        hole = x.isnan()
        filled = torch.where(hole, self.median, x)
        number = ((filled - self.mean) / self.scale).clamp(-LIMIT, LIMIT)
        known = (x >= 0) & (x < self.n_labels)
        marked = torch.where(
            self.is_hole, hole, torch.where(self.is_other, ~(known | hole), x == self.label)
        )
        return torch.where(self.is_value, number, marked.double())


def _reach(column: RawColumn) -> tuple[float, float]:
    """Which numbers stand for something that training had, or nearly so."""
    if column.kind == "numeric" or column.has_other:
        return column.reach
    return 0.0, len(column.categories) - 1.0


def _features(place: int, column: RawColumn) -> list[dict[str, Any]]:
    """What each feature of a raw column needs, in the preprocessor's order."""
    plain: dict[str, Any] = {
        "index": place,
        "is_value": False,
        "is_hole": False,
        "is_other": False,
        "label": _NO_LABEL,
        "n_labels": float(len(column.categories)),
        "median": 0.0,
        "mean": 0.0,
        "scale": 1.0,
    }
    if column.kind == "numeric":
        numbers = {name: float(getattr(column, name)) for name in ("median", "mean", "scale")}
        found = [plain | numbers | {"is_value": True}]
    else:
        found = [plain | {"label": float(i)} for i in range(len(column.categories))]
        if column.has_other:
            found.append(plain | {"is_other": True})
    return [*found, plain | {"is_hole": True}] if column.has_missing else found


def describe_columns(preprocessor: TablePreprocessor) -> list[dict[str, Any]]:
    """What a user has to know of each column: its name, its kind, and the labels by their place."""
    names = input_names(preprocessor) or [f"x{j}" for j in range(preprocessor.n_features_in_)]
    found: list[dict[str, Any]] = []
    for name, column in zip(names, preprocessor.columns_, strict=True):
        if column.kind == "numeric":
            plain = column.parser not in ("date", "boolean")  # however it was written
            found.append({"name": name, "kind": "number" if plain else column.parser})
        else:
            found.append({"name": name, "kind": "label", "labels": list(column.categories)})
    return found
