"""Boosted trees as ``TreeEnsembleRegressor`` nodes of an ONNX graph.

Numbers are compared in double precision, as :class:`~priornet.tables.Trees` compares them. The
operator knows no sets of labels: each set becomes a column, 0 for the labels in it, 1 for others,
nan for missing values and unknown labels. Trees are written in blocks, so that few such columns
exist at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.export.onnx.graph import Graph, Value, join
from priornet.tables import Trees
from priornet.tables.encoding import RawColumn

_BLOCK = 64  # trees
_ML = "ai.onnx.ml"


def add_trees(
    graph: Graph, trees: Trees, raw: Sequence[Value], columns: Sequence[RawColumn]
) -> Value:
    """Add the nodes from raw columns to what :meth:`~priornet.tables.Trees.predict` returns.

    Args:
        graph: The graph.
        trees: Their columns are the raw columns.
        raw: The raw columns, ``(rows, 1)`` each, or one matrix of numbers.
        columns: The raw columns as training knew them.

    Returns:
        ``(rows, K)``, in double precision; the sums of each block are rounded to single precision.
    """
    is_one = len(raw) == 1 and len(columns) > 1
    numbers = raw[0] if is_one else _numbers(raw, columns)
    codes = {
        j: _codes(raw[j], column) for j, column in enumerate(columns) if column.kind != "numeric"
    }
    n_trees = len(trees.shape.root)
    total: Value | None = None
    for first in range(0, n_trees, _BLOCK):
        part = _block(graph, trees, range(first, min(first + _BLOCK, n_trees)), numbers, codes)
        total = part if total is None else total + part
    assert total is not None
    return total + trees.base.mean(0)


def _numbers(raw: Sequence[Value], columns: Sequence[RawColumn]) -> Value:
    """Join the columns of numbers; a single 0 per row where there are none."""
    own = [v for v, column in zip(raw, columns, strict=True) if column.kind == "numeric"]
    if own:
        return join(own)
    return _codes(raw[0], columns[0]).cast(np.float64) * 0.0


def _codes(raw: Value, column: RawColumn) -> Value:
    """Number the labels of a column, ``(rows, 1)``; one more for all else."""
    n_labels = len(column.categories)
    return raw.graph.add(
        "LabelEncoder",
        raw,
        dtype=np.int64,
        domain=_ML,
        keys_strings=list(column.categories),
        values_int64s=list(range(n_labels)),
        default_int64=n_labels,
    )


def _block(
    graph: Graph, trees: Trees, block: range, numbers: Value, codes: dict[int, Value]
) -> Value:
    """Add some trees: their part of the mean of the folds, ``(rows, K)``."""
    nodes = np.flatnonzero(np.isin(trees.shape.tree, block))
    column, cut = trees.column[nodes], trees.cut[nodes]
    is_leaf, is_label = column < 0, np.isin(column, list(codes))
    places = np.cumsum([j not in codes for j in range(len(trees.bins.n_edges))]) - 1
    feature, inputs = np.where(is_leaf | is_label, 0, places[column]), [numbers]
    width = max(1, int(places[-1]) + 1)
    for j in np.unique(column[is_label]).tolist():
        own = column == j
        sets, feature_of = np.unique(cut[own], return_inverse=True)
        feature[own] = width + feature_of
        width += len(sets)
        inputs.append(_membership(codes[j], trees, j, sets))
    thresholds = np.where(is_label, 0.5, trees.thresholds[nodes])
    attributes = _structure(graph, trees, nodes, feature, np.where(is_leaf, 0.0, thresholds))
    found = graph.add(
        "TreeEnsembleRegressor", join(inputs), dtype=np.float32, domain=_ML, **attributes
    )
    return found.cast(np.float64)


def _membership(code: Value, trees: Trees, column: int, sets: NDArray[np.int32]) -> Value:
    """Look up the sets of a row's label: 0 in, 1 out, nan for no label, ``(rows, sets)``."""
    n_labels = int(trees.bins.n_labels[column])
    out = 1 - np.unpackbits(trees.sets[sets], 1, n_labels).T
    table = code.graph.constant(np.vstack([out, np.zeros_like(out[:1])]), np.uint8)
    looked_up = table.do("Gather", code.at(0), axis=0).cast(np.float64)
    nothing = code.graph.constant(np.nan, np.float64)
    return code.compare("Equal", n_labels).where(nothing, looked_up)


def _structure(
    graph: Graph,
    trees: Trees,
    nodes: NDArray[np.int64],
    feature: NDArray[np.int64],
    thresholds: NDArray[np.float64],
) -> dict[str, Any]:
    """Return the attributes of the operator."""
    shape, as_tensor = trees.shape, graph.onnx.numpy_helper.from_array
    n_folds, n_targets = trees.n_trees.shape
    tree, is_leaf = shape.tree[nodes], trees.column[nodes] < 0
    own = nodes - shape.root[tree]  # nodes count from 0 in each tree
    right = np.where(is_leaf, 0, shape.right[nodes] - shape.root[tree])
    target = np.repeat(np.arange(n_folds * n_targets) % n_targets, trees.n_trees.ravel())
    values = trees.value[trees.leaf_before[nodes[is_leaf]]] / n_folds
    return {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": own.tolist(),
        "nodes_featureids": feature.tolist(),
        "nodes_values_as_tensor": as_tensor(thresholds, "thresholds"),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(is_leaf, 0, own + 1).tolist(),
        "nodes_falsenodeids": right.tolist(),
        "nodes_missing_value_tracks_true": trees.missing_left[nodes].astype(int).tolist(),
        "target_treeids": tree[is_leaf].tolist(),
        "target_nodeids": own[is_leaf].tolist(),
        "target_ids": target[tree[is_leaf]].tolist(),
        "target_weights_as_tensor": as_tensor(values, "values"),
        "n_targets": n_targets,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
