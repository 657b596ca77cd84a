"""Boosted trees as a module that ``torch.export`` takes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from priornet.tables import Trees


class TreesProgram(nn.Module):
    """The mean of the folds of :class:`~priornet.tables.Trees`, in double precision.

    All trees take a step at a time, as many steps as the deepest tree has; leaves lead to
    themselves. A step needs some hundred bytes per row and tree. Buffers have an entry per node
    unless they say otherwise.
    """

    root: Tensor
    """The first node of each tree."""
    left: Tensor
    right: Tensor
    column: Tensor
    threshold: Tensor
    missing_left: Tensor
    n_labels: Tensor
    """Labels of the node's column; 0 for numbers."""
    set: Tensor
    """The row of ``sets`` that goes left."""
    value: Tensor
    sets: Tensor
    """Labels that go left, ``(sets, labels)``."""
    weight: Tensor
    """The part of each tree in each target, ``(trees, K)``."""
    base: Tensor

    def __init__(self, trees: Trees) -> None:
        super().__init__()
        shape, (n_folds, n_targets) = trees.shape, trees.n_trees.shape
        is_leaf = trees.column < 0
        nodes, column = np.arange(len(is_leaf)), np.maximum(trees.column, 0).astype(np.int64)
        n_labels = np.where(is_leaf, 0, trees.bins.n_labels[column])
        values = np.zeros(len(nodes))
        values[is_leaf] = trees.value
        target = np.repeat(np.arange(n_folds * n_targets) % n_targets, trees.n_trees.ravel())
        buffers = {
            "root": shape.root,
            "left": np.where(is_leaf, nodes, nodes + 1),
            "right": np.where(is_leaf, nodes, shape.right),
            "column": column,
            "threshold": trees.thresholds,
            "missing_left": trees.missing_left,
            "n_labels": n_labels,
            "set": np.where(n_labels > 0, trees.cut, 0),
            "value": values,
            "sets": np.unpackbits(trees.sets, 1).astype(bool),
            "weight": np.eye(n_targets)[target] / n_folds,
            "base": trees.base.mean(0),
        }
        for name, values in buffers.items():
            self.register_buffer(name, torch.tensor(values))
        self._depth, here = 0, shape.root
        while (trees.column[here] >= 0).any():
            splits = here[trees.column[here] >= 0]
            here, self._depth = np.append(splits + 1, shape.right[splits]), self._depth + 1

    def forward(self, columns: Tensor) -> Tensor:
        """Return the prediction ``(rows, K)`` for raw columns ``(rows, columns)``."""
        # torch offers loops to programs under this name only.
        from torch._higher_order_ops.while_loop import while_loop  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

        def going(_: Tensor, n: Tensor) -> Tensor:
            return n < self._depth

        def step(node: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
            return self._step(columns, node), n + 1

        start = self.root.expand(columns.shape[0], -1).clone()
        node = while_loop(going, step, (start, torch.tensor(0)))[0]
        return self.value[node] @ self.weight + self.base

    def _step(self, columns: Tensor, node: Tensor) -> Tensor:
        """Return the child of each node ``(rows, trees)`` that a row goes to."""
        x = columns.gather(1, self.column[node])
        goes_left, missing = x <= self.threshold[node], x.isnan()
        if self.sets.numel():
            n_labels = self.n_labels[node]
            known = (x >= 0) & (x < n_labels)
            in_set = self.sets[self.set[node], torch.where(known, x, 0).long()]
            goes_left = torch.where(n_labels > 0, in_set, goes_left)
            missing = missing | ((n_labels > 0) & ~known)
        goes_left = torch.where(missing, self.missing_left[node], goes_left)
        return torch.where(goes_left, self.left[node], self.right[node])
