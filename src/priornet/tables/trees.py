"""Boosted trees of several folds: plain arrays that are checked, saved and read at high speed.

A row is read once: each number becomes the count of edges below it, each label its code, a missing
value a code of its own. A tree is then a question about small whole numbers. For each code and
tree, a word of bits tells which leaves the code leaves open; the words of all columns, combined by
*and*, leave one bit: the leaf. There is no walk from node to node, and all trees advance at once.
Tables with very many columns would need too many words; their rows walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priornet.tables.values import FloatArray

MOST_LEAVES = 32
"""Leaves of a tree: bits of a word."""
_MOST_WORDS = 1 << 24  # 64 MB
_CELLS = 1 << 16  # rows times trees that stay in the cache
_Whole = NDArray[np.int64]
_Bits = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Bins:
    """Raw columns as codes: how many edges lie below a number, or the code of a label.

    The last code of a column stands for a missing value, and for a label that is not known.

    Attributes:
        edges: Edges of all columns of numbers, one column after the other, increasing in each.
        n_edges: Edges of each column, ``(columns,)``; 0 for labels.
        n_labels: Labels of each column, ``(columns,)``; 0 for numbers.
    """

    edges: FloatArray
    n_edges: _Whole
    n_labels: _Whole

    @cached_property
    def missing(self) -> _Whole:
        """Return the last code of each column, ``(columns,)``."""
        return np.where(self.n_labels > 0, self.n_labels, self.n_edges + 1)

    @cached_property
    def start(self) -> _Whole:
        """Find the first edge of each column, ``(columns,)``."""
        return np.cumsum(self.n_edges) - self.n_edges

    def own_edges(self, column: int) -> FloatArray:
        """Return the edges of one column."""
        return self.edges[self.start[column] :][: self.n_edges[column]]

    def codes(self, columns: FloatArray) -> _Whole:
        """Return the codes ``(columns, rows)`` of raw columns ``(rows, columns)``."""
        out = np.empty(columns.shape[::-1], np.int64)
        for j, (x, missing) in enumerate(zip(columns.T, self.missing.tolist(), strict=True)):
            if self.n_labels[j]:
                known = (x >= 0) & (x < missing)  # nan is not
                out[j] = np.where(known, x, missing)
            else:
                out[j] = np.searchsorted(self.own_edges(j), x)
                out[j][np.isnan(x)] = missing
        return out


class Shape(NamedTuple):
    """The structure of the trees, from the order of the nodes: entries per node, then per tree."""

    tree: _Whole
    right: _Whole
    """The second child of a split; the first one follows its parent."""
    left_leaves: _Bits
    """The leaves below the first child, as bits of their tree."""
    right_leaves: _Bits
    root: _Whole
    """The first node of each tree."""
    first_leaf: _Whole
    """The first leaf of each tree, counted over all trees."""
    leaves: _Bits
    """All leaves of each tree."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees of several folds and targets.

    Nodes stand in the order of a walk: a split, everything on its left, everything on its right.
    Leaves are nodes whose column is -1, so the order alone is the structure, and no file can send a
    walk back. Trees are ordered by fold, then target.

    Attributes:
        bins: The codes of the raw columns.
        n_trees: Number of trees, ``(folds, K)``.
        base: Added to the sum of the trees, ``(folds, K)``.
        column: The column that a node asks about, ``(nodes,)``.
        cut: Codes up to this one go left; for a column of labels, a row of ``sets``.
        missing_left: The side of missing values and unknown labels.
        value: The numbers of the leaves, ``(leaves,)``, in the order of their nodes.
        sets: Labels that go left, a bit each, ``(sets, bytes)``.
    """

    bins: Bins
    n_trees: _Whole
    base: FloatArray
    column: NDArray[np.int32]
    cut: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: FloatArray
    sets: NDArray[np.uint8]

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, columns: ArrayLike) -> FloatArray:
        """Return the mean of the folds, ``(rows, K)``.

        Args:
            columns: ``(rows, columns)``, from
                :meth:`~priornet.tables.TablePreprocessor.columns_matrix`.
        """
        return self.predict_each(columns).mean(0)

    def predict_each(self, columns: ArrayLike) -> FloatArray:
        """Return the prediction of each fold, ``(folds, rows, K)``, as :meth:`predict` does."""
        matrix = np.asarray(columns, np.float64)
        n_columns = len(self.bins.n_edges)
        if matrix.ndim != 2 or matrix.shape[1] != n_columns:
            raise ValueError(f"`columns` must have shape (rows, {n_columns}); got {matrix.shape}.")
        find = self.leaves_by_bits if self._n_words <= _MOST_WORDS else self.leaves_by_walk
        n_folds, n_targets = self.n_trees.shape
        found = np.empty((len(matrix), n_folds * n_targets))
        ends = np.cumsum(self.n_trees)
        size = max(1, _CELLS // int(ends[-1]))
        codes = self.bins.codes(matrix)
        for first in range(0, len(matrix), size):
            rows = slice(first, first + size)
            leaves = find(codes[:, rows])
            np.add.reduceat(
                self.value.take(leaves), ends - self.n_trees.ravel(), 1, out=found[rows]
            )
        found += self.base.ravel()
        return np.moveaxis(found.reshape(-1, n_folds, n_targets), 0, 1)

    def leaves_by_bits(self, codes: _Whole) -> _Whole:
        """Find the leaf of each row in each tree, ``(rows, trees)``, from codes of all columns."""
        shape = (codes.shape[1], len(self.shape.root))
        open_leaves = np.broadcast_to(self.shape.leaves, shape).copy()
        words = np.empty_like(open_leaves)
        for j, table in self._words.items():
            np.take(table, codes[j], 0, out=words, mode="clip")
            open_leaves &= words
        # One bit is left; a float's exponent tells which.
        exponent = open_leaves.astype(np.float32).view(np.int32) >> 23
        return exponent + (self.shape.first_leaf - 127)

    def leaves_by_walk(self, codes: _Whole) -> _Whole:
        """Find the leaf of each row in each tree, ``(rows, trees)``, from node to node."""
        shape, missing = self.shape, self.bins.missing
        is_label, rows = self.bins.n_labels > 0, np.arange(codes.shape[1])[:, None]
        node = np.broadcast_to(shape.root, (codes.shape[1], len(shape.root)))
        while (column := self.column[node]).max(initial=-1) >= 0:
            code, cut = codes[column, rows], self.cut[node]
            goes_left = code <= cut
            if len(self.sets):
                place = np.where(is_label[column], cut, 0), np.minimum(code >> 3, self._width - 1)
                in_set = (self.sets[place] >> (7 - (code & 7))) & 1 > 0
                goes_left = np.where(is_label[column], in_set, goes_left)
            goes_left = np.where(code == missing[column], self.missing_left[node], goes_left)
            node = np.where(column < 0, node, np.where(goes_left, node + 1, shape.right[node]))
        return self.leaf_before[node]

    @property
    def _width(self) -> int:
        return self.sets.shape[1]

    @cached_property
    def leaf_before(self) -> _Whole:
        """Count the leaves before each node, ``(nodes,)``."""
        is_leaf = self.column < 0
        return np.cumsum(is_leaf) - is_leaf

    @cached_property
    def _n_words(self) -> int:
        used = np.unique(self.column[self.column >= 0])
        return int((self.bins.missing[used] + 1).sum()) * len(self.shape.root)

    @cached_property
    def _words(self) -> dict[int, _Bits]:
        """Return the leaves that each code leaves open: ``(codes, trees)`` for each used column."""
        found: dict[int, _Bits] = {}
        shape = self.shape
        for j in np.unique(self.column[self.column >= 0]).tolist():
            nodes = np.flatnonzero(self.column == j)
            closed = np.where(
                self.goes_left(j, nodes),
                shape.right_leaves[nodes, None],
                shape.left_leaves[nodes, None],
            )
            trees, first = np.unique(shape.tree[nodes], return_index=True)
            words = np.full((closed.shape[1], len(shape.root)), 0xFFFFFFFF, np.uint32)
            words[:, trees] = np.bitwise_and.reduceat(~closed, first, 0).T
            found[j] = words
        return found

    def goes_left(self, column: int, nodes: _Whole) -> NDArray[np.bool_]:
        """Tell which codes of a column go left at some nodes that ask about it, (nodes, codes)."""
        n_labels, cut = int(self.bins.n_labels[column]), self.cut[nodes]
        if n_labels:
            known = np.unpackbits(self.sets[cut], 1, n_labels).astype(bool)
        else:
            known = np.arange(self.bins.missing[column]) <= cut[:, None]
        return np.concatenate([known, self.missing_left[nodes, None]], 1)

    # -- structure --------------------------------------------------------------------------------

    @cached_property
    def shape(self) -> Shape:
        """Read the structure off the order of the nodes."""
        is_leaf = self.column < 0
        n_nodes = len(is_leaf)
        right, end, waiting = [0] * n_nodes, list(range(1, n_nodes + 1)), list[int]()
        for node in range(n_nodes - 1, -1, -1):
            if not is_leaf[node]:
                _expect(len(waiting) > 1, "a split lacks its children")
                waiting.pop()
                right[node] = waiting.pop()
                end[node] = end[right[node]]
            waiting.append(node)
        root = np.array(waiting[::-1], np.int64)
        tree = np.repeat(np.arange(len(root)), np.diff(root, append=n_nodes))
        leaf = np.append(
            self.leaf_before, is_leaf.sum()
        )  # leaves before each node, and before the end
        first_leaf = leaf[root]
        n_leaves = np.diff(first_leaf, append=leaf[-1])
        _expect(n_leaves.max() <= MOST_LEAVES, f"a tree has more than {MOST_LEAVES} leaves")

        def below(places: Any) -> NDArray[np.uint64]:
            """Return the leaves of the own tree before a node, as bits."""
            return _first_bits(np.where(is_leaf, 0, leaf[places] - first_leaf[tree]))

        first, middle, last = below(np.arange(n_nodes)), below(right), below(end)
        left_leaves, right_leaves = (
            part.astype(np.uint32) for part in (middle - first, last - middle)
        )
        leaves = _first_bits(n_leaves).astype(np.uint32)
        return Shape(tree, np.array(right), left_leaves, right_leaves, root, first_leaf, leaves)

    @cached_property
    def thresholds(self) -> FloatArray:
        """Return the largest number that goes left at each node; nan at leaves and for labels."""
        bins, is_number = self.bins, self.column >= 0
        is_number &= bins.n_labels[self.column] == 0
        column, cut = self.column[is_number], self.cut[is_number]
        edges = np.append(bins.edges, np.inf)[np.minimum(bins.start[column] + cut, len(bins.edges))]
        found = np.full(len(is_number), np.nan)
        found[is_number] = np.where(cut < bins.n_edges[column], edges, np.inf)
        return found

    # -- saving -----------------------------------------------------------------------------------

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the whole state as arrays by name."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "bins"}
        return {"edges": self.bins.edges, "n_edges": self.bins.n_edges, **own}

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, ArrayLike], n_labels: Sequence[int], n_targets: int
    ) -> Self:
        """Load what :meth:`tensors` returned, and check everything that a prediction relies on.

        Args:
            tensors: Arrays or tensors by name.
            n_labels: Labels of each column, 0 for numbers: what the preprocessing knows.
            n_targets: Number of targets.

        Raises:
            ValueError: An array is missing, of another kind, or not of such trees.
        """
        given = {name: _array(tensors, name, *kind) for name, kind in _KINDS.items()}
        edges, n_edges = given.pop("edges"), given.pop("n_edges")
        labels = np.array(n_labels, np.int64)
        _expect(len(n_edges) == len(labels), f'"n_edges" should have {len(labels)} entries')
        _expect(not (n_edges[labels > 0]).any(), "a column of labels has edges")
        _expect(bool((n_edges >= 0).all()) and n_edges.sum() == len(edges), '"n_edges" is wrong')
        bins = Bins(edges, n_edges, labels)
        for j in range(len(labels)):
            _expect(bool((np.diff(bins.own_edges(j)) > 0).all()), f"edges of column {j} fall")
        trees = cls(bins, **given)
        trees._check(n_targets)
        return trees

    def _check(self, n_targets: int) -> None:
        """Refuse arrays that do not belong together."""
        n_nodes, is_leaf, labels = len(self.column), self.column < 0, self.bins.n_labels
        _expect(len(self.cut) == len(self.missing_left) == n_nodes, "nodes differ in number")
        _expect(len(self.value) == is_leaf.sum(), '"value" needs a number for each leaf')
        counts = self.n_trees
        _expect(counts.shape == self.base.shape == (len(counts), n_targets), '"n_trees" is wrong')
        _expect(bool(((counts >= 1) & (counts <= n_nodes)).all()), '"n_trees" is wrong')
        _expect(self.column.max(initial=-1) < len(labels), '"column" names a column too many')
        _expect(len(self.shape.root) == counts.sum() > 0, "the nodes do not form these trees")
        column, cut = self.column[~is_leaf], self.cut[~is_leaf]
        # A number may go left at every code, apart from a missing value.
        most = np.where(labels[column] > 0, len(self.sets), self.bins.n_edges[column] + 1)
        _expect(bool(((cut >= 0) & (cut < most)).all()), '"cut" is out of range')
        widest = labels[column].max(initial=0)
        _expect(8 * self._width >= widest, f'"sets" should hold {widest} labels')

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays only, not what is derived from them."""
        return type(self), tuple(getattr(self, f.name) for f in fields(self))


