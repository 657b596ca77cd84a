"""Ensembles of scikit-learn as teachers: forests, bags, and lists of fitted regressors."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.distill.teacher import Teacher, columns_by_name
from priornet.messages import warn_user
from priornet.tables.raw import as_matrix, num_rows, take_rows, without_arrow

FloatArray = NDArray[np.float64]


def model_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns with which a model was fitted; None if it knows none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def rows_for(model: Any, X: Any) -> Any:
    """Convert rows to the form that a model knows: its columns, without names if it knows none."""
    names = model_names(model)
    rows = columns_by_name(X, names)
    return as_matrix(rows) if names is None or isinstance(rows, Mapping) else rows


def call(model: Any, X: Any) -> NDArray[np.float64]:
    """Predict, shape ``(N, K)``."""
    with quiet_about_names():
        answer = np.asarray(model.predict(rows_for(model, X)), np.float64)
    return answer.reshape(len(answer), -1)


def _training_rows(X: Any, y: Any) -> tuple[Any, FloatArray]:
    """Return training inputs, and as many targets ``(N, K)``."""
    table, targets = without_arrow(X), np.asarray(y, np.float64)
    if num_rows(table) != len(targets):
        raise ValueError(
            f"`X` and `y` must have as many rows; got {num_rows(table)} and {len(targets)}."
        )
    return table, targets.reshape(len(targets), -1)


@contextmanager
def quiet_about_names() -> Generator[None]:
    """Drop scikit-learn's warnings about names: there is one per tree."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="X has feature names, but")
        yield


class ScikitLearnTeacher(Teacher):
    """A teacher that reads its columns as a model of scikit-learn does."""

    model: Any

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns with which the model was fitted."""
        return model_names(self.model)


class RegressorsTeacher(ScikitLearnTeacher):
    """A list of fitted regressors, or a ``BaggingRegressor`` of any kind.

    Members share a model of the noise: gradient boosting, with a gamma likelihood, of the squared
    errors of their average on unseen rows. For a list, clones fitted on the other folds predict
    these rows; bagged members predict the rows left out of their bags.

    Args:
        regressors: Fitted regressors that scikit-learn's :func:`clone` can copy.
        X: Their training inputs.
        y: Their targets, ``(N,)`` or ``(N, K)``.
        n_folds: Number of folds; for a list.
        min_variance: Lower bound of the variance, as a share of the variance of the targets.
        seed: Of the folds and of the noise model.
    """

    def __init__(
        self,
        regressors: Any,
        X: Any,
        y: Any,
        *,
        n_folds: int = 5,
        min_variance: float = 1e-4,
        seed: int = 0,
    ) -> None:
        self._bag = None if isinstance(regressors, Sequence) else regressors
        self.members: list[Any] = list(getattr(regressors, "estimators_", regressors))
        if not self.members:
            raise TypeError("`regressors` must be a filled list of fitted regressors.")
        self.model = self.members[0] if self._bag is None else self._bag
        table, targets = _training_rows(X, y)
        if self._bag is None:
            predicted = self._other_folds(table, y, targets.shape, n_folds, seed)
        else:
            predicted = self._out_of_bag(table, targets.shape)
        known = np.isfinite(predicted).all(1)
        if known.sum() < 2:
            raise ValueError("too few rows lie outside a bag to learn how noisy targets are.")
        rows = take_rows(table, np.flatnonzero(known))
        self._floor = min_variance * targets.var(0)
        square = (targets - predicted)[known] ** 2
        self._noise = [
            _fit_noise(rows, np.maximum(square[:, k], self._floor[k]), seed)
            for k in range(targets.shape[1])
        ]

    def gaussians(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Predict each member's mean, and the common variance."""
        means = np.stack(self._means(X))
        variance = np.column_stack([_noise_at(model, X) for model in self._noise])
        variance = np.maximum(variance, self._floor)
        return means, np.broadcast_to(variance, means.shape)

    def _means(self, X: Any) -> list[FloatArray]:
        if self._bag is None:
            return [call(member, X) for member in self.members]
        rows = as_matrix(rows_for(self._bag, X))
        columns = self._bag.estimators_features_
        return [
            call(member, rows[:, own]) for member, own in zip(self.members, columns, strict=True)
        ]

    def _other_folds(
        self, X: Any, y: Any, shape: tuple[int, ...], n_folds: int, seed: int
    ) -> FloatArray:
        """Predict the average, each row by clones that were fitted without it."""
        from sklearn.base import clone
        from sklearn.model_selection import KFold

        predicted = np.zeros(shape)
        targets = np.asarray(y, np.float64)
        order = np.arange(shape[0])
        for train, held in KFold(n_folds, shuffle=True, random_state=seed).split(order):
            for member in self.members:
                own = rows_for(member, X)
                fresh: Any = clone(member)
                fitted = fresh.fit(take_rows(own, train), targets[train])
                predicted[held] += call(fitted, take_rows(own, held)) / len(self.members)
        return predicted

    def _out_of_bag(self, X: Any, shape: tuple[int, ...]) -> FloatArray:
        """Predict the average of the members that did not see a row; nan without such a member."""
        assert self._bag is not None
        total, count = np.zeros(shape), np.zeros((shape[0], 1))
        for seen, mean in zip(self._bag.estimators_samples_, self._means(X), strict=True):
            unseen = np.ones(shape[0], bool)
            unseen[seen] = False
            total[unseen] += mean[unseen]
            count[unseen] += 1
        with np.errstate(invalid="ignore"):
            return total / count


