"""The base of all estimators: scikit-learn's contract, training of networks, and predictions.

A subclass says what its networks learn (:meth:`BaseRegressor._task`). Training, predictions and
saving are written once, in terms of the belief that the networks return.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from priornet.estimators.prediction import Fitted, IntervalMethod, Prediction, RowUncertainty
from priornet.estimators.prepared import (
    Prepared,
    check_inputs,
    chosen_device,
    prepare_table,
    row_index,
)
from priornet.messages import warn_user
from priornet.methods import HeadKind, TargetTransform
from priornet.nn.architecture import Network
from priornet.tables.column_summaries import ColumnSummary
from priornet.tables.preprocessing import check_max_labels
from priornet.tables.raw import column_names
from priornet.tables.values import FloatArray
from priornet.training import Loss, Rows
from priornet.training.stack_training import (
    Auto,
    StackRows,
    TrainingSettings,
    make_plan,
    train_stack,
    validation_split,
)

if TYPE_CHECKING:
    import pandas as pd
    from torch.distributions import Distribution


@dataclass(frozen=True)
class Task:
    """The training of a regressor's networks: head, loss, seeds."""

    name: str
    """Text beside the progress bar."""
    head: HeadKind
    loss: Loss
    """Training loss per row."""
    seeds: list[int]
    """One per network."""
    data: Rows | None = None
    """Rows for the loss, where the table's own are not enough; others may follow them."""
    ood: Tensor | None = None
    """Numbers of those others that are out-of-domain inputs, for every step."""


