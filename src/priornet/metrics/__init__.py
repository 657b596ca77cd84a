"""How good a prediction and its uncertainty are: tensors in, one number or one curve out."""

from priornet.metrics.detection import ood_auroc
from priornet.metrics.rejection import (
    RejectionCurve,
    prediction_rejection_ratio,
    rejection_curve,
)

__all__ = ["RejectionCurve", "ood_auroc", "prediction_rejection_ratio", "rejection_curve"]