def _fit_noise(X: Any, square: FloatArray, seed: int) -> Any:
    """Fit the expected square of an error to the inputs."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    from priornet.tables.preprocessing import TablePreprocessor

    preprocessor = TablePreprocessor().fit(X)
    scale = float(square.mean())
    model = HistGradientBoostingRegressor(
        loss="gamma",
        max_iter=100,
        learning_rate=0.05,
        max_leaf_nodes=8,
        min_samples_leaf=max(20, len(square) // 50),
        l2_regularization=1.0,
        random_state=seed,
    ).fit(preprocessor.transform(X), square / scale)
    return preprocessor, model, scale


def _noise_at(noise: Any, X: Any) -> FloatArray:
    preprocessor, model, scale = noise
    return scale * model.predict(preprocessor.transform(X, extra="ignore"))


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
        self._variances = self._from_trees() if X is None else self._from_rows(X, y)
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
            problem = None
            if tree.criterion not in ("squared_error", "friedman_mse"):
                problem = f'trees grown by "{tree.criterion}" keep no variances'
            elif tree.tree_.n_outputs > 1:
                problem = "trees keep one variance for several targets together"
            if problem is not None:
                raise ValueError(f"{problem}; give ForestTeacher the training rows `X` and `y`.")
        return [tree.tree_.impurity[:, None].copy() for tree in self.model.estimators_]

    def _from_rows(self, X: Any, y: Any) -> list[FloatArray]:
        """Compute the variance of all targets in a leaf, including those unseen by its tree.

        A leaf of one row takes the average of all leaves; others take little of it.
        """
        table, targets = _training_rows(X, y)
        k_dim = self._means[0].shape[1]
        if targets.shape[1] != k_dim:
            raise ValueError(f"`y` has {targets.shape[1]} columns; the forest predicts {k_dim}.")
        variances: list[FloatArray] = []
        for mean, leaf in zip(self._means, self._leaves(table), strict=True):
            count = np.bincount(leaf, minlength=len(mean))[:, None]
            total, square = np.zeros_like(mean), np.zeros_like(mean)
            np.add.at(total, leaf, targets)
            average = total / np.maximum(count, 1)
            np.add.at(square, leaf, (targets - average[leaf]) ** 2)
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
