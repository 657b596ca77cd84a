"""Conformal intervals want held-out rows: what to do where a command finds too few."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from priornet.cli.errors import InputError, one_line
from priornet.cli.options import Interval

__all__ = ["check_interval"]


def check_interval(path: Path, model: Any, interval: Interval, coverage: float) -> None:
    """Refuse a coverage between 0 and 1 that a model's held-out rows are too few for."""
    if interval is not Interval.CONFORMAL:
        return
    from priornet.estimators import DistilledRegressor
    from priornet.estimators.conformal import conformal_quantile

    try:
        conformal_quantile(model.fitted_.calibration_scores, coverage)
    except ValueError as error:
        reason = one_line(error).partition(": ")[0]
        way = "fit again with more rows, or with a larger --calibration"
        if isinstance(model, DistilledRegressor):  # of `fit`, or of `distill`
            way += "; a student of `priornet distill`: with --target and more rows"
        raise InputError(f"{path}: {reason}; {way}.") from error
