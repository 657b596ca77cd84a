"""Deep Evidential Regression."""

from __future__ import annotations

from dataclasses import dataclass

from priornet.estimators.base import BaseRegressor
from priornet.estimators.model import Fitted
from priornet.estimators.plan import network_seeds
from priornet.estimators.prepared import Prepared
from priornet.training.objectives import evidential

__all__ = ["EvidentialRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class EvidentialRegressor(BaseRegressor):
    """Deep Evidential Regression (Amini et al., 2020): evidence from the predictive's likelihood.

    It needs no out-of-domain inputs, but nothing teaches it what is out of domain either: its
    knowledge uncertainty follows the errors it made in training.

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
        """Refuse settings that cannot work."""
        super().check_parameters()
        if not self.coefficient >= 0:
            raise ValueError(f"`coefficient` must not be negative; got {self.coefficient}.")

    def _train(self, prepared: Prepared) -> Fitted:
        seeds, loss = network_seeds(prepared.rng, 1), evidential(self.coefficient)
        return self._train_networks(prepared, "normal-wishart", loss, "evidential", seeds)
