"""Fit boosted trees out of fold, with scikit-learn's ``HistGradientBoostingRegressor``.

Columns become codes first (:class:`~priornet.tables.trees.Bins`), the same for all folds, so a
threshold is a whole number. A column of labels is given as labels, which scikit-learn sorts anew at
each split. If it has more than a few, it is given a second time: as the mean target of each label
among the rows to learn from. In the trees that are kept, both are sets of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from priornet.tables.trees import Bins, Trees
from priornet.tables.values import FloatArray, Mask

LEAST_ROWS = 50
"""Fewer rows than these teach no trees."""
_N_BINS = 255
_MOST_LABELS = 254  # that scikit-learn takes; all rarer ones share one more
_FEW = 10  # labels without a second column
_PRIOR_ROWS = 3.0  # weight of the mean of all rows in the mean of a label
_HELD_OUT = 10  # one row of so many stops the trees of a fold
_FOLDS = ((50_000, 5), (200_000, 3))  # up to so many rows, so many folds; then two
_FEW_ROWS = 1500
_SETTINGS: dict[str, Any] = {
    "learning_rate": 0.15,
    "max_iter": 1000,
    "early_stopping": True,
    "n_iter_no_change": 20,
}
_PROBED = 100  # rows that show if trees were read as scikit-learn means them
_Whole = NDArray[np.int64]


@dataclass(frozen=True)
class _Problem:
    """The rows to learn from."""

    bins: Bins
    codes: _Whole
    """``(columns, rows)``."""
    weight: FloatArray
    seed: int


@dataclass(frozen=True)
class _Fitted:
    """The trees of one fold and target, and the matrix that they read.

    Columns of labels come first: scikit-learn would bring them there.
    """

    model: Any
    matrix: FloatArray
    columns: tuple[int, ...]
    """The raw column of each column."""
    by_label: tuple[FloatArray | None, ...]
    """The number for each label in each column; None for a column of numbers."""

    def predict(self, rows: Any) -> FloatArray:
        """Predict some rows of the matrix."""
        return self.model.predict(self.matrix[rows])


def fit_trees(
    columns: ArrayLike,
    targets: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    n_labels: Sequence[int],
    n_folds: int | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> tuple[Trees, FloatArray]:
    """Fit boosted trees to all folds but one, in turn.

    The trees of a fold stop where they predict a tenth of the other folds best, which they do not
    learn from.

    Args:
        columns: ``(rows, columns)``, from
            :meth:`~priornet.tables.TablePreprocessor.columns_matrix`.
        targets: ``(rows, K)``, standardised.
        weight: Weight per row; rows of weight 0 teach nothing, and get an answer.
        n_labels: Labels of each column, 0 for a column of numbers.
        n_folds: None to choose by the number of rows.
        seed: Draws the folds.
        groups: A name per row; rows of one name stay in one fold.

    Returns:
        The trees, and for each row the prediction of the trees that did not see it, ``(rows, K)``.
    """
    raw, y = np.asarray(columns, np.float64), np.asarray(targets, np.float64)
    w = np.ones(len(raw)) if weight is None else np.asarray(weight, np.float64)
    n_taught = int((w > 0).sum())
    if n_taught < LEAST_ROWS:
        raise ValueError(
            f"boosted trees need at least {LEAST_ROWS} rows to learn from; got {n_taught}."
        )
    n_folds = n_folds or next((n for most, n in _FOLDS if n_taught <= most), 2)
    fold, is_held = _split(w, n_folds, seed, np.arange(len(raw)) if groups is None else groups)
    bins = _find_bins(raw[w > 0], n_labels)
    problem = _Problem(bins, bins.codes(raw), w, seed)
    answers, parts = np.empty_like(y), list[Trees]()
    expected = np.empty((n_folds, min(_PROBED, len(raw)), y.shape[1]))
    with threadpool_limits(1):  # threads cost more than they bring, and wait for each other
        for k in range(n_folds):
            for target in range(y.shape[1]):
                taught = (w > 0) & (fold != k)
                fitted = _fit(problem, y[:, target], taught & ~is_held, taught & is_held)
                answers[fold == k, target] = fitted.predict(fold == k)
                expected[k, :, target] = fitted.predict(slice(_PROBED))
                parts.append(_kept(fitted, bins))
    trees = _joined(parts, n_folds)
    if not np.allclose(trees.predict_each(raw[:_PROBED]), expected, 1e-9, 1e-9):
        raise _unreadable()
    return trees, answers


def _unreadable() -> RuntimeError:
    return RuntimeError(
        f"scikit-learn {sklearn.__version__} keeps its trees in a form that this version of "
        "priornet does not know; install another version of one of them, or fit without trees."
    )


def _split(weight: FloatArray, n_folds: int, seed: int, groups: ArrayLike) -> tuple[_Whole, Mask]:
    """Draw the fold of each row, and the tenth of the groups that is held out of every fold."""
    _, unit = np.unique(groups, return_inverse=True)
    is_empty = np.bincount(unit, weight) == 0
    n_units = int((~is_empty).sum())
    if n_units < 2 * n_folds:
        raise ValueError(
            f"{n_folds} folds of boosted trees need at least {2 * n_folds} groups with weight; got "
            f"{n_units}."
        )
    order = np.lexsort((np.random.default_rng(seed).random(len(is_empty)), is_empty))
    place = np.argsort(order)[unit]
    return place % n_folds, place // n_folds % _HELD_OUT == 0


def _find_bins(columns: FloatArray, n_labels: Sequence[int]) -> Bins:
    """Cut each column of numbers between its values, or into parts of equal rows if it has many."""
    edges: list[FloatArray] = []
    for x, is_label in zip(columns.T, np.array(n_labels) > 0, strict=True):
        x = x[:0] if is_label else x[~np.isnan(x)]
        values = np.unique(x)
        if len(values) > _N_BINS:
            shares = np.linspace(0, 1, _N_BINS + 1)[1:-1]
            edges.append(np.unique(np.quantile(x, shares, method="midpoint")))
        else:
            # The lower value, where no number lies between two neighbours.
            middle = values[:-1] + np.diff(values) / 2
            edges.append(np.where(middle < values[1:], middle, values[:-1]))
    lengths = np.array([len(own) for own in edges], np.int64)
    return Bins(np.concatenate(edges), lengths, np.array(n_labels, np.int64))


def _fit(problem: _Problem, y: FloatArray, taught: Mask, held: Mask) -> _Fitted:
    """Fit one fold and target."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    bins, w = problem.bins, problem.weight
    natives, others = list[tuple[int, FloatArray | None]](), list[tuple[int, FloatArray | None]]()
    for j, n_labels in enumerate(bins.n_labels.tolist()):
        if (problem.codes[j][taught] == bins.missing[j]).all():
            continue  # scikit-learn refuses a column without numbers
        if n_labels:
            counts, means = _by_label(problem.codes[j][taught], y[taught], w[taught], n_labels)
            natives.append((j, _ranks(counts)))
            others += [(j, means)] if n_labels > _FEW else []
        else:
            others.append((j, None))
    columns, by_label = zip(*natives, *others, strict=True) if natives + others else ((0,), (None,))
    matrix = np.zeros((len(y), len(columns)))
    for place, (j, numbers) in enumerate(natives + others):
        known = np.arange(bins.missing[j], dtype=np.float64) if numbers is None else numbers
        matrix[:, place] = np.append(known, np.nan)[problem.codes[j]]
    is_small = taught.sum() < _FEW_ROWS
    leaves: dict[str, Any] = {
        "max_leaf_nodes": 16 if is_small else 31,
        "min_samples_leaf": 5 if is_small else 20,
    }
    is_label: Any = list(range(len(natives))) or None
    model: Any = HistGradientBoostingRegressor(
        **_SETTINGS, **leaves, categorical_features=is_label, random_state=problem.seed
    )
    model.fit(
        matrix[taught],
        y[taught],
        w[taught],
        X_val=matrix[held],
        y_val=y[held],
        sample_weight_val=w[held],
    )
    n_best = max(1, int(np.argmax(model.validation_score_)))
    model._predictors = model._predictors[:n_best]
    return _Fitted(model, matrix, columns, by_label)


