"""The estimators by name, and the estimator of each method."""

from __future__ import annotations

from typing import Any

from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.distilled import DistilledRegressor
from priornet.estimators.regressors import (
    DeepEnsembleRegressor,
    EvidentialRegressor,
    GaussianRegressor,
    PriorNetRegressor,
)
from priornet.estimators.shared import SharedPriorRegressor
from priornet.methods import METHODS

ESTIMATORS: dict[str, type[BaseRegressor]] = {
    kind.__name__: kind
    for kind in (
        GaussianRegressor,
        DeepEnsembleRegressor,
        DistilledRegressor,
        PriorNetRegressor,
        EvidentialRegressor,
        SharedPriorRegressor,
    )
}


def make_estimator(method: str, **settings: Any) -> BaseRegressor:
    """Make the estimator of a method, with the defaults of its class but for some settings.

    Args:
        method: Its name in results, one of :data:`priornet.methods.METHODS`.
        settings: Parameters of the estimator.

    Example:
        >>> make_estimator("EnD", random_state=0)
        DistilledRegressor(objective='end', random_state=0)
    """
    found = METHODS.get(method)
    if found is None or found.estimator is None:
        known = ", ".join(name for name, one in METHODS.items() if one.estimator)
        raise ValueError(f'no estimator for method "{method}"; choose one of: {known}.')
    if found.objective is not None:
        settings["objective"] = found.objective
    return ESTIMATORS[found.estimator](**settings)
