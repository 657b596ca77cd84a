"""Regressors that learn from targets: one network, an ensemble, an evidential and a prior net."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

from priornet.distributions import NormalWishart
from priornet.estimators.base_regressor import BaseRegressor, Task
from priornet.estimators.prediction import Fitted
from priornet.estimators.prepared import Prepared, check_inputs
from priornet.priors import semi_informative_prior, stack_priors
from priornet.tables.factor_analysis import FactorAnalysisGenerator
from priornet.training import Rows
from priornet.training.objectives import evidential, likelihood, prior_network
from priornet.training.stack_training import Auto, network_seeds


class GaussianRegressor(BaseRegressor):
    """One network that predicts a Gaussian, by likelihood.

    It learns the noise of the targets only: knowledge uncertainty is zero.

    Args:
        hidden: Width of each hidden layer.
        learning_rate: Adam's learning rate at the start; it falls to zero along half a cosine.
        weight_decay: L2 penalty; ``"auto"`` for 0.2 over the number of training rows.
        epochs: Passes through the rows at most; ``"auto"`` for some 8000 steps.
        batch_size: Rows per step; ``"auto"`` for a thirtieth of the rows, 32 to 512.
        patience: Epochs without a better validation loss after which a network stops; None to train
            to the end. Either way the weights of the best epoch are kept.
        validation_fraction: Share of the training rows held out to find the best epoch; of few rows
            at least four, or three in ten. 0 to hold none out.
        calibration_fraction: Share of the rows that no training sees, for conformal intervals;
            ``"auto"`` for a tenth, at most 1000, and none of fewer than 100 rows.
        target_transform: Scale on which targets are learnt: ``"log"`` (positive targets, which get
            positive intervals), ``"asinh"``, ``"yeo-johnson"``, ``"quantile"``, ``"none"``, or
            ``"auto"`` for the one of the highest held-out likelihood. Predictions have the units of
            the targets.
        max_labels: Inputs of a column of text at most, one for each label; rarer labels share one.
            ``"auto"`` for one per label of at least three rows, up to 671 of all columns together.
        random_state: Seed of splits, first weights and batches.
        device: Where to train and predict: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU where
            there is one.
        verbose: Show a progress bar.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> mean, std = GaussianRegressor().fit(X, X[:, 0]).predict(X, return_std=True)
    """

    def _task(self, prepared: Prepared) -> Task:
        return Task("Gaussian", "gaussian", likelihood, network_seeds(prepared.rng, 1))


@dataclass(kw_only=True, eq=False, repr=False)
class DeepEnsembleRegressor(BaseRegressor):
    """Several Gaussian networks, trained side by side as one stack (Lakshminarayanan et al., 2017).

    Their average spread is data uncertainty, their disagreement knowledge uncertainty. Each member
    starts from its own weights and holds out its own validation rows.

    Args:
        n_members: Number of networks.
        hidden: Width of each hidden layer. This and the rest: see :class:`GaussianRegressor`.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> model = DeepEnsembleRegressor(5, random_state=0).fit(X, X[:, 0] ** 2)
        >>> lower, upper = model.predict_interval(X, coverage=0.9)
    """

    n_members: int = field(default=10, kw_only=False)

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work."""
        super().check_parameters()
        if self.n_members < 2:
            raise ValueError(
                "`n_members` must be at least 2 (a single network is a GaussianRegressor); got "
                f"{self.n_members}."
            )

    def _task(self, prepared: Prepared) -> Task:
        return Task("ensemble", "gaussian", likelihood, network_seeds(prepared.rng, self.n_members))


