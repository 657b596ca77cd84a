"""A fitted model without scikit-learn around it, and its prediction for rows.

The prediction is one record, made in one pass; all ``predict`` methods are views of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.distributions.gaussian import Normal
from priornet.distributions.student_t import StudentT
from priornet.distributions.transformed_belief import TransformedBelief
from priornet.estimators.held_out import (
    WORDS,
    Reference,
    conformal_quantile,
    conformal_rank,
    conformal_scores,
)
from priornet.nn import Stack, joint_belief, stack_outputs
from priornet.nn.architecture import Network
from priornet.nn.shared import SharedNetwork
from priornet.special.maps import CoordinateMaps
from priornet.tables.encoding import Unseen
from priornet.tables.learning import TargetColumns
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.trees import Trees
from priornet.uncertainty import Uncertainty, uncertainty

if TYPE_CHECKING:
    import pandas as pd
    from torch.distributions import Distribution


FloatArray = NDArray[np.float64]
IntervalMethod = Literal["predictive", "conformal"]

PER_TARGET = ("prediction", "lower", "upper", "total", "data", "knowledge")
PER_ROW = ("in_domain", "verdict", "unseen")
ENTROPIES = ("total_entropy", "data_entropy", "mutual_information", "epkl")
PREFIX = "priornet_"
_MOST_NAMED = 5
_FEW_HELD = 200  # with fewer held-out rows, all rows are reference rows


class PredictionError(ArithmeticError):
    """A prediction that is no number: the weights, or the values of a row, are too large.

    Attributes:
        row: The first such row, counted from 0.
        n_wrong: Number of such rows.
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

    @classmethod
    def at(cls, wrong: Tensor) -> Self:
        """Make the error about the rows that are marked, ``(N,)``."""
        return cls(int(wrong.int().argmax()), int(wrong.sum()))


def added_names(
    targets: Sequence[str], taken: Collection[str] = (), *, entropies: bool = False
) -> tuple[str, ...]:
    """Return the names of the columns of :meth:`Prediction.to_frame`, in their order.

    Where one of them is ``taken`` by the table, all begin with ``priornet_``.
    """
    suffixes = [""] if len(targets) == 1 else [f"_{name}" for name in targets]
    names = [f"{name}{suffix}" for suffix in suffixes for name in PER_TARGET]
    names += [*PER_ROW, *(ENTROPIES if entropies else ())]
    prefix = PREFIX if set(names) & set(taken) else ""
    found = tuple(f"{prefix}{name}" for name in names)
    for name in found:
        if name in taken or found.count(name) > 1:
            raise ValueError(f'the column "{name}", to be added, is there already; rename it.')
    return found


def is_scored(names: Sequence[str]) -> bool:
    """Tell if the columns of a table end in added ones; older files lack ``unseen``."""
    ends = itertools.product((PREFIX, ""), (PER_ROW, PER_ROW[:-1]), ((), ENTROPIES))
    for prefix, per_row, last in ends:
        end = [f"{prefix}{name}" for name in (*per_row, *last)]
        start = len(names) - len(PER_TARGET) - len(end)
        if start < 0:
            continue
        suffix = names[start].removeprefix(f"{prefix}{PER_TARGET[0]}")  # of the last target
        own = [f"{prefix}{name}{suffix}" for name in PER_TARGET]
        if list(names[start:]) == own + end:
            return True
    return False


