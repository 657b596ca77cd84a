"""A fitted estimator as a ``torch.export`` program (``.pt2``), for libtorch or AOTInductor.

Inputs are raw columns ``(rows, columns)`` in double precision, in the form of
:mod:`priornet.export.interface`. Outputs are those of the ONNX graph.
"""

from __future__ import annotations

import copy
import io
import json
import os
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart, TransformedBelief
from priornet.distributions.factors import Factor
from priornet.distributions.mixture import (
    _begin,  # pyright: ignore[reportPrivateUsage] (the same search, as a loop in the program)
    _Search,  # pyright: ignore[reportPrivateUsage]
    _step,  # pyright: ignore[reportPrivateUsage]
)
from priornet.estimators.base_regressor import BaseRegressor
from priornet.estimators.held_out import NOISY, WORDS
from priornet.estimators.prediction import Fitted
from priornet.export.interface import (
    Interval,
    describe_columns,
    fitted_part,
    interval_of,
    normal_quantile,
    origin,
    quiet,
)
from priornet.export.onnx.functions import evidence_series
from priornet.export.torch_trees import TreesProgram
from priornet.nn.shared import SharedMLP
from priornet.special.maps import CoordinateMaps
from priornet.tables.encoding import RawColumn
from priornet.tables.preprocessing import LIMIT, TablePreprocessor
from priornet.uncertainty import Uncertainty, uncertainty
from priornet.writing import write_bytes

METADATA = "priornet.json"
"""Name of the metadata in the file."""
_MOST_STEPS = 120
_NO_LABEL = -2.0  # in no column


def to_torch_export(
    model: BaseRegressor,
    path: str | os.PathLike[str] | None = None,
    *,
    coverage: float = 0.9,
    interval: Literal["predictive", "conformal"] = "predictive",
) -> Any:
    """Write a fitted estimator with ``torch.export``, for any number of rows.

    Args:
        model: Fitted.
        path: File to write, usually ``*.pt2``; None to return the program only.
        coverage: Coverage of the interval from ``lower`` to ``upper``.
        interval: Its method: see :meth:`~priornet.BaseRegressor.predict_interval`.

    Returns:
        The ``torch.export.ExportedProgram``.
    """
    fitted = fitted_part(model)
    part = Program(fitted, interval_of(fitted, coverage, interval)).eval()
    example = torch.zeros(3, fitted.preprocessor.n_features_in_, dtype=torch.float64)
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad(), quiet("torch.export"):
        program = torch.export.export(part, (example,), dynamic_shapes={"columns": {0: rows}})
    if path is not None:
        columns = describe_columns(fitted.preprocessor)
        about = origin(model, coverage, interval) | {"columns": columns, "verdicts": list(WORDS)}
        buffer = io.BytesIO()
        torch.export.save(program, buffer, extra_files={METADATA: json.dumps(about)})
        write_bytes(Path(path), buffer.getvalue())
    return program