def _by_label(
    codes: _Whole, y: FloatArray, weight: FloatArray, n_labels: int
) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each label, and its mean drawn to that of all rows; nan for no rows."""
    sums, counts = (
        np.bincount(codes, values, n_labels + 1)[:-1].astype(np.float64)
        for values in (weight * y, weight)
    )
    prior = _PRIOR_ROWS * weight.mean()
    means = (sums + prior * np.average(y, weights=weight)) / (counts + prior)
    return counts, np.where(counts > 0, means, np.nan)


def _ranks(counts: FloatArray) -> FloatArray:
    """Number labels, the most frequent first; the rarest of very many share the last number."""
    ranks = np.argsort(np.argsort(-counts, kind="stable")).astype(np.float64)
    return np.where(counts > 0, np.minimum(ranks, _MOST_LABELS), np.nan)


def _kept(fitted: _Fitted, bins: Bins) -> Trees:
    """Read the trees of a model, which scikit-learn keeps in private."""
    try:
        trees = [one for (one,) in fitted.model._predictors]
        base = np.reshape(fitted.model._baseline_prediction, (1, 1)).astype(np.float64)
        nodes = np.concatenate([tree.nodes for tree in trees])
        own_sets = [tree.raw_left_cat_bitsets for tree in trees]
        starts = np.cumsum([0, *(len(own) for own in own_sets)])
        place = nodes["bitset_idx"] + np.repeat(starts[:-1], [len(tree.nodes) for tree in trees])
        is_leaf = nodes["is_leaf"].astype(bool)
        parts = [nodes[name] for name in ("feature_idx", "num_threshold", "is_categorical")]
        missing_left, value = nodes["missing_go_to_left"].astype(bool), nodes["value"][is_leaf]
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise _unreadable() from error
    bits = np.unpackbits(np.concatenate(own_sets).view(np.uint8), 1, bitorder="little")
    feature, threshold, is_native = parts
    column = np.where(is_leaf, -1, np.array(fitted.columns)[feature]).astype(np.int32)
    most = np.where(is_leaf, 0, bins.n_edges[column])
    cut = np.clip(np.floor(threshold), 0, most).astype(np.int32)
    has_set = ~is_leaf & (bins.n_labels[column] > 0)
    cut[has_set] = np.arange(has_set.sum())
    sets = np.zeros((has_set.sum(), -(-bins.n_labels.max() // 8)), np.uint8)
    for feature_place, numbers in enumerate(fitted.by_label):
        at = np.flatnonzero(~is_leaf & (feature == feature_place))
        if numbers is None or not len(at):
            continue
        if is_native[at[0]]:
            goes = bits[place[at]][:, np.nan_to_num(numbers).astype(np.int64)].astype(bool)
        else:
            goes = numbers <= threshold[at, None]
        packed = np.packbits(np.where(np.isnan(numbers), missing_left[at, None], goes), 1)
        sets[cut[at], : packed.shape[1]] = packed
    one = np.array([[len(trees)]])
    return Trees(bins, one, base, column, cut, missing_left, value, sets)


def _joined(parts: Sequence[Trees], n_folds: int) -> Trees:
    """Put the trees of all folds and targets together; equal sets are kept once."""
    sets, place = np.unique(np.concatenate([p.sets for p in parts]), axis=0, return_inverse=True)
    starts = np.cumsum([0, *(len(part.sets) for part in parts)])
    cuts = list[NDArray[np.int32]]()
    for part, start in zip(parts, starts, strict=False):
        has_set = (part.column >= 0) & (part.bins.n_labels[part.column] > 0)
        cut = part.cut.copy()
        cut[has_set] = place[start + cut[has_set]]
        cuts.append(cut)
    together = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("column", "missing_left", "value")
    }
    counts, base = (
        np.concatenate([getattr(part, name) for part in parts]).reshape(n_folds, -1)
        for name in ("n_trees", "base")
    )
    return replace(
        parts[0], n_trees=counts, base=base, cut=np.concatenate(cuts), sets=sets, **together
    )
