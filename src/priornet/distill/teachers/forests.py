"""Forests as teachers: each tree is a member, with mean and variance of its leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.distill.teachers.scikit_learn import (
    ScikitLearnTeacher,
    as_targets,
    quiet_about_names,
    rows_for,
)
from priornet.messages import warn_user
from priornet.tables.raw import num_rows

__all__ = ["ForestTeacher", "PureLeavesWarning"]

FloatArray = NDArray[np.float64]

_MANY = 0.5  # share of pure leaves from which trees know nothing of noise
_BORROWED = 0.2  # rows that a leaf takes from the average leaf


class PureLeavesWarning(UserWarning):
    """Trees grown to leaves of one target know nothing of its noise."""


class ForestTeacher(ScikitLearnTeacher):
    """A random forest, extremely randomised trees, or bagged decision trees of scikit-learn.

    A leaf's variance is that of the training targets in it. Trees grown to pure leaves have none:
    give the training rows, and each leaf takes the spread of *all* rows that fall into it, also of
    those that its tree did not see.

    Args:
        model: A fitted ``RandomForestRegressor``, ``ExtraTreesRegressor``, or ``BaggingRegressor``
            of decision trees.
        X: Training inputs, to compute variances anew.
        y: Their targets.
        min_variance: Lower bound of a leaf's variance, as a share of the variance of all targets.
    """

    kind = "rows"

    def __init__(
        self, model: Any, X: Any = None, y: Any = None, *, min_variance: float = 1e-3
    ) -> None:
        from sklearn.tree import DecisionTreeRegressor
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
        self.model = model
        if not all(isinstance(tree, DecisionTreeRegressor) for tree in model.estimators_):
            raise TypeError(
                "the members must be decision trees; for others use RegressorsTeacher, which fits "
                "a variance."
            )
        if not 0 < min_variance < 1:
            raise ValueError(f"`min_variance` must lie between 0 and 1; got {min_variance:g}.")
        if (X is None) != (y is None):
            raise ValueError("give both `X` and `y`, or neither.")
        columns = getattr(model, "estimators_features_", None)
        self._columns = [None] * len(model.estimators_) if columns is None else list(columns)
        self._means = [tree.tree_.value[:, :, 0] for tree in model.estimators_]  # (nodes, K)
        self._variances = self._from_trees() if X is None else self._from_rows(X, as_targets(y))
        self._set_floor(min_variance)

    def gaussians(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Look up the leaves of each tree."""
        leaves = self._leaves(X)
        means = [mean[leaf] for mean, leaf in zip(self._means, leaves, strict=True)]
        variances = [var[leaf] for var, leaf in zip(self._variances, leaves, strict=True)]
        return np.stack(means), np.stack(variances)

    def _leaves(self, X: Any) -> list[NDArray[np.int64]]:
        with quiet_about_names():
            rows = np.asarray(rows_for(self.model, X), np.float32)
            return [
                tree.apply(rows if columns is None else rows[:, columns])
                for tree, columns in zip(self.model.estimators_, self._columns, strict=True)
            ]

    def _from_trees(self) -> list[FloatArray]:
        """Return the variances that the trees kept; those of several targets are only averages."""
        for tree in self.model.estimators_:
            if tree.criterion not in ("squared_error", "friedman_mse"):
                raise ValueError(
                    f'trees grown by "{tree.criterion}" keep no variances; give ForestTeacher the '
                    "training rows `X` and `y`."
                )
            if tree.tree_.n_outputs > 1:
                raise ValueError(
                    "trees keep one variance for several targets together; give ForestTeacher the "
                    "training rows `X` and `y`."
                )
        return [tree.tree_.impurity[:, None].copy() for tree in self.model.estimators_]

    def _from_rows(self, X: Any, y: FloatArray) -> list[FloatArray]:
        """Compute the variance of all targets in a leaf, including those unseen by its tree.

        A leaf of one row takes the average of all leaves; others take little of it.
        """
        if num_rows(X) != len(y):
            raise ValueError(f"`X` and `y` must have as many rows; got {num_rows(X)} and {len(y)}.")
        k_dim = self._means[0].shape[1]
        if y.shape[1] != k_dim:
            raise ValueError(f"`y` has {y.shape[1]} columns; the forest predicts {k_dim}.")
        variances: list[FloatArray] = []
        for mean, leaf in zip(self._means, self._leaves(X), strict=True):
            count = np.bincount(leaf, minlength=len(mean))[:, None]
            total, square = np.zeros_like(mean), np.zeros_like(mean)
            np.add.at(total, leaf, y)
            average = total / np.maximum(count, 1)
            np.add.at(square, leaf, (y - average[leaf]) ** 2)
            free = np.maximum(count - 1, 0)
            pooled = square.sum(0) / max(int(free.sum()), 1)
            variances.append((square + _BORROWED * pooled) / (free + _BORROWED))
        return variances

    def _set_floor(self, share: float) -> None:
        trees = [tree.tree_ for tree in self.model.estimators_]
        # Variance of all targets: spread of the leaves around the root, plus variance inside them.
        spread: list[FloatArray] = []
        is_leaf = [tree.children_left == -1 for tree in trees]
        for tree, leaf, mean, var in zip(trees, is_leaf, self._means, self._variances, strict=True):
            n_samples = tree.weighted_n_node_samples
            weight = (n_samples * leaf)[:, None] / n_samples[0]
            spread.append((weight * ((mean - mean[0]) ** 2 + var)).sum(0))
        floor = share * np.mean(spread, 0)
        if not (floor > 0).all():
            value = self._means[0][0, int(np.argmin(floor))]
            raise ValueError(
                f"the targets that this forest learnt are constant ({value:g} in every leaf): "
                "there is nothing to distil."
            )
        leaves = [v[leaf] for v, leaf in zip(self._variances, is_leaf, strict=True)]
        pure = (np.concatenate(leaves) < floor).mean()
        if pure > _MANY:
            warn_user(
                f"{pure:.0%} of the leaves are pure: these trees know nothing of the noise of "
                "targets, and data uncertainty is set to a small share of their variance. Give "
                "ForestTeacher the training rows `X` and `y`.",
                PureLeavesWarning,
            )
        self._variances = [np.maximum(variance, floor) for variance in self._variances]
