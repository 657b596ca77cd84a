"""Regressors by likelihood alone: one network, an ensemble, Deep Evidential Regression."""

from __future__ import annotations

from dataclasses import dataclass, field

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.fitted import Fitted
from priornet.estimators.prepared import Prepared
from priornet.training.objectives import evidential, likelihood
from priornet.training.stack_training import network_seeds

__all__ = ["DeepEnsembleRegressor", "EvidentialRegressor", "GaussianRegressor"]


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
        random_state: Seed of splits, first weights and batches.
        device: Where to train and predict: ``"cpu"``, ``"cuda"``, or ``"auto"`` for a GPU where
            there is one.
        verbose: Show a progress bar.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> mean, std = GaussianRegressor().fit(X, X[:, 0]).predict(X, return_std=True)
    """

    def _train(self, prepared: Prepared) -> Fitted:
        seeds = network_seeds(prepared.rng, 1)
        return self._train_networks(prepared, "gaussian", likelihood, "Gaussian", seeds)


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

    def _train(self, prepared: Prepared) -> Fitted:
        seeds = network_seeds(prepared.rng, self.n_members)
        return self._train_networks(prepared, "gaussian", likelihood, "ensemble", seeds)


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

    def _train(self, prepared: Prepared) -> Fitted:
        seeds, loss = network_seeds(prepared.rng, 1), evidential(self.coefficient)
        return self._train_networks(prepared, "normal-wishart", loss, "evidential", seeds)
