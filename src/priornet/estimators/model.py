"""A fitted model without scikit-learn around it: from raw rows to beliefs in target units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.distributions import GaussianEnsemble
from priornet.distributions.normal import Normal
from priornet.distributions.student_t import StudentT
from priornet.estimators.conformal import conformal_quantile, conformal_rank, conformal_scores
from priornet.estimators.verdict import FEWEST, WORDS, Reference
from priornet.nn import Stack
from priornet.nn.architecture import Network
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.target_columns import TargetColumns
from priornet.tables.unseen import Unseen
from priornet.uncertainty import Uncertainty, uncertainty

__all__ = ["Fitted", "PredictionError", "Variances", "stack_belief"]

FloatArray = NDArray[np.float64]

_CHUNK = 1 << 11  # rows that pass through the networks at once: their layers fit the cache
_FEW_HELD = 200  # with fewer held-out rows, all rows say what uncertainty is usual


class PredictionError(ArithmeticError):
    """A prediction that is no number: the weights, or the values of a row, are too large.

    Attributes:
        row: The first such row, counted from 0.
        n_wrong: How many there are.
    """

    def __init__(self, row: int, n_wrong: int) -> None:
        self.row, self.n_wrong = row, n_wrong
        more = f" (and in {n_wrong - 1} more)" if n_wrong > 1 else ""
        super().__init__(
            f"the prediction is not a finite number in row {row}{more}: the model's weights, or "
            "the values in that row, are too large; check the row, or fit the model again."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row, self.n_wrong)


def _refuse(wrong: Tensor) -> None:
    """Refuse the rows that are true, ``(N,)``."""
    if bool(wrong.any()):
        raise PredictionError(int(wrong.int().argmax()), int(wrong.sum()))


class Variances(Protocol):
    """The part of a record of uncertainty that says how familiar a row is."""

    @property
    def knowledge_variance(self) -> Tensor:
        """``(N, K)``."""
        ...

    @property
    def data_variance(self) -> Tensor:
        """``(N, K)``."""
        ...


@dataclass
class Fitted:
    """Everything that predicting needs, and that a saved model holds."""

    preprocessor: TablePreprocessor
    targets: TargetColumns
    network: Network
    stack: Stack
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    """What happened in training, ready for JSON."""
    reference: Reference = field(init=False)
    """What uncertainty is usual."""
    calibration_scores: FloatArray = field(init=False)
    """Conformal scores of held-out rows, sorted per target, ``(n, K)``."""

    def calibrate(self, inputs: Tensor, targets: Tensor, held: Tensor) -> None:
        """Learn from held-out rows how wide intervals must be, and what uncertainty is usual.

        Args:
            inputs: All rows, preprocessed.
            targets: Their targets, standardised.
            held: Numbers of the rows that no training saw.
        """
        belief = self.standard_belief(inputs[held])
        usual = belief if len(held) >= _FEW_HELD else self.standard_belief(inputs)
        self.reference = Reference.of(*self._variances(uncertainty(usual)))
        predictive = belief.predictive()
        self.calibration_scores = conformal_scores(
            targets[held].double().cpu().numpy(),
            predictive.mean.numpy(),
            predictive.variance.sqrt().numpy(),
        )

    def standard_belief(self, inputs: Tensor) -> Any:
        """Belief about standardised targets at preprocessed inputs; float64, batch ``(N,)``.

        Raises:
            PredictionError: The networks overflow, or what they predict, in units of the targets.
        """
        raw = _outputs(self.stack, inputs)
        _refuse(~torch.isfinite(raw).all(-1).all(0))
        belief = _meaning(self.stack, raw)
        shift, scale = (torch.from_numpy(part) for part in self.targets.scaling)
        _refuse(~torch.isfinite(belief.predictive().mean * scale + shift).all(-1))
        return belief

    def belief(self, inputs: Tensor) -> Any:
        """Belief about targets in their own units."""
        return self.moved(self.standard_belief(inputs))

    @torch.no_grad()
    def moved(self, belief: Any) -> Any:
        """A belief about standardised targets as one about targets in their own units."""
        shift, scale = (torch.from_numpy(part) for part in self.targets.scaling)
        return belief.affine(shift, scale)

    def in_units(self, record: Uncertainty) -> Uncertainty:
        """The uncertainty of standardised targets as that of targets in their own units.

        Measured before they are moved: far from zero, members would lose the digits in which they
        differ.
        """
        scale = torch.from_numpy(self.targets.scaling.scale)
        square, log_scale = scale.square(), scale.log().sum()
        total = record.total_entropy
        return replace(
            record,
            total_entropy=None if total is None else total + log_scale,
            data_entropy=record.data_entropy + log_scale,
            total_variance=record.total_variance * square,
            data_variance=record.data_variance * square,
            knowledge_variance=record.knowledge_variance * square,
        )

    def interval(self, predictive: Any, coverage: float, method: str) -> tuple[Tensor, Tensor]:
        """Bounds of each target at a coverage, ``(N, K)``."""
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie between 0 and 1; got {coverage:g}.")
        if method == "predictive":
            marginals, shape = predictive.marginals(), predictive.mean.shape
            edges = torch.tensor([(1 - coverage) / 2, (1 + coverage) / 2], dtype=torch.float64)
            upper = marginals.icdf(edges[1].expand(shape))
            if isinstance(marginals, (Normal, StudentT)):  # symmetric: half the work
                return 2 * marginals.loc - upper, upper
            return marginals.icdf(edges[0].expand(shape)), upper
        if method != "conformal":
            raise ValueError(f'unknown method "{method}"; choose one of: predictive, conformal.')
        factor = torch.from_numpy(conformal_quantile(self.calibration_scores, coverage))
        reach = factor * predictive.variance.sqrt()
        return predictive.mean - reach, predictive.mean + reach

    def has_conformal(self, coverage: float) -> bool:
        """Whether enough rows were held out for conformal intervals of this coverage."""
        return conformal_rank(len(self.calibration_scores), coverage) is not None

    def familiarity(self, record: Variances) -> FloatArray:
        """In-domain score of rows, from the uncertainty of their standardised targets."""
        return self.reference.familiarity(self._variances(record)[0])

    @property
    def is_enough(self) -> bool:
        """Whether there were rows enough for a row to be trusted or called noisy."""
        return len(self.reference.knowledge) >= FEWEST  # of few rows all are reference rows

    def verdict(self, record: Variances, unseen: Unseen) -> NDArray[np.object_]:
        """Return one word per row.

        Args:
            record: Uncertainty of the standardised targets.
            unseen: What the preprocessor met in the rows.
        """
        words = self.reference.words(*self._variances(record), unseen.rows)
        return words if self.is_enough else np.full_like(words, WORDS[2])

    @staticmethod
    def _variances(record: Variances) -> tuple[FloatArray, FloatArray]:
        """Knowledge and data variance of a row: the average over standardised targets."""
        parts = (record.knowledge_variance, record.data_variance)
        for part in parts:
            _refuse(part.isnan().any(-1))
        knowledge, data = (variance.mean(-1).numpy() for variance in parts)
        return knowledge, data


@torch.no_grad()
def stack_belief(stack: Stack, inputs: Tensor) -> Any:
    """What the networks of a stack believe together about inputs; float64, batch ``(N,)``.

    One network answers for itself; several Gaussian ones make an ensemble.
    """
    return _meaning(stack, _outputs(stack, inputs))


@torch.no_grad()
def _outputs(stack: Stack, inputs: Tensor) -> Tensor:
    """Outputs of each network, ``(S, N, n)``, in double precision."""
    inputs = inputs.to(stack.weights)
    pieces = [
        stack.raw(x.expand(stack.n_networks, *x.shape)).double().cpu() for x in inputs.split(_CHUNK)
    ]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, 1)


@torch.no_grad()
def _meaning(stack: Stack, raw: Tensor) -> Any:
    """The belief that outputs stand for."""
    if stack.n_networks == 1:
        return stack.head.distribution(raw[0])
    members = stack.head.distribution(raw)
    return GaussianEnsemble.from_precision_tril(
        members.loc, members.precision_tril, validate_args=False
    )
