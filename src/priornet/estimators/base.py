"""What all estimators share: scikit-learn's contract, and everything that follows from a belief.

A subclass says which networks it trains (:meth:`BaseRegressor._train`); predictions, intervals,
uncertainty and saving are written once, in terms of the belief that the networks return.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from priornet.estimators.inputs import (
    check_inputs,
    check_targets,
    check_weight,
    merge_equal_rows,
    row_index,
    row_names,
    unseen_notice,
)
from priornet.estimators.model import Fitted
from priornet.estimators.plan import (
    SMALL,
    Auto,
    check_count,
    make_plan,
    split_rows,
    validation_split,
    weight_decay_for,
)
from priornet.estimators.prediction import Prediction, RowUncertainty
from priornet.estimators.prepared import (
    Prepared,
    chosen_device,
    fit_preprocessor,
    standardised,
)
from priornet.methods import HeadKind
from priornet.nn.architecture import Network
from priornet.notices import warn_user
from priornet.tables.column_summaries import ColumnSummary, column_notes, warn_of_columns
from priornet.tables.raw import column_names, take_rows
from priornet.tables.target_columns import (
    FloatArray,
    TargetColumns,
    clip_targets,
    target_notes,
    target_scaling,
)
from priornet.training import Loss, Rows
from priornet.training.stack_training import TrainingSettings, predictive_nll, train_stack

if TYPE_CHECKING:
    import pandas as pd
    from torch.distributions import Distribution

__all__ = ["BaseRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class BaseRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Base of the estimators; not one itself."""

    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-2
    weight_decay: float | Auto = 1e-4
    epochs: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    patience: int | None = 50
    validation_fraction: float = 0.1
    calibration_fraction: float | Auto = "auto"
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
                numbers, text, categories or dates, with holes.
            y: Targets, shape ``(N,)`` or ``(N, K)``; K columns get a full covariance.
            sample_weight: Weight per row; 2 counts as two equal rows.
        """
        self.check_parameters()
        return self._fit_prepared(self._prepare(X, y, sample_weight))

    def _fit_prepared(self, prepared: Prepared) -> Self:
        return self._adopt(self._train(prepared), prepared)

    def _adopt(self, fitted: Fitted, prepared: Prepared) -> Self:
        """Calibrate a trained model, and make it this estimator's own."""
        fitted.calibrate(prepared.inputs, prepared.targets, prepared.split.calibration)
        self.n_features_in_ = prepared.preprocessor.n_features_in_
        self.fitted_ = fitted
        return self

    @abstractmethod
    def _train(self, prepared: Prepared) -> Fitted:
        """Train networks on a table."""

    def check_parameters(self) -> None:
        """Refuse settings that cannot work; :meth:`fit` does this first."""
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
        chosen_device(self.device)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        table = check_inputs(self, X)
        values, names, is_vector = check_targets(y, table)
        weight = check_weight(sample_weight, values)
        rows = np.arange(len(values))  # of the table as it was given
        if weight is not None and not weight.all():  # a row without weight is no row
            kept = np.flatnonzero(weight)
            table, values, weight = take_rows(table, kept), values[kept], weight[kept]
            rows = kept
        if isinstance(table, np.ndarray) and len(values) < 4 * SMALL:
            distinct = merge_equal_rows(table, values, weight)
            if len(distinct[0]) < SMALL:
                table, values, weight, first = distinct
                rows = rows[first]
        if len(values) < 2:
            raise ValueError(
                f"Found array with {len(values)} sample(s), n_samples={len(values)}, while a "
                "minimum of 2 is required."
            )
        rng = check_random_state(self.random_state)
        split = split_rows(len(values), self.calibration_fraction, rng)
        train = split.train.numpy()
        train_weight = None if weight is None else weight[train]
        preprocessor = fit_preprocessor(table, weight, train)
        row = row_names(X, rows)
        notes = column_notes(preprocessor.summaries_, row)
        warn_of_columns([*target_notes(values, names, row), *notes])
        values = clip_targets(values, train)
        scaling = target_scaling(values[train], train_weight, names)
        weight = np.ones(len(values)) if weight is None else weight / weight[train].mean()
        columns = TargetColumns(names, is_vector, scaling)
        return standardised(preprocessor, columns, table, values, weight, split, rng, self.device)

    def _train_networks(
        self,
        prepared: Prepared,
        head: HeadKind,
        loss: Loss,
        what: str,
        seeds: Sequence[int],
        data: Rows | None = None,
        extra: Tensor | None = None,
    ) -> Fitted:
        """Train networks on the training rows, each with rows of its own held out.

        Args:
            prepared: The table.
            head: What the networks predict.
            loss: Training loss per row; validation is by the NLL of the predictive.
            what: Shown beside the progress bar.
            seeds: One per network.
            data: The table's rows with what the loss wants, where it wants more than targets;
                further rows may follow.
            extra: Numbers of such further rows, out-of-domain inputs for every step.
        """
        rows, held = validation_split(prepared.split.train, self.validation_fraction, seeds)
        plan = make_plan(len(rows[0]), self.epochs, self.batch_size, self.patience)
        decay = weight_decay_for(len(rows[0]), self.weight_decay)
        network = Network(
            prepared.inputs.shape[1], tuple(self.hidden), prepared.targets.shape[1], head
        )
        stack = network.build(list(seeds), prepared.inputs)
        training = train_stack(
            stack,
            Rows(prepared.inputs, prepared.targets, prepared.weight) if data is None else data,
            rows,
            held,
            loss,
            predictive_nll,
            seeds,
            TrainingSettings(self.learning_rate, decay, plan, verbose=self.verbose, what=what),
            None if extra is None else [extra] * len(seeds),
        )
        return Fitted(prepared.preprocessor, prepared.columns, network, stack, training)

    def describe_columns(self) -> tuple[ColumnSummary, ...]:
        """How training read each column: as numbers, dates or labels, with range and counts.

        Each prints as one line. A loaded model knows kinds, ranges and labels, but has not kept
        how many values were missing or pooled.
        """
        check_is_fitted(self)
        return self.fitted_.preprocessor.summaries_

    # -- predicting -------------------------------------------------------------------------------

    def predict_all(
        self,
        X: Any,
        coverage: float = 0.9,
        method: Literal["predictive", "conformal"] = "predictive",
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
        method: Literal["predictive", "conformal"] = "predictive",
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
        self,
        X: Any,
        coverage: float = 0.9,
        method: Literal["predictive", "conformal"] = "predictive",
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds between which the target lies with a given probability.

        Args:
            X: Inputs.
            coverage: That probability, between 0 and 1.
            method: ``"predictive"`` takes the quantiles of the predictive: right where the model
                is. ``"conformal"`` scales its standard deviation by what the held-out rows needed:
                right on average over rows like them, whatever the model.

        Returns:
            Lower and upper bounds, each of the shape of the targets; of several columns each
            has the coverage by itself.
        """
        return self.predict_all(X).interval(coverage, method)

    def predict_familiarity(self, X: Any) -> FloatArray:
        """Return the in-domain score of each row: share of reference rows at least as uncertain.

        Between 0 and 1, which is ordinary; nan for models without knowledge uncertainty.
        """
        return self.predict_all(X).in_domain

    def predict_verdict(self, X: Any, return_columns: bool = False) -> Any:
        """Return one word per row: ``trust``, ``noisy`` or ``unfamiliar``.

        :mod:`priornet.estimators.verdict` defines them. A row with what training never had (a value
        missing where there was always one, a new label, a number far out of range, or too few
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
            warn_user(unseen_notice(found.unseen, row_index(X)))
        return found.verdict

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder; :func:`priornet.load` reads it.

        The folder holds ``weights.safetensors`` and ``config.json``, nothing that executes. It is
        written whole or not at all.
        """
        from priornet.estimators.files.persistence import save

        check_is_fitted(self)
        save(self, Path(path))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
