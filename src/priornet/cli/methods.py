"""From a method's name on the command line to an estimator."""

from __future__ import annotations

from typing import Any

from priornet.cli.options import Method
from priornet.methods import method_named

__all__ = ["estimator_for"]


def estimator_for(
    method: Method, seed: int, *, epochs: int | None, calibration: float | None, verbose: bool
) -> Any:
    """Make an estimator with the defaults of its class, but for what is given."""
    from priornet.estimators import make_estimator

    chosen, settings = method_named(method), dict[str, Any]()
    if epochs is not None:
        settings["epochs"] = epochs
        if chosen.needs_teacher:
            settings["student_epochs"] = epochs
    if calibration is not None:
        settings["calibration_fraction"] = calibration
    return make_estimator(chosen.key, **settings, random_state=seed, verbose=verbose)
