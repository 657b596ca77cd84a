r"""Out-of-domain inputs for prior networks: samples of a widened factor analysis.

Factor analysis explains the inputs as :math:`x \sim \mathcal N(\mu, WW^T + \Psi)` with few factors
and a diagonal :math:`\Psi`; out-of-domain inputs are drawn from :math:`\mathcal N(\mu, 3WW^T +
3\Psi)`.

Paper: section 4.2 and its appendix, arXiv:2006.11590v2.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from priornet.tables.preprocessing import OutputColumn
from priornet.tables.values import FloatArray


@dataclass(frozen=True)
class _Indicator:
    """A 0/1 column of missing values: its rate, and the imputed number in the value column."""

    column: int
    value: int
    rate: float
    filled: float


class FactorAnalysisGenerator:
    r"""Generator of inputs in and around the training inputs.

    Numbers come from :math:`\mathcal N(\mu, s\,(WW^T + \Psi))`. 0/1 columns stay 0/1 columns: of a
    label's block one column is 1, or none (an unknown label), all equally likely; a missing value
    occurs as often as in training, with the imputed number beside it. A column that was constant in
    training stays constant, since it alone would give the drawn rows away.

    Args:
        n_factors: Number of factors; by default half of the continuous columns.
        spread: :math:`s`, the factor on the covariance; the paper has 3.

    Attributes:
        mean_: :math:`\mu` of the continuous columns, shape ``(D,)``.
        loadings_: :math:`W`, shape ``(D, n_factors)``.
        noise_variance_: Diagonal of :math:`\Psi`, shape ``(D,)``.

    Example:
        >>> inputs = np.random.default_rng(0).standard_normal((100, 3))
        >>> generator = FactorAnalysisGenerator().fit(inputs)
        >>> generator.sample(5, torch.Generator().manual_seed(0)).shape
        torch.Size([5, 3])
    """

    mean_: FloatArray
    loadings_: FloatArray
    noise_variance_: FloatArray

    def __init__(self, *, n_factors: int | None = None, spread: float = 3.0) -> None:
        if n_factors is not None and n_factors < 1:
            raise ValueError(f"`n_factors` must be at least 1; got {n_factors}.")
        if not (spread > 0 and math.isfinite(spread)):
            raise ValueError(f"`spread` must be positive and finite; got {spread:g}.")
        self.n_factors = n_factors
        self.spread = spread

    def fit(
        self,
        Z: ArrayLike,
        source: Sequence[OutputColumn] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to preprocessed inputs.

        The likelihood depends on the rows only through their mean and covariance, so scikit-learn's
        factor analysis gets a few rows with the same two: the cost does not grow with the table,
        and weights are exact.

        Args:
            Z: Standardised inputs, shape ``(N, n_columns)``.
            source: :attr:`TablePreprocessor.source_`; by default all columns are continuous.
            sample_weight: Weight per row, not negative.
        """
        inputs = np.asarray(Z, np.float64)
        if inputs.ndim != 2 or inputs.size == 0:
            raise ValueError(f"`Z` must be a filled matrix; got shape {inputs.shape}.")
        if source is None:
            source = [OutputColumn(j, "value") for j in range(inputs.shape[1])]
        if len(source) != inputs.shape[1]:
            raise ValueError(
                f"`source` must describe {inputs.shape[1]} columns; got {len(source)}."
            )
        ones = np.ones(len(inputs))
        weight = ones if sample_weight is None else np.asarray(sample_weight, np.float64)
        weight = weight / weight.sum()
        self.n_columns_ = inputs.shape[1]
        self._continuous = [j for j, column in enumerate(source) if column.is_continuous]
        self._fit_numbers(inputs[:, self._continuous], weight)
        self._blocks, self._indicators = _layout(inputs, source, weight)
        return self

    def _fit_numbers(self, inputs: FloatArray, weight: FloatArray) -> None:
        n = inputs.shape[1]
        self.mean_ = weight @ inputs
        centred = (inputs - self.mean_) * np.sqrt(weight)[:, None]
        covariance = centred.T @ centred
        self.noise_variance_ = np.zeros(n)
        varies = np.flatnonzero(np.diag(covariance) > 1e-24)
        n_factors = -(-len(varies) // 2) if self.n_factors is None else self.n_factors
        self.loadings_ = np.zeros((n, min(n_factors, len(varies))))
        if len(varies) == 0:
            return
        model = _factor_analysis(covariance[np.ix_(varies, varies)], self.loadings_.shape[1])
        self.loadings_[varies] = model.components_.T
        self.noise_variance_[varies] = model.noise_variance_

    def sample(self, n: int, generator: Generator, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw ``n`` rows, shape ``(n, n_columns)``, on the generator's device."""
        kind: dict[str, Any] = {"dtype": dtype, "device": generator.device}
        width = math.sqrt(self.spread)
        loadings = torch.as_tensor(width * self.loadings_, **kind)
        noise = torch.as_tensor(width * np.sqrt(self.noise_variance_), **kind)
        factors = torch.randn((n, loadings.shape[1]), generator=generator, **kind)
        errors = torch.randn((n, len(noise)), generator=generator, **kind)
        rows = torch.zeros((n, self.n_columns_), **kind)
        centre = torch.as_tensor(self.mean_, **kind)
        rows[:, self._continuous] = centre + factors @ loadings.T + errors * noise
        for block in self._blocks:
            # One label more than the block has columns: the unknown label, all zeros.
            n_labels = len(block) + 1
            drawn = torch.randint(n_labels, (n,), generator=generator, device=generator.device)
            rows[:, block] = one_hot(drawn, n_labels)[:, :-1].to(dtype)
        for one in self._indicators:
            missing = torch.rand(n, generator=generator, **kind) < one.rate
            rows[:, one.column] = missing.to(dtype)
            rows[missing, one.value] = one.filled
        return rows


def _factor_analysis(covariance: FloatArray, n_factors: int) -> Any:
    """Fit scikit-learn's model to data with this covariance and mean zero."""
    from sklearn.decomposition import FactorAnalysis
    from sklearn.exceptions import ConvergenceWarning

    values, vectors = np.linalg.eigh(covariance)
    rows = (vectors * np.sqrt(np.maximum(values, 0) * len(values))).T
    model = FactorAnalysis(n_factors, svd_method="lapack", tol=1e-6, max_iter=2000)
    with warnings.catch_warnings():
        # The last digits of the likelihood do not matter for samples.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(np.concatenate([rows, -rows]))


def _layout(
    inputs: FloatArray, source: Sequence[OutputColumn], weight: FloatArray
) -> tuple[list[list[int]], list[_Indicator]]:
    """Find the blocks of label columns, and the indicators of missing numbers.

    In a label's block, its indicator is one column like the others.
    """
    numbers = {c.column: j for j, c in enumerate(source) if c.is_continuous}
    blocks: dict[int, list[int]] = {}
    indicators: list[_Indicator] = []
    for j, column in enumerate(source):
        if column.column not in numbers:
            blocks.setdefault(column.column, []).append(j)
        elif column.role == "missing":
            rows = inputs[:, j] > 0.5
            value = numbers[column.column]
            filled = float(inputs[rows, value].mean()) if rows.any() else 0.0
            indicators.append(_Indicator(j, value, float(weight[rows].sum()), filled))
    return list(blocks.values()), indicators