@dataclass(kw_only=True, eq=False, repr=False)
class BaseRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Base of the estimators; it trains nothing itself."""

    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-2
    weight_decay: float | Auto = 1e-4
    epochs: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    patience: int | None = 50
    validation_fraction: float = 0.1
    calibration_fraction: float | Auto = "auto"
    max_labels: int | Auto = "auto"
    target_transform: TargetTransform = "none"
    random_state: Any = None
    device: str = "cpu"
    verbose: bool = False

    fitted_: Fitted = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: NDArray[np.object_] = field(init=False)

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a table.

        Args:
            X: Inputs, shape ``(N, D)``: an array of numbers, or a table whose columns may be
                numbers, text, categories or dates, with missing values.
            y: Targets, shape ``(N,)`` or ``(N, K)``; K columns get a full covariance.
            sample_weight: Weight per row; 2 counts as two equal rows.
        """
        self.check_parameters()
        return self._fit_prepared(prepare_table(self, X, y, sample_weight, self._share_held))

    @property
    def _share_held(self) -> float | Auto:
        """Return the share of the rows held out for calibration."""
        return self.calibration_fraction

    def _fit_prepared(self, prepared: Prepared) -> Self:
        return self._adopt(self._train(prepared), prepared)

    def _adopt(self, fitted: Fitted, prepared: Prepared) -> Self:
        """Calibrate a trained model, and keep it."""
        fitted.calibrate(prepared.inputs, prepared.targets, prepared.held)
        if fitted.targets.maps is not None:
            fitted.training["target_transform"] = fitted.targets.maps[0].kind
        known = prepared.preprocessor
        self.n_features_in_ = known.n_features_in_
        if known.left_out_:
            self.feature_names_in_ = np.array(known.feature_names_in_, dtype=object)
        self.fitted_ = fitted
        return self

    @abstractmethod
    def _task(self, prepared: Prepared) -> Task:
        """Describe what the networks learn from a table."""

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work; :meth:`fit` does this first."""
        hidden = self.hidden
        if not isinstance(hidden, (tuple, list)) or not hidden or min(hidden) < 1:
            raise ValueError(f"`hidden` must be a tuple of layer widths; got {hidden!r}.")
        for name in ("epochs", "batch_size"):
            check_count(name, getattr(self, name), "auto")
        check_count("patience", self.patience, None)
        decay = 0.0 if self.weight_decay == "auto" else self.weight_decay
        if not self.learning_rate >= 0 or not decay >= 0:
            raise ValueError(
                "`learning_rate` and `weight_decay` must not be negative; got "
                f"{self.learning_rate} and {self.weight_decay}."
            )
        check_max_labels(self.max_labels)
        allowed = get_args(TargetTransform)
        if self.target_transform not in allowed:
            raise ValueError(
                f"unknown target_transform {self.target_transform!r}; choose one of: "
                f"{', '.join(allowed)}."
            )
        chosen_device(self.device)

    def _train(self, prepared: Prepared) -> Fitted:
        """Train the networks; each holds out other rows, for validation by the NLL."""
        task = self._task(prepared)
        train, held = validation_split(prepared.train, self.validation_fraction, task.seeds)
        plan = make_plan(len(train[0]), self.epochs, self.batch_size, self.patience)
        decay = self.weight_decay
        if decay == "auto":  # as of a Gaussian prior on weights, which rows outvote
            decay = 0.2 / len(train[0])
        n_inputs, n_targets = prepared.inputs.shape[1], prepared.targets.shape[1]
        network = Network(n_inputs, tuple(self.hidden), n_targets, task.head)
        stack = network.build(task.seeds, prepared.inputs)
        data = task.data or Rows(prepared.inputs, prepared.targets, prepared.weight)
        ood = None if task.ood is None else [task.ood] * len(task.seeds)
        settings = TrainingSettings(
            self.learning_rate, decay, plan, verbose=self.verbose, what=task.name
        )
        rows = StackRows(data, train, held, ood)
        training = train_stack(stack, rows, task.loss, task.seeds, settings)
        return Fitted(prepared.preprocessor, prepared.columns, network, stack, training)

    def describe_columns(self) -> tuple[ColumnSummary, ...]:
        """Describe each column as training read it: numbers, dates or labels, range and counts.

        Each prints as one line. A loaded model knows kinds, ranges and labels; it has not kept the
        numbers of missing and of pooled values.
        """
        check_is_fitted(self)
        return self.fitted_.preprocessor.summaries_

    # -- predicting -------------------------------------------------------------------------------

    def predict_all(
        self, X: Any, coverage: float = 0.9, method: IntervalMethod = "predictive"
    ) -> Prediction:
        """Predict rows once; every other ``predict`` method returns a part of this record.

        Args:
            X: Inputs.
            coverage: Coverage of its intervals.
            method: Method of its intervals: see :meth:`predict_interval`.
        """
        check_is_fitted(self)
        table = check_inputs(self, X, known=self.fitted_.preprocessor)
        return self.fitted_.predict(table, index=row_index(X), coverage=coverage, method=method)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the predictive, shape of the targets.

        Args:
            X: Inputs.
            return_std: Return a pair: the mean, and the standard deviation of the predictive.
        """
        found = self.predict_all(X)
        return (found.mean, found.std) if return_std else found.mean

    def predict_table(
        self,
        X: Any,
        coverage: float = 0.9,
        method: IntervalMethod = "predictive",
        entropies: bool = False,
    ) -> pd.DataFrame:
        """Return the columns that ``priornet predict`` adds to a table, with the index of ``X``.

        ``prediction``, ``lower``, ``upper``, ``total``, ``data`` and ``knowledge`` are in units of
        the target; the last three are standard deviations. With several targets each has the name
        of its target behind it. ``in_domain``, ``verdict`` and ``unseen`` stand once. Where ``X``
        has a column of such a name, all begin with ``priornet_``, so that the two can be joined.

        Args:
            X: Inputs.
            coverage: Coverage of the intervals.
            method: Method of the intervals: see :meth:`predict_interval`.
            entropies: Add the measures of uncertainty in nats.
        """
        taken = column_names(X) or ()
        return self.predict_all(X, coverage, method).to_frame(taken, entropies=entropies)

    def predict_dist(self, X: Any) -> Distribution:
        """Return the distribution of the target of each row, in its units.

        Returns:
            A torch distribution with batch shape ``(N,)``; event shape ``()`` for targets given as
            a vector, with ``cdf`` and ``icdf``, else ``(K,)``.
        """
        return self.predict_all(X).distribution

    def predict_belief(self, X: Any) -> Any:
        """Return the belief about each row's distribution: Normal-Wishart or ensemble.

        Batch shape ``(N,)`` and event shape ``(K,)``, in units of the targets.
        """
        return self.predict_all(X).belief

    def predict_uncertainty(self, X: Any) -> RowUncertainty:
        """Return total, data and knowledge uncertainty of each row, in units of the targets."""
        return self.predict_all(X).uncertainty

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: IntervalMethod = "predictive"
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds between which the target lies with a given probability.

        Args:
            X: Inputs.
            coverage: That probability, between 0 and 1.
            method: ``"predictive"`` takes the quantiles of the predictive, which are right if the
                model is. ``"conformal"`` multiplies its standard deviation by the factor that the
                held-out rows needed: right on average over such rows, for any model.

        Returns:
            Lower and upper bounds, each of the shape of the targets. With several targets, each
            target alone has the coverage.
        """
        return self.predict_all(X).interval(coverage, method)

    def predict_familiarity(self, X: Any) -> FloatArray:
        """Return the in-domain score of each row: share of reference rows at least as uncertain.

        Between 0 and 1, which is ordinary; nan for models without knowledge uncertainty.
        """
        return self.predict_all(X).in_domain

    def predict_verdict(self, X: Any, return_columns: bool = False) -> Any:
        """Return one word per row: ``trust``, ``noisy`` or ``unfamiliar``.

        :mod:`priornet.estimators.held_out` defines them. A row with what training never had (a
        value missing where there was always one, a new label, a number far out of range, or too few
        values) is unfamiliar whatever its score; a warning names such rows and columns.

        Args:
            X: Inputs.
            return_columns: Instead of the warning, return for each row the names of those columns
                too, joined by ``"; "``; empty where there are none.
        """
        found = self.predict_all(X)
        if return_columns:
            return found.verdict, found.unseen.columns
        if found.unseen.rows.any():
            warn_user(found.unseen_notice())
        return found.verdict

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder; :func:`priornet.load` reads it.

        The folder holds ``weights.safetensors`` and ``config.json``, nothing that executes. It is
        written whole or not at all.
        """
        from priornet.estimators.persistence import save

        check_is_fitted(self)
        save(self, Path(path))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def check_count(name: str, value: object, other: object) -> None:
    """Check that a parameter is a whole number of at least 1, or the other value allowed."""
    whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    if not whole and value != other:
        raise ValueError(
            f"`{name}` must be a whole number of at least 1, or {other!r}; got {value!r}."
        )
