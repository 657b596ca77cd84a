"""Deep Evidential Regression."""

from __future__ import annotations

from typing import Any

from priornet.estimators.base import BaseRegressor
from priornet.estimators.model import Fitted
from priornet.estimators.plan import Auto, network_seeds
from priornet.estimators.prepared import Prepared
from priornet.training.objectives import evidential

__all__ = ["EvidentialRegressor"]


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

    def __init__(
        self,
        *,
        coefficient: float = 0.01,
        hidden: tuple[int, ...] = (64, 64),
        learning_rate: float = 1e-2,
        weight_decay: float | Auto = 1e-4,
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        patience: int | None = 50,
        validation_fraction: float = 0.1,
        calibration_fraction: float | Auto = "auto",
        random_state: Any = None,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        super().__init__(
            hidden=hidden,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            epochs=epochs,
            batch_size=batch_size,
            patience=patience,
            validation_fraction=validation_fraction,
            calibration_fraction=calibration_fraction,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.coefficient = coefficient

    def check_parameters(self) -> None:
        """Refuse settings that cannot work."""
        super().check_parameters()
        if not self.coefficient >= 0:
            raise ValueError(f"`coefficient` must not be negative; got {self.coefficient}.")

    def _train(self, prepared: Prepared) -> Fitted:
        seeds, loss = network_seeds(prepared.rng, 1), evidential(self.coefficient)
        return self._train_networks(prepared, "normal-wishart", loss, "evidential", seeds)