@dataclass(frozen=True, eq=False)
class Prediction:
    """A model's prediction for rows, after one pass of preprocessing and networks.

    Each part is computed when it is first read. Parts per target have the units and the shape of
    the targets: ``(N,)`` where they were a vector, else ``(N, K)``.

    Attributes:
        standard_belief: Belief about standardised targets, batch shape ``(N,)``.
        targets: The target columns.
        reference: Uncertainty of the reference rows.
        calibration_scores: Conformal scores of the held-out rows, sorted, ``(n, K)``.
        unseen: Values in the rows that training never had.
        index: That of the frame with the inputs; None where they were no frame.
        coverage: Coverage of the interval from ``lower`` to ``upper``.
        method: Method of that interval: see :meth:`interval`.
    """

    standard_belief: Any
    targets: TargetColumns
    reference: Reference
    calibration_scores: FloatArray
    unseen: Unseen
    index: Any = field(default=None, repr=False)
    coverage: float = 0.9
    method: IntervalMethod = "predictive"

    @cached_property
    def belief(self) -> Any:
        """Return the belief about the targets, event shape ``(K,)``."""
        return in_units(self.standard_belief, self.targets)

    @cached_property
    def predictive(self) -> Any:
        """Return the distribution of the targets, event shape ``(K,)``."""
        return self.belief.predictive()

    @property
    def distribution(self) -> Distribution:
        """Return the predictive; with event shape ``()`` for targets given as a vector."""
        return self.predictive.univariate() if self.targets.is_vector else self.predictive

    @property
    def mean(self) -> FloatArray:
        """Return the mean of the predictive."""
        return self._shaped(self.predictive.mean)

    @property
    def std(self) -> FloatArray:
        """Return the standard deviation of the predictive."""
        return self._shaped(self.predictive.variance.sqrt())

    @property
    def lower(self) -> FloatArray:
        """Return the lower end of the interval."""
        return self._bounds[0]

    @property
    def upper(self) -> FloatArray:
        """Return the upper end of the interval."""
        return self._bounds[1]

    @property
    def total(self) -> FloatArray:
        """Compute total uncertainty as a standard deviation: total² = data² + knowledge²."""
        return self._deviation("total_covariance")

    @property
    def data(self) -> FloatArray:
        """Compute data uncertainty as a standard deviation."""
        return self._deviation("data_covariance")

    @property
    def knowledge(self) -> FloatArray:
        """Compute knowledge uncertainty as a standard deviation."""
        return self._deviation("knowledge_covariance")

    @cached_property
    def uncertainty(self) -> RowUncertainty:
        """Compute every measure of uncertainty, entropies included."""
        belief, scale = self._measured
        square, log_scale = scale.square(), scale.log().sum()
        parts: dict[str, Any] = vars(uncertainty(belief)).copy()
        for name, value in parts.items():
            if name.endswith("variance"):
                parts[name] = self._shaped(value * square)
            elif value is not None:  # information does not depend on units
                parts[name] = (value + log_scale if name.endswith("entropy") else value).numpy()
        return RowUncertainty(**parts, target_names=self.targets.names, index=self.index)

    @property
    def in_domain(self) -> FloatArray:
        """Return the in-domain score of each row; nan for models without knowledge uncertainty."""
        return self._standing[0]

    @property
    def verdict(self) -> NDArray[np.object_]:
        """Return a word for each row: see :mod:`priornet.estimators.held_out`."""
        return self._standing[1]

    def interval(self, coverage: float, method: str) -> tuple[FloatArray, FloatArray]:
        """Compute lower and upper bounds of each target.

        Args:
            coverage: Probability that a target lies between its bounds, between 0 and 1.
            method: ``"predictive"`` for quantiles of the predictive, ``"conformal"`` for its
                standard deviation times the factor that the held-out rows needed; of mapped
                targets on the scale of the networks.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie between 0 and 1; got {coverage:g}.")
        if method == "predictive":
            lower, upper = _quantiles(self.predictive, coverage)
        elif method == "conformal":
            factor = torch.from_numpy(conformal_quantile(self.calibration_scores, coverage))
            maps = self.targets.maps
            # Of mapped targets the bounds are found on their own scale, and mapped back.
            found = self.predictive if maps is None else self.predictive.base
            reach = factor * found.variance.sqrt()
            lower, upper = found.mean - reach, found.mean + reach
            if maps is not None:
                lower, upper = (CoordinateMaps(maps).inverse(end) for end in (lower, upper))
        else:
            raise ValueError(f'unknown method "{method}"; choose one of: predictive, conformal.')
        return self._shaped(lower), self._shaped(upper)

    def columns(self, *, entropies: bool = False) -> list[NDArray[Any] | None]:
        """Return the columns of :func:`added_names`.

        A measure without a closed form is None; ``unseen`` is None in rows without such columns.
        """
        parts = (self.mean, self.lower, self.upper, self.total, self.data, self.knowledge)
        matrices = [part.reshape(len(part), -1) for part in parts]
        n_targets = len(self.targets.names)
        found: list[Any] = [matrix[:, k] for k in range(n_targets) for matrix in matrices]
        found += self._standing
        unseen = self.unseen.columns
        unseen[~self.unseen.rows] = None
        found.append(unseen)
        if entropies:
            found += [getattr(self.uncertainty, name) for name in ENTROPIES]
        return found

    def to_frame(self, taken: Collection[str] = (), *, entropies: bool = False) -> pd.DataFrame:
        """Return the columns that ``priornet predict`` adds, with the index of the inputs.

        Args:
            taken: Names that must not be used twice: see :func:`added_names`.
            entropies: Add the measures of uncertainty in nats.
        """
        import pandas as pd

        n_rows = self.unseen.n_rows
        columns = {
            name: np.full(n_rows, np.nan) if values is None else values
            for name, values in zip(
                added_names(self.targets.names, taken, entropies=entropies),
                self.columns(entropies=entropies),
                strict=True,
            )
        }
        return pd.DataFrame(columns, index=self.index)

    def unseen_notice(self) -> str:
        """Name the first rows with values that training never had, and their columns."""
        columns, rows = self.unseen.columns, np.flatnonzero(self.unseen.rows)
        shown = [
            f"row {i if self.index is None else self.index[i]} ({columns[i]})"
            for i in rows[:_MOST_NAMED]
        ]
        more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
        return (
            f"{len(rows)} of {self.unseen.n_rows} rows are unfamiliar for what training never had "
            "(a missing value, a new label, a number far out of range, or too few values): "
            f"{', '.join(shown)}{more}; `return_columns=True` names the columns of each row "
            "instead."
        )

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        return self.interval(self.coverage, self.method)

    @cached_property
    def _standing(self) -> tuple[FloatArray, NDArray[np.object_]]:
        """Compute the in-domain score and the verdict of each row."""
        knowledge, data = row_variances(self.standard_belief)
        words = self.reference.words(knowledge, data, self.unseen.rows)
        if not self.reference.is_enough:
            words = np.full_like(words, WORDS[2])
        return self.reference.familiarity(knowledge), words

    def _shaped(self, values: Tensor) -> Any:
        """Convert ``(N, K)`` to an array of the shape that the targets had."""
        array = values.numpy()
        return array[:, 0] if self.targets.is_vector else array

    def _deviation(self, part: str) -> FloatArray:
        belief, scale = self._measured
        covariance = getattr(belief, part)()
        return self._shaped(covariance.diagonal(dim1=-2, dim2=-1).sqrt() * scale)

    @property
    def _measured(self) -> tuple[Any, Tensor]:
        """Return the belief whose uncertainty is measured, and the scale of its targets.

        Before the belief is moved to units of the targets: far from zero, members would lose the
        digits in which they differ. The variances of mapped targets depend on the place.
        """
        scale = torch.from_numpy(self.targets.scaling.scale)
        if self.targets.maps is None:
            return self.standard_belief, scale
        return self.belief, torch.ones_like(scale)


@dataclass(frozen=True)
class RowUncertainty:
    """Total, data and knowledge uncertainty of each row, in the units of the target.

    Entropies in nats: total = data + mutual information. Variances: total = data + knowledge; of
    shape ``(N,)`` for one target column given as a vector, else ``(N, K)``.

    Attributes:
        total_entropy: Entropy of the predictive; None where it has no closed form (an ensemble's).
        data_entropy: The part that more data would not remove.
        mutual_information: Knowledge uncertainty in nats; None where it has no closed form.
        epkl: Expected pairwise KL, an upper bound of the mutual information.
        total_variance: Variance of the predictive.
        data_variance: Its data part.
        knowledge_variance: Its knowledge part: the variance of the mean.
        target_names: Names of the target columns, for :meth:`to_frame`.
        index: That of the frame with the inputs; None where they were no frame.
    """

    total_entropy: FloatArray | None
    data_entropy: FloatArray
    mutual_information: FloatArray | None
    epkl: FloatArray
    total_variance: FloatArray
    data_variance: FloatArray
    knowledge_variance: FloatArray
    target_names: tuple[str, ...] = ("y",)
    index: Any = field(default=None, repr=False, compare=False)

    def measures(self) -> dict[str, FloatArray]:
        """Return the measures by name, without those of None."""
        measures = {own.name: getattr(self, own.name) for own in fields(Uncertainty)}
        return {name: value for name, value in measures.items() if value is not None}

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return one row per input, and one column per measure (and target); None is left out.

        Args:
            index: Index of the frame; by default that of the inputs, or positions.
        """
        import pandas as pd

        columns: dict[str, FloatArray] = {}
        for name, value in self.measures().items():
            if value.ndim == 1:
                columns[name] = value
            else:
                columns |= {f"{name}_{own}": value[:, k] for k, own in enumerate(self.target_names)}
        return pd.DataFrame(columns, index=self.index if index is None else index)


def in_units(belief: Any, targets: TargetColumns) -> Any:
    """Move a belief about standardised targets to the units of the targets."""
    moved = belief.affine(*map(torch.from_numpy, targets.scaling))
    return moved if targets.maps is None else TransformedBelief(moved, CoordinateMaps(targets.maps))


def label_counts(preprocessor: TablePreprocessor) -> list[int]:
    """Count the labels of each raw column, 0 for numbers, as trees want it."""
    return [len(column.categories) for column in preprocessor.columns_]


def row_variances(belief: Any) -> tuple[FloatArray, FloatArray]:
    """Compute knowledge and data variance of each row: the average over standardised targets."""
    knowledge = belief.knowledge_covariance().diagonal(dim1=-2, dim2=-1)
    data = belief.data_covariance().diagonal(dim1=-2, dim2=-1)
    for part in (knowledge, data):
        if bool(part.isnan().any()):
            raise PredictionError.at(part.isnan().any(-1))
    return knowledge.mean(-1).numpy(), data.mean(-1).numpy()


def _quantiles(predictive: Any, coverage: float) -> tuple[Tensor, Tensor]:
    """Compute the bounds that leave out the same probability on both sides, ``(N, K)``."""
    marginals, shape = predictive.marginals(), predictive.mean.shape
    edges = torch.tensor([(1 - coverage) / 2, (1 + coverage) / 2], dtype=torch.float64)
    upper = marginals.icdf(edges[1].expand(shape))
    if isinstance(marginals, (Normal, StudentT)):  # symmetric: half the work
        return 2 * marginals.loc - upper, upper
    return marginals.icdf(edges[0].expand(shape)), upper


@dataclass
class Fitted:
    """Everything that predicting needs, and that a saved model holds."""

    preprocessor: TablePreprocessor
    targets: TargetColumns
    network: Network | SharedNetwork
    stack: Stack
    training: dict[str, Any] = field(default_factory=dict[str, Any])
    """Summary of the training, ready for JSON."""
    trees: Trees | None = None
    """Trees whose prediction the networks read behind the inputs of the preprocessor."""
    reference: Reference = field(init=False)
    """Uncertainty of the reference rows."""
    calibration_scores: FloatArray = field(init=False)
    """Conformal scores of held-out rows, sorted per target, ``(n, K)``."""

    def calibrate(self, inputs: Tensor, targets: Tensor, held: Tensor) -> None:
        """Learn the width of intervals from held-out rows, and the uncertainty of ordinary rows."""
        belief = self.standard_belief(inputs[held])
        ordinary = belief if len(held) >= _FEW_HELD else self.standard_belief(inputs)
        predictive, known = belief.predictive(), targets[held].double().cpu().numpy()
        mean, std = predictive.mean.numpy(), predictive.variance.sqrt().numpy()
        self.reference = Reference.of(*row_variances(ordinary))
        self.calibration_scores = conformal_scores(known, mean, std)

    def standard_belief(self, inputs: Tensor) -> Any:
        """Return the belief about standardised targets at preprocessed inputs, in float64.

        Predictions that overflow are refused, as the networks give them or in units of the targets.
        """
        raw = stack_outputs(self.stack, inputs)
        fine = torch.isfinite(raw).all(-1).all(0)
        if not bool(fine.all()):
            raise PredictionError.at(~fine)
        belief = joint_belief(self.stack, raw)
        shift, scale = map(torch.from_numpy, self.targets.scaling)
        fine = torch.isfinite(belief.predictive().mean * scale + shift).all(-1)
        if not bool(fine.all()):
            raise PredictionError.at(~fine)
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
        """Predict checked rows, in one pass; ``dtype`` is that of the preprocessed inputs."""
        unseen = Unseen()
        inputs = self.inputs(table, dtype, unseen)
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

    def inputs(
        self, table: Any, dtype: Any = np.float64, unseen: Unseen | None = None
    ) -> NDArray[Any]:
        """Return what the networks read of checked rows: see :meth:`TablePreprocessor.transform`.

        Where there are trees, their prediction follows.
        """
        matrix = self.preprocessor.transform(table, dtype=dtype, unseen=unseen)
        if self.trees is None:
            return matrix
        witness = self.trees.predict(self.preprocessor.columns_matrix(table))
        return np.concatenate([matrix, witness.astype(dtype)], 1)

    def has_conformal(self, coverage: float) -> bool:
        """Tell if enough rows were held out for conformal intervals of this coverage."""
        return conformal_rank(len(self.calibration_scores), coverage) is not None
