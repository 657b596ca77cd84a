r"""A head's outputs to mean, interval and the measures of :mod:`priornet.uncertainty`, as nodes.

Written from the formulas, not traced from the distributions: with the factor
:math:`C = \mathrm{diag}(s)\,U` of a precision, U unit lower triangular, the log-determinant is
:math:`2\sum\ln s` and the variances are :math:`s_i^{-2}\sum_k (U^{-1})_{ki}^2`. The last axis is
the targets'; measures of a whole row keep it with size 1. The first axis is an ensemble's members.
Everything is in the type of the outputs, and safe in single precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from priornet.export.interface import ExportError, Interval, normal_quantile
from priornet.export.onnx.functions import evidence_series, log1p, mixture_interval
from priornet.export.onnx.graph import Graph, Value
from priornet.nn import GaussianHead, GaussianMixtureHead, Head, NormalWishartHead
from priornet.tables.learning import Scaling


@dataclass(frozen=True)
class Measures:
    """Mean, interval and uncertainty of standardised targets; None without a closed form."""

    mean: Value
    lower: Value
    upper: Value
    total_variance: Value
    data_variance: Value
    knowledge_variance: Value
    total_entropy: Value | None
    data_entropy: Value
    mutual_information: Value | None
    epkl: Value


MEASURES = tuple(field.name for field in fields(Measures))
"""Names of the outputs."""


@dataclass(frozen=True)
class _Gaussians:
    """Gaussians per element, and the remaining outputs.

    Attributes:
        mean: ``(..., K)``.
        log_inverse: Logarithm of the inverse scales s, ``(..., K)``.
        root: The inverse of U, ``(..., K, K)``; None for K = 1.
        evidence: Logarithms of belief and excess, ``(..., n)``; None for a Gaussian.
        rank: Number of axes of the mean.
    """

    mean: Value
    log_inverse: Value
    root: Value | None
    evidence: Value | None
    rank: int

    def unit_variances(self) -> Value:
        """Compute the diagonal of the inverse precision, ``(..., K)``."""
        variances = (self.log_inverse * -2.0).do("Exp")
        if self.root is None:
            return variances
        return variances * (self.root * self.root).reduce("ReduceSum", self.rank - 1)


def measures(
    graph: Graph,
    head: Head,
    raw: Value,
    rank: int,
    interval: Interval,
    *,
    is_ensemble: bool = False,
) -> Measures:
    """Add the nodes from a head's raw outputs to its measures.

    Args:
        graph: Gets the nodes.
        head: Defines the meaning of the outputs.
        raw: Outputs, ``(*batch, n)``, or ``(S, *batch, n)`` of an ensemble.
        rank: Number of axes of ``raw``.
        interval: Coverage and method.
        is_ensemble: Whether the first axis is an ensemble of Gaussian networks.
    """
    if isinstance(head, NormalWishartHead):
        if head.n_targets > 1 and head.covariance == "diagonal":
            raise ExportError("a product of several Normal-Wisharts cannot be exported.")
        return _normal_wishart(graph, head, raw, rank, interval)
    if isinstance(head, GaussianMixtureHead):
        n_per_member = head.n_outputs // head.n_members
        raw = raw.reshape(*[0] * (rank - 1), head.n_members, n_per_member)
        raw = raw.do("Transpose", perm=[rank - 1, *range(rank - 1), rank])  # members lead
        return _ensemble(graph, head, raw, rank + 1, interval)
    if isinstance(head, GaussianHead):
        kind = _ensemble if is_ensemble else _gaussian
        return kind(graph, head, raw, rank, interval)
    raise ExportError("a network without uncertainty, such as DD, cannot be exported.")


def _split(
    graph: Graph, head: Any, raw: Value, rank: int, evidence: tuple[Any, ...] = ()
) -> _Gaussians:
    """Split outputs by their meaning; all bounded exponentials at once, as logarithms."""
    k_dim = head.n_targets
    n_lower = 0 if head.covariance == "diagonal" else k_dim * (k_dim - 1) // 2
    start = 2 * k_dim + n_lower
    maps = [head._inverse_scale] * k_dim + list(evidence)
    places = [*range(k_dim, 2 * k_dim), *range(start, start + len(evidence))]
    slope, shift, reach, low = np.array([one.constants for one in maps]).T
    logs = (raw.at(places) * slope + shift).do("Sigmoid") * reach + low
    own = logs.at(list(range(k_dim))) if evidence else logs
    rest = logs.at(list(range(k_dim, k_dim + len(evidence)))) if evidence else None
    root = None
    if k_dim > 1:
        root = _unit_inverse(graph, raw, k_dim, list(range(2 * k_dim, start)), rank)
    return _Gaussians(raw.at(list(range(k_dim))), own, root, rest, rank)


def _unit_inverse(graph: Graph, raw: Value, k_dim: int, places: list[int], rank: int) -> Value:
    r"""Invert the unit triangular factor, ``(..., K, K)``: :math:`\sum_k (-N)^k`, N = U - 1."""
    eye = np.eye(k_dim)
    if not places:  # independent coordinates
        return graph.constant(eye.reshape(*[1] * (rank - 1), k_dim, k_dim), raw.dtype)
    strict = _strictly_lower(raw, k_dim, places, rank)
    inverse = eye - strict
    for _ in range(k_dim - 2):
        inverse = eye - strict @ inverse
    return inverse


def _strictly_lower(raw: Value, k_dim: int, places: list[int], rank: int) -> Value:
    """Place the free entries of U in matrices of zeros."""
    chosen = np.zeros((len(places), k_dim * k_dim))
    rows, columns = np.tril_indices(k_dim, -1)
    chosen[np.arange(len(places)), rows * k_dim + columns] = 1
    return (raw.at(places) @ chosen).reshape(*[0] * (rank - 1), k_dim, k_dim)


def _normal_wishart(
    graph: Graph, head: NormalWishartHead, raw: Value, rank: int, interval: Interval
) -> Measures:
    k_dim = head.n_targets
    maps = (head._belief,) if head.tied_evidence else (head._belief, head._excess)  # pyright: ignore[reportPrivateUsage] (the head's own bounds)
    parts = _split(graph, head, raw, rank, maps)
    assert parts.evidence is not None
    log_belief, log_excess = parts.evidence.at([0]), parts.evidence.at([len(maps) - 1])
    rarity = (log_belief * -1.0).do("Exp")  # 1 / kappa
    excess = log_excess.do("Exp")
    v = 2.0 / (excess + 2.0)
    digamma, gap, quantile = _evidence(graph, v, k_dim, interval.coverage)
    ratio = (k_dim + 1.0) / excess
    data = parts.unit_variances() * (ratio + 1.0)  # Eq. (42)
    knowledge = data * rarity  # Eq. (43)
    total = data + knowledge
    constant = k_dim * (math.log(2 * math.pi) + 1)
    data_entropy = _half_logdet(parts) + (constant - digamma * v) * 0.5  # Eq. (35)
    information = log1p(graph, rarity) * (0.5 * k_dim) + gap * v  # Eq. (36)
    epkl = (ratio + (ratio + 2.0) * rarity) * (0.5 * k_dim)  # Eq. (40)
    if interval.factors is None:
        # The scale of the Student-T is the standard deviation times sqrt((df - 2) / df).
        reach = quantile.do("Exp") * normal_quantile(interval.coverage)
        width = reach * (total * (excess * v * 0.5)).do("Sqrt")
    else:
        width = total.do("Sqrt") * np.array(interval.factors)
    ends = _around(parts.mean, width)
    total_entropy = data_entropy + information
    return Measures(*ends, total, data, knowledge, total_entropy, data_entropy, information, epkl)


def _around(mean: Value, width: Value) -> tuple[Value, Value, Value]:
    """Return the mean and both ends of an interval around it."""
    return mean, mean - width, mean + width


def _half_logdet(parts: _Gaussians) -> Value:
    """Compute half the log-determinant of the inverse precision."""
    return parts.log_inverse.reduce("ReduceSum", parts.rank - 1, keep=True) * -1.0


def _evidence(graph: Graph, v: Value, k_dim: int, coverage: float) -> list[Value]:
    """Evaluate the functions of :func:`evidence_series` at v, each ``(..., 1)``."""
    coefficients = evidence_series(k_dim, coverage)
    # onnxruntime has no arc cosine in double precision, and none is needed: the series is smooth.
    angle = (1.0 - v * 2.0).cast(np.float32).do("Acos").cast(v.dtype)
    terms = (angle * np.arange(len(coefficients))).do("Cos")
    functions = terms @ coefficients
    return [functions.at([i]) for i in range(3)]


def _gaussian(
    graph: Graph, head: GaussianHead, raw: Value, rank: int, interval: Interval
) -> Measures:
    parts = _split(graph, head, raw, rank)
    variance = parts.unit_variances()
    entropy = _half_logdet(parts) + 0.5 * head.n_targets * (math.log(2 * math.pi) + 1)
    factor = interval.factors or normal_quantile(interval.coverage)
    width = variance.do("Sqrt") * np.array(factor)
    none = entropy * 0.0
    ends = _around(parts.mean, width)
    return Measures(*ends, variance, variance, variance * 0.0, entropy, entropy, none, none)


def _ensemble(
    graph: Graph,
    head: GaussianHead | GaussianMixtureHead,
    raw: Value,
    rank: int,
    interval: Interval,
) -> Measures:
    parts = _split(graph, head, raw, rank)
    variances = parts.unit_variances()
    first = parts.mean.at([0], axis=0)  # (1, *batch, K)
    offsets = parts.mean - first  # differences first: exact between nearby numbers
    middle = offsets.reduce("ReduceMean", 0, keep=True)
    centred = offsets - middle
    mean = (first + middle).reduce("ReduceSum", 0)  # drops the axis
    data = variances.reduce("ReduceMean", 0)
    knowledge = (centred * centred).reduce("ReduceMean", 0)
    total = data + knowledge
    constant = 0.5 * head.n_targets * (math.log(2 * math.pi) + 1)
    entropy = _half_logdet(parts).reduce("ReduceMean", 0) + constant
    if interval.factors is None:
        scales = variances.do("Sqrt")
        found = mixture_interval(graph, parts.mean, scales, mean, total, interval.coverage)
        ends = mean, *found
    else:
        ends = _around(mean, total.do("Sqrt") * np.array(interval.factors))
    epkl = _pairwise_kl(head, raw, rank, parts, centred)
    return Measures(*ends, total, data, knowledge, None, entropy, None, epkl)


def _pairwise_kl(head: Any, raw: Value, rank: int, parts: _Gaussians, centred: Value) -> Value:
    r"""Compute Eq. (6) from averages over members, ``(..., 1)``.

    See :meth:`priornet.distributions.GaussianEnsemble.expected_pairwise_kl`; here as traces of
    :math:`\frac12[\overline{\Lambda c c^\top} + \bar\Lambda\,\overline{c c^\top} -
    \overline{(\Lambda-\bar\Lambda)(\Sigma-\bar\Sigma)}]`, c the centred means.
    """
    k_dim, inverse = head.n_targets, (parts.log_inverse * -1.0).do("Exp")
    if k_dim == 1:
        precisions, covariances = 1.0 / (inverse * inverse), inverse * inverse
        scatters = centred * centred
    else:
        assert parts.root is not None
        places = list(range(2 * k_dim, 2 * k_dim + k_dim * (k_dim - 1) // 2))
        swap = [*range(rank - 1), rank, rank - 1]
        column = inverse.reshape(*[0] * rank, 1)
        row = column.do("Transpose", perm=swap)
        scaled = parts.root * row  # C^-1
        covariances = scaled.do("Transpose", perm=swap) @ scaled
        if head.covariance == "diagonal":
            factor = np.eye(k_dim) / column
        else:
            factor = (_strictly_lower(raw, k_dim, places, rank) + np.eye(k_dim)) / column
        precisions = factor @ factor.do("Transpose", perm=swap)
        line = centred.reshape(*[0] * rank, 1)
        scatters = line @ line.do("Transpose", perm=swap)
    mean_precision = precisions.reduce("ReduceMean", 0, keep=True)
    mean_covariance = covariances.reduce("ReduceMean", 0, keep=True)
    apart = (precisions - mean_precision) * (covariances - mean_covariance)
    traces = scatters * (precisions + mean_precision) - apart
    traces = traces.reduce("ReduceMean", 0) * 0.5
    if k_dim > 1:
        traces = traces.reshape(*[0] * (rank - 2), k_dim * k_dim)
    return traces.reduce("ReduceSum", rank - 2, keep=True) if k_dim > 1 else traces


def add_outputs(
    graph: Graph,
    found: Measures,
    scaling: Scaling,
    sizes: list[Any],
    *,
    is_vector: bool,
    prefix: str = "",
    dtype: Any = np.float64,
) -> None:
    """Add the measures as outputs in units of the targets: one product and one sum for all.

    Args:
        graph: Gets the outputs.
        found: Measures of standardised targets.
        scaling: Mean and standard deviation of the targets.
        sizes: Shape of the batch.
        is_vector: Whether a single target has no axis of its own.
        prefix: Begins the names of the outputs.
        dtype: Type of the outputs.
    """
    parts = {name: value for name in MEASURES if (value := getattr(found, name)) is not None}
    factors, terms = zip(*(_units(name, scaling) for name in parts), strict=True)
    joined = graph.join(list(parts.values()))
    scaled = (joined * np.concatenate(factors) + np.concatenate(terms)).cast(dtype)
    start = 0
    for name, factor in zip(parts, factors, strict=True):
        width = len(factor)
        is_row = is_vector or name.endswith(("entropy", "information", "epkl"))
        columns = start if is_row else list(range(start, start + width))
        graph.output(prefix + name, scaled.at(columns), [*sizes] if is_row else [*sizes, width])
        start += width


def _units(name: str, scaling: Scaling) -> tuple[Any, Any]:
    """Return factor and term that bring a measure to units of the targets."""
    shift, scale = scaling
    if name in ("mean", "lower", "upper"):
        return scale, shift
    if name.endswith("variance"):
        return scale * scale, np.zeros(len(scale))
    return np.ones(1), np.log(scale).sum(keepdims=True) * name.endswith("entropy")
