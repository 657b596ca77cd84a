"""A fitted model without scikit-learn around it: from raw rows to predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.estimators.held_out import Reference, conformal_rank, conformal_scores
from priornet.estimators.prediction import (
    IntervalMethod,
    Prediction,
    in_units,
    refuse,
    row_variances,
)
from priornet.nn import Stack, joint_belief, stack_outputs
from priornet.nn.architecture import Network
from priornet.tables.encoding import Unseen
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.target_columns import TargetColumns

__all__ = ["Fitted"]

FloatArray = NDArray[np.float64]

_FEW_HELD = 200  # with fewer held-out rows, all rows are reference rows


@dataclass
class Fitted:
    """Everything that predicting needs, and that a saved model holds."""

    preprocessor: TablePreprocessor
    targets: TargetColumns
    network: Network
    stack: Stack
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    """Summary of the training, ready for JSON."""
    reference: Reference = field(init=False)
    """Uncertainty of the reference rows."""
    calibration_scores: FloatArray = field(init=False)
    """Conformal scores of held-out rows, sorted per target, ``(n, K)``."""

    def calibrate(self, inputs: Tensor, targets: Tensor, held: Tensor) -> None:
        """Learn from held-out rows how wide intervals must be, and how uncertain ordinary rows are.

        Args:
            inputs: All rows, preprocessed.
            targets: Their targets, standardised.
            held: Numbers of the rows that no training saw.
        """
        belief = self.standard_belief(inputs[held])
        ordinary = belief if len(held) >= _FEW_HELD else self.standard_belief(inputs)
        self.reference = Reference.of(*row_variances(ordinary))
        predictive = belief.predictive()
        self.calibration_scores = conformal_scores(
            targets[held].double().cpu().numpy(),
            predictive.mean.numpy(),
            predictive.variance.sqrt().numpy(),
        )

    def standard_belief(self, inputs: Tensor) -> Any:
        """Return the belief about standardised targets at preprocessed inputs, in float64.

        Raises:
            PredictionError: A prediction overflows, as the networks give it or in units of the
                targets.
        """
        raw = stack_outputs(self.stack, inputs)
        refuse(~torch.isfinite(raw).all(-1).all(0))
        belief = joint_belief(self.stack, raw)
        shift, scale = (torch.from_numpy(part) for part in self.targets.scaling)
        refuse(~torch.isfinite(belief.predictive().mean * scale + shift).all(-1))
        return belief

    def belief(self, inputs: Tensor) -> Any:
        """Return the belief about targets in their own units."""
        return in_units(self.standard_belief(inputs), self.targets)

    def predict(
        self,
        table: Any,
        *,
        index: Any = None,
        coverage: float = 0.9,
        method: IntervalMethod = "predictive",
        dtype: Any = np.float64,
    ) -> Prediction:
        """Predict raw rows, in one pass of preprocessing and networks.

        Args:
            table: Rows, checked.
            index: Names of the rows.
            coverage: Coverage of the intervals.
            method: Method of the intervals.
            dtype: Floating type of the preprocessed inputs.
        """
        unseen = Unseen()
        inputs = self.preprocessor.transform(table, dtype=dtype, unseen=unseen)
        return Prediction(
            self.standard_belief(torch.from_numpy(inputs)),
            self.targets,
            self.reference,
            self.calibration_scores,
            unseen,
            index,
            coverage,
            method,
        )

    def has_conformal(self, coverage: float) -> bool:
        """Tell if enough rows were held out for conformal intervals of this coverage."""
        return conformal_rank(len(self.calibration_scores), coverage) is not None
