r"""A head's outputs to mean, interval and the measures of :mod:`priornet.uncertainty`, as nodes.

Written from the formulas, not traced from the distributions: with the factor
:math:`C = \mathrm{diag}(s)\,U` of a precision, U unit lower triangular, the log-determinant is
:math:`2\sum\ln s` and the variances are :math:`s_i^{-2}\sum_k (U^{-1})_{ki}^2`. The last axis is
the targets'; measures of a whole row keep it with size 1. The first axis is an ensemble's members.
Everything is in the type of the outputs, and safe in single precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from priornet.export.interface import ExportError, Interval, normal_quantile
from priornet.export.onnx.functions import (
    evaluate_series,
    evidence_series,
    excess_series,
    log1p,
    mixture_interval,
)
from priornet.export.onnx.graph import Value, join
from priornet.nn import GaussianHead, GaussianMixtureHead, Head, NormalWishartHead
from priornet.tables.learning import Scaling

MEASURES = (
    *("mean", "lower", "upper", "total_variance", "data_variance", "knowledge_variance"),
    *("total_entropy", "data_entropy", "mutual_information", "epkl"),
)
"""Names of the outputs, in order."""
_MOST_EVIDENCE, _LEAST_GAP = 1e8, 1e-15  # the bounds of a fit, and less than the former allows
Measures = dict[str, Value]
"""Mean, interval and uncertainty of standardised targets, those that have a closed form."""


@dataclass(frozen=True)
class _Gaussians:
    """Gaussians per element, and the remaining outputs.

    Attributes:
        mean: ``(..., K)``.
        log_inverse: Logarithm of the inverse scales s, ``(..., K)``.
        factor: U, ``(..., K, K)``; None for independent coordinates.
        root: The inverse of U; None for independent coordinates.
        evidence: Logarithms of belief and excess, ``(..., 1)`` each; empty for a Gaussian.
        k_dim: K.
        rank: Number of axes of the mean.
    """

    mean: Value
    log_inverse: Value
    factor: Value | None
    root: Value | None
    evidence: list[Value]
    k_dim: int
    rank: int

    def unit_variances(self) -> Value:
        """Compute the diagonal of the inverse precision, ``(..., K)``."""
        variances = (self.log_inverse * -2.0).do("Exp")
        if self.root is None:
            return variances
        return variances * (self.root * self.root).reduce("ReduceSum", self.rank - 1)

    def half_logdet(self) -> Value:
        """Compute half the log-determinant of the inverse precision, ``(..., 1)``."""
        return self.log_inverse.reduce("ReduceSum", self.rank - 1, keep=True) * -1.0


def measures(
    head: Head, raw: Value, rank: int, interval: Interval, *, is_ensemble: bool = False
) -> Measures:
    """Add the nodes from a head's raw outputs to its measures.

    ``raw`` has shape ``(*batch, n)``, or ``(S, *batch, n)`` of an ensemble of Gaussian networks,
    and ``rank`` axes.
    """
    if isinstance(head, NormalWishartHead):
        if head.n_targets > 1 and head.covariance == "diagonal":
            raise ExportError("a product of several Normal-Wisharts cannot be exported.")
        return _normal_wishart_head(head, raw, rank, interval)
    if isinstance(head, GaussianMixtureHead):
        n_per_member = head.n_outputs // head.n_members
        raw = raw.reshape(*[0] * (rank - 1), head.n_members, n_per_member)
        raw = raw.do("Transpose", perm=[rank - 1, *range(rank - 1), rank])  # members lead
        return _ensemble(_split(head, raw, rank + 1), interval)
    if isinstance(head, GaussianHead):
        parts = _split(head, raw, rank)
        return _ensemble(parts, interval) if is_ensemble else _gaussian(parts, interval)
    raise ExportError("a network without uncertainty, such as DD, cannot be exported.")


def _split(head: Any, raw: Value, rank: int, evidence: tuple[Any, ...] = ()) -> _Gaussians:
    """Split outputs by their meaning; all bounded exponentials at once, as logarithms."""
    k_dim = head.n_targets
    n_lower = 0 if head.covariance == "diagonal" else k_dim * (k_dim - 1) // 2
    start = 2 * k_dim + n_lower
    maps = [head._inverse_scale] * k_dim + list(evidence)
    places = [*range(k_dim, 2 * k_dim), *range(start, start + len(evidence))]
    slope, shift, reach, low = np.array([one.constants for one in maps]).T
    logs = (raw.at(places) * slope + shift).do("Sigmoid") * reach + low
    factor = root = None
    if n_lower:
        factor, root = _triangular(raw.at(list(range(2 * k_dim, start))), k_dim, rank)
    return _Gaussians(
        raw.at(list(range(k_dim))),
        logs.at(list(range(k_dim))) if evidence else logs,
        factor,
        root,
        [logs.at([k_dim + i]) for i in range(len(evidence))],
        k_dim,
        rank,
    )


def _triangular(entries: Value, k_dim: int, rank: int) -> tuple[Value, Value]:
    r"""Return U and its inverse :math:`\sum_k (-N)^k`, N = U - 1, from the free entries of U."""
    rows, columns = np.tril_indices(k_dim, -1)
    chosen = np.zeros((len(rows), k_dim * k_dim))
    chosen[np.arange(len(rows)), rows * k_dim + columns] = 1
    strict = (entries @ chosen).reshape(*[0] * (rank - 1), k_dim, k_dim)
    return strict + np.eye(k_dim), _unit_inverse(strict, k_dim)


def _unit_inverse(strict: Value, k_dim: int) -> Value:
    """Return the inverse of 1 + N from N, strictly lower triangular."""
    inverse = np.eye(k_dim) - strict
    for _ in range(k_dim - 2):
        inverse = np.eye(k_dim) - strict @ inverse
    return inverse


def _normal_wishart_head(
    head: NormalWishartHead, raw: Value, rank: int, interval: Interval
) -> Measures:
    maps = (head._belief,) if head.tied_evidence else (head._belief, head._excess)  # pyright: ignore[reportPrivateUsage] (the head's own bounds)
    parts = _split(head, raw, rank, maps)
    rarity = (parts.evidence[0] * -1.0).do("Exp")  # 1 / kappa
    return _normal_wishart(parts, rarity, parts.evidence[-1].do("Exp"), interval)


def _normal_wishart(
    parts: _Gaussians, rarity: Value, excess: Value, interval: Interval
) -> Measures:
    k_dim = parts.k_dim
    v = 2.0 / (excess + 2.0)
    functions = evaluate_series(v, evidence_series(k_dim, interval.coverage))
    digamma, gap, quantile = (functions.at([i]) for i in range(3))
    ratio = (k_dim + 1.0) / excess
    data = parts.unit_variances() * (ratio + 1.0)  # Eq. (42)
    knowledge = data * rarity  # Eq. (43)
    total = data + knowledge
    entropy = 2 * _unit_entropy(k_dim) - digamma * v
    data_entropy = parts.half_logdet() + entropy * 0.5  # Eq. (35)
    information = log1p(rarity) * (0.5 * k_dim) + gap * v  # Eq. (36)
    if interval.factors is None:
        # The scale of the Student-T is the standard deviation times sqrt((df - 2) / df).
        reach = quantile.do("Exp") * normal_quantile(interval.coverage)
        width = reach * (total * (excess * v * 0.5)).do("Sqrt")
    else:
        width = total.do("Sqrt") * np.array(interval.factors)
    return {
        **_around(parts.mean, width),
        "total_variance": total,
        "data_variance": data,
        "knowledge_variance": knowledge,
        "total_entropy": data_entropy + information,
        "data_entropy": data_entropy,
        "mutual_information": information,
        "epkl": (ratio + (ratio + 2.0) * rarity) * (0.5 * k_dim),  # Eq. (40)
    }


def fitted_measures(
    head: GaussianHead, raw: Value, rank: int, interval: Interval, least_excess: float
) -> Measures:
    r"""Add the nodes from members ``(M, *batch, n)`` to the measures of a Normal-Wishart.

    It is fitted to them as :meth:`priornet.distributions.NormalWishart.fit` does; its precision is
    the average :math:`\bar\Lambda`, and its mean lies :math:`\bar\Lambda^{-1}\overline{\Lambda
    o}` from the first member, o the offsets from there.
    """
    members = _split(head, raw, rank)
    k_dim, swap = members.k_dim, [*range(rank - 1), rank, rank - 1]
    factors = members.log_inverse.do("Exp").reshape(*[0] * rank, 1)
    if members.factor is not None:
        factors = factors * members.factor
    turned, first = factors.do("Transpose", perm=swap), members.mean.at([0], axis=0)
    offsets = (members.mean - first).reshape(*[0] * rank, 1)
    precisions = factors @ turned
    log_inverse, root = _factorised(precisions.reduce("ReduceMean", 0, keep=True), k_dim, rank)
    scales = log_inverse.do("Exp").reshape(*[0] * rank, 1)
    whole = (precisions @ offsets).reduce("ReduceMean", 0, keep=True) / scales
    shift = root.do("Transpose", perm=swap) @ (root @ whole) / scales
    apart = turned @ (offsets - shift)
    spread = (apart * apart).reduce("ReduceMean", 0).reduce("ReduceSum", rank - 2)
    mean = (first + shift.reshape(*[0] * rank)).at(0, axis=0)
    parts = _Gaussians(
        mean, log_inverse.at(0, axis=0), None, root.at(0, axis=0), [], k_dim, rank - 1
    )
    gap = (members.half_logdet().reduce("ReduceMean", 0) - parts.half_logdet()) * 2.0
    coefficients, most = excess_series(k_dim, least_excess)
    gap = gap.clip(_LEAST_GAP, most)
    v = (gap * evaluate_series(gap * (1 / most), coefficients)).clip(2 / (_MOST_EVIDENCE + 2), 1.0)
    rarity = (spread * (1 / k_dim)).clip(1 / _MOST_EVIDENCE, math.inf)
    return _normal_wishart(parts, rarity, (1.0 - v) * 2.0 / v, interval)


def _factorised(precision: Value, k_dim: int, rank: int) -> tuple[Value, Value]:
    """Return ln s and the inverse of U of precisions ``(..., K, K)``, column by column."""
    swap = [*range(rank - 1), rank, rank - 1]
    pivots: list[Value] = []
    columns: list[Value] = []
    for j in range(k_dim):
        column = precision.at([j])
        pivots.append(column.at([j], axis=rank - 1))
        below = column * (np.arange(k_dim) > j)[:, None]
        columns.append(below / pivots[j])
        precision = precision - columns[j] @ below.do("Transpose", perm=swap)
    scales = join(pivots).do("Sqrt")  # (..., 1, K)
    inverse = _unit_inverse(join(columns), k_dim)
    log_inverse = scales.do("Log").reshape(*[0] * (rank - 1), k_dim)
    return log_inverse, inverse * scales / scales.do("Transpose", perm=swap)


def _around(mean: Value, width: Value) -> Measures:
    """Return the mean and both ends of an interval around it."""
    return {"mean": mean, "lower": mean - width, "upper": mean + width}


def _unit_entropy(k_dim: int) -> float:
    """Return the entropy of a Gaussian with unit variances."""
    return 0.5 * k_dim * (math.log(2 * math.pi) + 1)


def _gaussian(parts: _Gaussians, interval: Interval) -> Measures:
    variance = parts.unit_variances()
    entropy = parts.half_logdet() + _unit_entropy(parts.k_dim)
    factor = interval.factors or normal_quantile(interval.coverage)
    none = entropy * 0.0
    return {
        **_around(parts.mean, variance.do("Sqrt") * np.array(factor)),
        "total_variance": variance,
        "data_variance": variance,
        "knowledge_variance": variance * 0.0,
        "total_entropy": entropy,
        "data_entropy": entropy,
        "mutual_information": none,
        "epkl": none,
    }


def _ensemble(parts: _Gaussians, interval: Interval) -> Measures:
    variances = parts.unit_variances()
    first = parts.mean.at([0], axis=0)  # (1, *batch, K)
    offsets = parts.mean - first  # differences first: exact between nearby numbers
    middle = offsets.reduce("ReduceMean", 0, keep=True)
    centred = offsets - middle
    mean = (first + middle).reduce("ReduceSum", 0)  # drops the axis
    data = variances.reduce("ReduceMean", 0)
    knowledge = (centred * centred).reduce("ReduceMean", 0)
    total = data + knowledge
    entropy = parts.half_logdet().reduce("ReduceMean", 0) + _unit_entropy(parts.k_dim)
    if interval.factors is None:
        scales = variances.do("Sqrt")
        lower, upper = mixture_interval(parts.mean, scales, mean, total, interval.coverage)
        ends = {"mean": mean, "lower": lower, "upper": upper}
    else:
        ends = _around(mean, total.do("Sqrt") * np.array(interval.factors))
    return {
        **ends,
        "total_variance": total,
        "data_variance": data,
        "knowledge_variance": knowledge,
        "data_entropy": entropy,
        "epkl": _pairwise_kl(parts, centred),
    }


def _pairwise_kl(parts: _Gaussians, centred: Value) -> Value:
    r"""Compute Eq. (6) from averages over members, ``(..., 1)``.

    See :meth:`priornet.distributions.GaussianEnsemble.expected_pairwise_kl`; here as traces of
    :math:`\frac12[\overline{\Lambda c c^\top} + \bar\Lambda\,\overline{c c^\top} -
    \overline{(\Lambda-\bar\Lambda)(\Sigma-\bar\Sigma)}]`, c the centred means.
    """
    k_dim, rank, inverse = parts.k_dim, parts.rank, (parts.log_inverse * -1.0).do("Exp")
    if parts.factor is None or parts.root is None:  # diagonals of the matrices below
        covariances, scatters = inverse * inverse, centred * centred
        precisions = 1.0 / covariances
    else:
        swap = [*range(rank - 1), rank, rank - 1]
        column = inverse.reshape(*[0] * rank, 1)
        scaled = parts.root * column.do("Transpose", perm=swap)  # C^-1
        covariances = scaled.do("Transpose", perm=swap) @ scaled
        factor = parts.factor / column
        precisions = factor @ factor.do("Transpose", perm=swap)
        line = centred.reshape(*[0] * rank, 1)
        scatters = line @ line.do("Transpose", perm=swap)
    mean_precision = precisions.reduce("ReduceMean", 0, keep=True)
    mean_covariance = covariances.reduce("ReduceMean", 0, keep=True)
    apart = (precisions - mean_precision) * (covariances - mean_covariance)
    traces = scatters * (precisions + mean_precision) - apart
    traces = traces.reduce("ReduceMean", 0) * 0.5
    if parts.factor is not None:
        traces = traces.reshape(*[0] * (rank - 2), k_dim * k_dim)
    return traces.reduce("ReduceSum", rank - 2, keep=True) if k_dim > 1 else traces


def add_outputs(
    found: Measures,
    scaling: Scaling,
    sizes: list[Any],
    *,
    is_vector: bool,
    prefix: str = "",
    dtype: Any = np.float64,
) -> None:
    """Add the measures as outputs in units of the targets: one product and one sum for all.

    ``sizes`` is the shape of the batch; a single target has no axis of its own if ``is_vector``.
    """
    names = [name for name in MEASURES if name in found]
    factors, terms = zip(*(_units(name, scaling) for name in names), strict=True)
    joined = join([found[name] for name in names])
    scaled = (joined * np.concatenate(factors) + np.concatenate(terms)).cast(dtype)
    start = 0
    for name, factor in zip(names, factors, strict=True):
        width = len(factor)
        is_row = is_vector or name.endswith(("entropy", "information", "epkl"))
        value = scaled.at(start if is_row else list(range(start, start + width)))
        scaled.graph.output(prefix + name, value, sizes if is_row else [*sizes, width])
        start += width


def _units(name: str, scaling: Scaling) -> tuple[Any, Any]:
    """Return factor and term that bring a measure to units of the targets."""
    shift, scale = scaling
    if name in ("mean", "lower", "upper"):
        return scale, shift
    if name.endswith("variance"):
        return scale * scale, np.zeros(len(scale))
    return np.ones(1), np.log(scale).sum(keepdims=True) * name.endswith("entropy")
