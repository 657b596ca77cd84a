"""Scores of a prediction and its uncertainty: tensors in, one number or one curve out."""

from priornet.metrics.calibration import (
    LEVELS,
    CalibrationCurve,
    Coverage,
    calibration_curve,
    coverage,
    miscalibration_area,
    pit,
)
from priornet.metrics.depth import DEPTH_METRICS, DepthErrors, depth_errors, depth_metrics
from priornet.metrics.ranking import (
    RejectionCurve,
    ood_auroc,
    prediction_rejection_ratio,
    rejection_curve,
    spearman,
)
from priornet.metrics.scoring import crps, interval_score, nll, rmse

__all__ = [
    "DEPTH_METRICS",
    "LEVELS",
    "CalibrationCurve",
    "Coverage",
    "DepthErrors",
    "RejectionCurve",
    "calibration_curve",
    "coverage",
    "crps",
    "depth_errors",
    "depth_metrics",
    "interval_score",
    "miscalibration_area",
    "nll",
    "ood_auroc",
    "pit",
    "prediction_rejection_ratio",
    "rejection_curve",
    "rmse",
    "spearman",
]