@dataclass(kw_only=True, eq=False, repr=False)
class EvidentialRegressor(BaseRegressor):
    """Deep Evidential Regression (Amini et al., 2020): evidence from the predictive's likelihood.

    It needs no out-of-domain inputs, and learns nothing about them: its knowledge uncertainty
    follows the errors in training.

    Args:
        coefficient: Weight of the penalty on evidence for wrong predictions.
        hidden: Width of each hidden layer. This and the rest: see
            :class:`~priornet.GaussianRegressor`.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> model = EvidentialRegressor(random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.predict_belief(X).k_dim
        1
    """

    coefficient: float = 0.01

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work."""
        super().check_parameters()
        if not self.coefficient >= 0:
            raise ValueError(f"`coefficient` must not be negative; got {self.coefficient}.")

    def _task(self, prepared: Prepared) -> Task:
        seeds, loss = network_seeds(prepared.rng, 1), evidential(self.coefficient)
        return Task("evidential", "normal-wishart", loss, seeds)


_N_OUT = 10_000
_BELIEFS = (3e-3, 1e-4)  # of the prior: the first for most tables, the other for little noise


@dataclass(kw_only=True, eq=False, repr=False)
class PriorNetRegressor(BaseRegressor):
    r"""A Normal-Wishart Prior Network: reverse KL with out-of-domain inputs, Eqs. (8) to (11).

    Where there is data, a target counts :math:`\hat\beta` times against the prior; on out-of-domain
    inputs the network returns to the prior. These are drawn from a factor analysis of the training
    inputs with three times its covariance, unless ``fit`` gets others.
    The first steps learn to tell in-domain from out-of-domain inputs, and no target yet: on small
    tables the best epoch is one of the first.

    Args:
        beta: Count of each target against the prior, :math:`\hat\beta`.
        gamma: Weight of the out-of-domain loss.
        prior_belief: Belief :math:`\kappa_0` of the prior; ``"auto"`` trains two networks side by
            side, with 0.003 and with 0.0001, and keeps the second where its validation NLL is
            clearly better: on tables with little noise.
        prior_excess: Its degrees of freedom in excess, :math:`\nu_0 - K - 1`; ``"auto"`` for as
            much as its belief.
        prior_match: Moment of the prior that follows the targets: see
            :func:`~priornet.priors.semi_informative_prior`.
        ood_spread: Factor on the covariance of generated out-of-domain inputs; the paper has 3.
        ood_ramp: Share of the epochs over which ``gamma`` grows from 0. On small tables, where the
            best epoch is one of the first, a ramp weakens the detection of out-of-domain rows.
        warm_up: Share of the epochs in which no target is learnt, only which inputs are in-domain.
        hidden: Width of each hidden layer. This and the rest: see
            :class:`~priornet.GaussianRegressor`.

    Note:
        The paper has :math:`\hat\beta` = 100, :math:`\gamma` = 0.5 and ``prior_match="precision"``.
        At 100 the targets outweighed the out-of-domain inputs on the tables on which we chose these
        defaults, and small tables were overfitted more. Belief and excess of the prior also keep
        the data variance above some :math:`(\kappa_0 + d_0) / \hat\beta` times that of the
        targets. That helps small tables and hurts tables without noise; hence the two beliefs.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> model = PriorNetRegressor(random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.predict_uncertainty(X).knowledge_variance.shape
        (200,)
    """

    beta: float = 15.0
    gamma: float = 2.0
    prior_belief: float | Auto = "auto"
    prior_excess: float | Auto = "auto"
    prior_match: Literal["precision", "variance"] = "variance"
    ood_spread: float = 3.0
    ood_ramp: float = 0.0
    warm_up: float = 0.02
    weight_decay: float | Auto = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_ood: Any = None) -> Self:
        """Learn from a table.

        Args:
            X: Inputs, shape ``(N, D)``: an array of numbers, or a table whose columns may be
                numbers, text, categories or dates, with missing values.
            y: Targets, shape ``(N,)`` or ``(N, K)``; K columns get a full covariance.
            sample_weight: Weight per row; 2 counts as two equal rows.
            X_ood: Out-of-domain inputs with the same columns; by default generated.
        """
        self._X_ood = X_ood
        try:
            return super().fit(X, y, sample_weight)
        finally:
            del self._X_ood

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work."""
        super().check_parameters()
        for name in ("beta", "prior_belief", "prior_excess"):
            value = getattr(self, name)
            if value != "auto" and not value > 0:
                raise ValueError(f"`{name}` must be positive; got {value}.")
        if not self.gamma >= 0:
            raise ValueError(f"`gamma` must not be negative; got {self.gamma}.")
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"`warm_up` must lie in [0, 1); got {self.warm_up}.")

    def _train(self, prepared: Prepared) -> Fitted:
        fitted = super()._train(prepared)
        return fitted if fitted.stack.n_networks == 1 else _better(fitted, len(prepared.train))

    def _task(self, prepared: Prepared) -> Task:
        targets = prepared.targets[prepared.train]
        priors = self._priors(targets)
        # One seed for both: they differ in their prior alone, and hold out the same rows.
        seeds = network_seeds(prepared.rng, 1) * len(priors)
        ood = self._ood_inputs(prepared)
        n_in, n_out = len(prepared.inputs), len(ood)
        # A column beside the targets is 1 for in-domain rows and 0 for out-of-domain rows.
        marked = torch.cat([prepared.targets, prepared.targets.new_ones(n_in, 1)], -1)
        data = Rows(
            torch.cat([prepared.inputs, ood]),
            pad(marked, (0, 0, 0, n_out)),
            pad(prepared.weight, (0, n_out), value=1.0),
        )
        # The goal of an in-domain row during the warm-up: all targets, counted beta times.
        pooled = semi_informative_prior(targets, self.beta, self.beta, self.prior_match)
        prior, ramp = stack_priors(priors), self.ood_ramp
        loss = prior_network(
            prior, self.beta, self.gamma, ramp=ramp, warm_up=self.warm_up, pooled=pooled
        )
        extra = torch.arange(n_in, n_in + n_out) if self.gamma > 0 else None
        return Task("prior net", "normal-wishart", loss, seeds, data, extra)

    def _priors(self, targets: Tensor) -> list[NormalWishart]:
        """Return the prior, or the priors to choose from."""
        beliefs = _BELIEFS if self.prior_belief == "auto" else (self.prior_belief,)
        excesses = beliefs if self.prior_excess == "auto" else [self.prior_excess] * len(beliefs)
        return [
            semi_informative_prior(targets, belief, excess, self.prior_match)
            for belief, excess in zip(beliefs, excesses, strict=True)
        ]

    def _ood_inputs(self, prepared: Prepared) -> Tensor:
        """Return preprocessed out-of-domain inputs."""
        if self._X_ood is not None:
            X_ood = check_inputs(self, self._X_ood, known=prepared.preprocessor)
            ood = torch.from_numpy(prepared.preprocessor.transform(X_ood))
            return ood.to(prepared.inputs)
        inputs, weight = (part[prepared.train] for part in (prepared.inputs, prepared.weight))
        generator = FactorAnalysisGenerator(spread=self.ood_spread).fit(
            inputs.cpu().numpy(), prepared.preprocessor.source_, weight.cpu().numpy()
        )
        source = Generator().manual_seed(network_seeds(prepared.rng, 1)[0])
        return generator.sample(_N_OUT, source, dtype=torch.float64).to(prepared.inputs)


def _better(fitted: Fitted, n_rows: int) -> Fitted:
    """Choose the first of two networks, unless the other is better by more than noise."""
    found = fitted.training["validation_loss"] or (0.0, 0.0)
    first, other = (math.inf if math.isnan(loss) else loss for loss in found)  # diverged
    n_held = max(n_rows - fitted.training["n_rows"], 1)
    best = int(first - other > 1 / math.sqrt(n_held))
    training = {
        name: [value[best]] if isinstance(value, list) else value
        for name, value in fitted.training.items()
    }
    training["prior_belief"] = _BELIEFS[best]
    return replace(fitted, stack=fitted.stack.select([best]), training=training)
