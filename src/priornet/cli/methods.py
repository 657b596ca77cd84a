"""From a method's name on the command line to an estimator."""

from __future__ import annotations

from typing import Any

from priornet.cli.options import Method

__all__ = ["make_estimator"]


def make_estimator(
    method: Method, seed: int, *, epochs: int | None, calibration: float | None, verbose: bool
) -> Any:
    """An estimator with the defaults of its class, but for what is given."""
    from priornet import estimators

    made: dict[Method, tuple[type[Any], dict[str, Any]]] = {
        Method.SINGLE: (estimators.GaussianRegressor, {}),
        Method.ENSEMBLE: (estimators.DeepEnsembleRegressor, {}),
        Method.RKL: (estimators.PriorNetRegressor, {}),
        Method.ENDD: (estimators.DistilledRegressor, {"objective": "endd"}),
        Method.END: (estimators.DistilledRegressor, {"objective": "end"}),
        Method.MD_END: (estimators.DistilledRegressor, {"objective": "md-end"}),
        Method.DER: (estimators.EvidentialRegressor, {}),
    }
    kind, settings = made[method]
    if epochs is not None:
        settings["epochs"] = epochs
        if kind is estimators.DistilledRegressor:
            settings["student_epochs"] = epochs
    if calibration is not None:
        settings["calibration_fraction"] = calibration
    return kind(**settings, random_state=seed, verbose=verbose)
