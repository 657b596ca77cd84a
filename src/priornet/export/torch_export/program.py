"""A fitted estimator as a ``torch.export`` program (``.pt2``), for libtorch or AOTInductor.

Inputs are raw columns ``(rows, columns)`` in double precision, missing values and labels included
(:mod:`priornet.export.torch_export.columns` defines their form). Outputs are those of the ONNX
graph.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from priornet._version import __version__
from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.distributions.factors import PrecisionFactor
from priornet.distributions.mixture import (
    _begin,  # pyright: ignore[reportPrivateUsage] (the same search, as a loop in the program)
    _Search,  # pyright: ignore[reportPrivateUsage]
    _step,  # pyright: ignore[reportPrivateUsage]
)
from priornet.estimators.base import BaseRegressor
from priornet.estimators.model import Fitted
from priornet.estimators.verdict import NOISY, WORDS
from priornet.export.errors import check_fitted
from priornet.export.onnx.beliefs import Interval
from priornet.export.onnx.model import interval_of
from priornet.export.onnx.series import evidence_series, normal_quantile
from priornet.export.quiet import quiet
from priornet.export.torch_export.columns import RawColumns, describe_columns
from priornet.uncertainty import Uncertainty, uncertainty
from priornet.writing import write_bytes

__all__ = ["METADATA", "Program", "to_torch_export"]

METADATA = "priornet.json"
"""Where the file says what it is."""
_MOST_STEPS = 120


class Program(nn.Module):
    """Raw columns to mean, interval and uncertainty, in units of the targets.

    Args:
        fitted: The model.
        interval: Which interval to give.
    """

    shift: Tensor
    scale: Tensor
    series: Tensor
    """Of the quantile of a Student-T: see :mod:`priornet.export.onnx.series`."""
    usual: Tensor
    """Knowledge variances of reference rows, sorted; none where the model has no such thing."""

    def __init__(self, fitted: Fitted, interval: Interval) -> None:
        super().__init__()
        self._interval, self._is_vector = interval, fitted.targets.is_vector
        self.columns = RawColumns(fitted.preprocessor)
        everyone = range(fitted.stack.n_networks)
        self.stack = fitted.stack.select(everyone).cpu().requires_grad_(False)  # a copy
        for name, part in zip(("shift", "scale"), fitted.targets.scaling, strict=True):
            self.register_buffer(name, torch.from_numpy(part))
        coefficients = evidence_series(fitted.network.n_targets, interval.coverage)[:, 2]
        self.register_buffer("series", torch.from_numpy(coefficients.copy()))
        reference = fitted.reference
        self._noisy, self._limit = NOISY * reference.data, reference.limit
        self._is_enough = fitted.reference.is_enough
        usual = reference.knowledge if reference.has_knowledge else reference.knowledge[:0]
        self.register_buffer("usual", torch.tensor(usual))

    def forward(self, columns: Tensor) -> dict[str, Tensor]:
        """Outputs by name, for raw columns ``(rows, columns)``."""
        standard = self._belief(self.columns(columns))
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
        found = {"mean": mean, "lower": lower, "upper": upper, **measured}
        if self._is_vector:
            found = {name: v.squeeze(-1) if v.dim() > 1 else v for name, v in found.items()}
        return found | self._standing(record, odd)

    def _standing(self, record: Uncertainty, odd: Tensor) -> dict[str, Tensor]:
        """Score and number of the word, ``(rows,)``."""
        knowledge, data = record.knowledge_variance.mean(-1), record.data_variance.mean(-1)
        verdict = (data.sqrt() > self._noisy).long()
        verdict = torch.where(odd, 2, verdict)
        if not self._is_enough:
            verdict = torch.full_like(verdict, 2)
        if not len(self.usual):
            return {"verdict": verdict}
        n = len(self.usual)
        below = torch.searchsorted(self.usual, knowledge).double()
        verdict = torch.where(knowledge <= self._limit, verdict, 2)  # nan is unfamiliar
        return {"in_domain": (1 + n - below) / (1 + n), "verdict": verdict}

    def _belief(self, inputs: Tensor) -> Any:
        """As the estimator has it: networks in their own precision, the rest in double."""
        stack = self.stack
        inputs = inputs.to(stack.weights.dtype)
        raw = stack.raw(inputs.expand(stack.n_networks, *inputs.shape)).double()
        if stack.n_networks == 1:
            return stack.head.distribution(raw[0])
        members = stack.head.distribution(raw)
        return GaussianEnsemble.from_precision_tril(
            members.loc, members.precision_tril, validate_args=False
        )

    def _bounds(self, belief: Any, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper end of the interval, ``(rows, K)``."""
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
    """Both ends in one search, the upper one in the mirrored mixture."""
    # torch offers loops to programs under this name only.
    from torch._higher_order_ops.while_loop import while_loop  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

    scales = PrecisionFactor(belief.precision_tril).deviations()
    means = torch.stack([belief.means, -belief.means], 1)  # (M, 2, rows, K)
    p = torch.full_like(means[0], (1 - coverage) / 2)
    start = _begin(p, means, scales.unsqueeze(1).expand_as(means))

    def going(
        x: Tensor, low: Tensor, high: Tensor, last: Tensor, left: Tensor, n: Tensor
    ) -> Tensor:
        return left & (n < _MOST_STEPS)

    def step(
        x: Tensor, low: Tensor, high: Tensor, last: Tensor, left: Tensor, n: Tensor
    ) -> tuple[Tensor, ...]:
        after, done = _step(_Search(p, start.means, start.rates, x, low, high, last))
        return after.x, after.low, after.high, after.last, ~done.all(), n + 1

    first = (start.x, start.low, start.high, start.last, torch.tensor(True), torch.tensor(0))
    found = while_loop(going, step, first)[0]
    return found[0], -found[1]


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
        coverage: Of the interval from ``lower`` to ``upper``.
        interval: Where it comes from: see :meth:`~priornet.BaseRegressor.predict_interval`.

    Returns:
        The ``torch.export.ExportedProgram``.
    """
    check_fitted(model)
    fitted = model.fitted_
    part = Program(fitted, interval_of(fitted, coverage, interval)).eval()
    example = torch.zeros(3, fitted.preprocessor.n_features_in_, dtype=torch.float64)
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad(), quiet("torch.export"):
        program = torch.export.export(part, (example,), dynamic_shapes={"columns": {0: rows}})
    if path is not None:
        about = {
            "version": __version__,
            "estimator": type(model).__name__,
            "coverage": coverage,
            "interval": interval,
            "targets": list(fitted.targets.names),
            "columns": describe_columns(fitted.preprocessor),
            "verdicts": list(WORDS),
        }
        buffer = io.BytesIO()
        torch.export.save(program, buffer, extra_files={METADATA: json.dumps(about)})
        write_bytes(Path(path), buffer.getvalue())
    return program