def _first_bits(n: _Whole) -> NDArray[np.uint64]:
    return (np.uint64(1) << n.astype(np.uint64)) - np.uint64(1)


_KINDS: dict[str, tuple[type[np.generic], int]] = {
    "edges": (np.float64, 1),
    "n_edges": (np.int64, 1),
    "n_trees": (np.int64, 2),
    "base": (np.float64, 2),
    "column": (np.int32, 1),
    "cut": (np.int32, 1),
    "missing_left": (np.bool_, 1),
    "value": (np.float64, 1),
    "sets": (np.uint8, 2),
}


def _array(
    tensors: Mapping[str, ArrayLike], name: str, kind: type[np.generic], n_axes: int
) -> NDArray[Any]:
    """Take an array of a kind; numbers must be finite."""
    _expect(name in tensors, f'there is no "{name}"')
    found = np.asarray(tensors[name])
    fits = found.dtype == kind and found.ndim == n_axes
    _expect(fits, f'"{name}" is {found.dtype} with {found.ndim} axes')
    _expect(bool(np.isfinite(found).all()), f'"{name}" has numbers that are not finite')
    return found


def _expect(is_true: bool | np.bool_, otherwise: str) -> None:
    """Refuse a damaged state of saved trees."""
    if not is_true:
        raise ValueError(f"the saved trees are damaged: {otherwise}.")