class Program(nn.Module):
    """Raw columns to mean, interval and uncertainty, in units of the targets."""

    shift: Tensor
    scale: Tensor
    series: Tensor
    """Quantile of a Student-T: see :func:`priornet.export.onnx.functions.evidence_series`."""
    reference: Tensor
    """Knowledge variances of reference rows, sorted; empty without knowledge uncertainty."""

    def __init__(self, fitted: Fitted, interval: Interval) -> None:
        super().__init__()
        self._interval, self._is_vector = interval, fitted.targets.is_vector
        maps = fitted.targets.maps
        self._maps = None if maps is None else CoordinateMaps(maps)
        self.columns = RawColumns(fitted.preprocessor)
        self.trees = None if fitted.trees is None else TreesProgram(fitted.trees)
        self.stack: Any = copy.deepcopy(fitted.stack).cpu().requires_grad_(False)
        if isinstance(self.stack, SharedMLP):
            self.stack.freeze()
        for name, part in zip(("shift", "scale"), fitted.targets.scaling, strict=True):
            self.register_buffer(name, torch.from_numpy(part))
        coefficients = evidence_series(fitted.network.n_targets, interval.coverage)[:, 2]
        self.register_buffer("series", torch.from_numpy(coefficients.copy()))
        reference = fitted.reference
        self._noisy, self._limit = NOISY * reference.data, reference.limit
        self._is_enough = fitted.reference.is_enough
        knowledge = reference.knowledge if reference.has_knowledge else reference.knowledge[:0]
        self.register_buffer("reference", torch.tensor(knowledge))

    def forward(self, columns: Tensor) -> dict[str, Tensor]:
        """Return the outputs by name, for raw columns ``(rows, columns)``."""
        inputs = self.columns(columns)
        if self.trees is not None:
            inputs = torch.cat([inputs, self.trees(columns)], 1)
        standard = self._belief(inputs)
        belief, record = standard.affine(self.shift, self.scale), uncertainty(standard)
        measured = {name: value for name, value in vars(record).items() if value is not None}
        for name in measured:  # measured before the shift, which costs members their digits
            if name.endswith("variance"):
                measured[name] = measured[name] * self.scale.square()
            elif name.endswith("entropy"):
                measured[name] = measured[name] + self.scale.log().sum()
        mean = belief.predictive().mean
        odd = self.columns.unseen(columns) | ~mean.isfinite().all(-1)
        lower, upper = self._bounds(belief, mean, measured["total_variance"])
        if self._maps is not None:
            lower, upper = self._maps.inverse(lower), self._maps.inverse(upper)
            mapped = TransformedBelief(belief, self._maps)
            mean = mapped.predictive().mean
            again = vars(uncertainty(mapped)).items()
            measured = {name: value for name, value in again if value is not None}
        found = {"mean": mean, "lower": lower, "upper": upper, **measured}
        if self._is_vector:
            found = {name: v.squeeze(-1) if v.dim() > 1 else v for name, v in found.items()}
        return found | self._standing(record, odd)

    def _standing(self, record: Uncertainty, odd: Tensor) -> dict[str, Tensor]:
        """Compute in-domain score and number of the verdict, ``(rows,)``."""
        knowledge, data = record.knowledge_variance.mean(-1), record.data_variance.mean(-1)
        verdict = (data.sqrt() > self._noisy).long()
        verdict = torch.where(odd, 2, verdict)
        if not self._is_enough:
            verdict = torch.full_like(verdict, 2)
        n = len(self.reference)
        if not n:
            return {"verdict": verdict}
        below = torch.searchsorted(self.reference, knowledge).double()
        verdict = torch.where(knowledge <= self._limit, verdict, 2)  # nan is unfamiliar
        return {"in_domain": (1 + n - below) / (1 + n), "verdict": verdict}

    def _belief(self, inputs: Tensor) -> Any:
        """Compute the belief like the estimator: only the networks in their own precision."""
        stack = self.stack
        inputs = inputs.to(stack.weights.dtype)
        raw = stack.raw(inputs.expand(stack.n_networks, *inputs.shape)).double()
        return stack.joint(raw)

    def _bounds(self, belief: Any, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Compute both ends of the interval, ``(rows, K)``."""
        coverage, factors = self._interval.coverage, self._interval.factors
        z = normal_quantile(coverage)
        if factors is not None:
            reach = mean.new_tensor(factors) * variance.sqrt()
        elif isinstance(belief, Gaussian):
            reach = z * variance.sqrt()
        elif isinstance(belief, NormalWishart):
            excess = belief.excess.unsqueeze(-1)
            v = 2 / (excess + 2)
            terms = torch.cos(torch.arange(len(self.series)) * torch.acos(1 - 2 * v))
            growth = torch.exp((terms * self.series).sum(-1, keepdim=True))
            reach = z * growth * (variance * (excess * v * 0.5)).sqrt()
        else:
            return _mixture_bounds(belief, coverage)
        return mean - reach, mean + reach


def _mixture_bounds(belief: GaussianEnsemble, coverage: float) -> tuple[Tensor, Tensor]:
    """Find both ends in one search, the upper one in the mirrored mixture."""
    # torch offers loops to programs under this name only.
    from torch._higher_order_ops.while_loop import while_loop  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    scales = Factor(belief.precision_tril, of_precision=True).deviations()
    means = torch.stack([belief.means, -belief.means], 1)  # (M, 2, rows, K)
    p = torch.full_like(means[0], (1 - coverage) / 2)
    start = _begin(p, means, scales.unsqueeze(1).expand_as(means))

    def going(*state: Tensor) -> Tensor:
        *_, left, n = state
        return left & (n < _MOST_STEPS)

    def step(*state: Tensor) -> tuple[Tensor, ...]:
        *search, _, n = state
        after, done = _step(_Search(p, start.means, start.rates, *search))
        return after.x, after.low, after.high, after.last, ~done.all(), n + 1

    first = (start.x, start.low, start.high, start.last, torch.tensor(True), torch.tensor(0))
    found = while_loop(going, step, first)[0]
    return found[0], -found[1]


class RawColumns(nn.Module):
    """The preprocessor as a module: raw columns to network inputs ``(rows, features)``.

    The first group of buffers has an entry per feature, the second one per raw column.
    """

    index: Tensor
    """The raw column of each feature."""
    is_value: Tensor
    is_missing: Tensor
    """Features that mark a missing value."""
    is_other: Tensor
    """Features of all labels without one of their own."""
    label: Tensor
    n_labels: Tensor
    median: Tensor
    mean: Tensor
    scale: Tensor

    low: Tensor
    """The least number that is not far out of the training range."""
    high: Tensor
    is_whole: Tensor
    """Columns with no numbers but 0 and 1 in training."""
    has_missing: Tensor
    """Columns with missing values in training."""

    def __init__(self, preprocessor: TablePreprocessor) -> None:
        super().__init__()
        made = [
            feature
            for place, column in enumerate(preprocessor.columns_)
            for feature in _features(place, column)
        ]
        for name in made[0]:
            values = [feature[name] for feature in made]
            kind = torch.float64 if isinstance(values[0], float) else None
            self.register_buffer(name, torch.tensor(values, dtype=kind))
        columns = preprocessor.columns_
        reach = torch.tensor([_reach(column) for column in columns], dtype=torch.float64)
        self.register_buffer("low", reach[:, 0].clone())
        self.register_buffer("high", reach[:, 1].clone())
        for name in ("is_whole", "has_missing"):
            values = [getattr(column, name) for column in columns]
            self.register_buffer(name, torch.tensor(values))
        self._most_missing = preprocessor.most_missing_

    def unseen(self, columns: Tensor) -> Tensor:
        """Find rows with values that training never had: :mod:`priornet.tables.encoding`."""
        missing = columns.isnan()
        wrong = (columns < self.low) | (columns > self.high) | (missing & ~self.has_missing)
        wrong = wrong | (self.is_whole & (columns > columns.floor()))
        return wrong.any(-1) | ((missing & self.has_missing).sum(-1) > self._most_missing)

    def forward(self, columns: Tensor) -> Tensor:
        """Return the preprocessed matrix."""
        x = columns[:, self.index]
        missing = x.isnan()
        filled = torch.where(missing, self.median, x)
        number = ((filled - self.mean) / self.scale).clamp(-LIMIT, LIMIT)
        known = (x >= 0) & (x < self.n_labels)
        marked = torch.where(
            self.is_missing,
            missing,
            torch.where(self.is_other, ~(known | missing), x == self.label),
        )
        return torch.where(self.is_value, number, marked.double())


def _reach(column: RawColumn) -> tuple[float, float]:
    """Return the least and the largest number that is not unlike training."""
    if column.kind == "numeric" or (column.has_other and not column.pooled):
        return column.reach
    return 0.0, len(column.known_labels) - 1.0


def _features(place: int, column: RawColumn) -> list[dict[str, Any]]:
    """List the settings of each feature of a raw column, in the preprocessor's order."""
    plain: dict[str, Any] = {
        "index": place,
        "is_value": False,
        "is_missing": False,
        "is_other": False,
        "label": _NO_LABEL,
        "n_labels": float(len(column.categories)),
        "median": 0.0,
        "mean": 0.0,
        "scale": 1.0,
    }
    if column.kind == "numeric":
        numbers = {name: float(getattr(column, name)) for name in ("median", "mean", "scale")}
        found = [plain | numbers | {"is_value": True}]
    else:
        found = [plain | {"label": float(i)} for i in range(len(column.categories))]
        if column.has_other:
            found.append(plain | {"is_other": True})
    return [*found, plain | {"is_missing": True}] if column.has_missing else found
