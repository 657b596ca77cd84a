r"""Functions that ONNX has no operator for, as plain operators.

**Functions of the evidence alone.** The digamma and log-gamma combinations of a Normal-Wishart and
the quantile of its Student-T are smooth functions of :math:`v = 2/(d + 2) \in (0, 1]`, d the
excess, up to v = 0 (infinite degrees of freedom). A Chebyshev series of a dozen terms reaches
float32, and :math:`T_k(u) = \cos(k \arccos u)` at :math:`u = 1 - 2v` makes it four plain operators
for all functions together. The excess that fits members is another such series, of their gap. Each
export fits the series to the stable functions of :mod:`priornet.special` in float64.

**The central interval of a mixture of normals.** The search of
:mod:`priornet.distributions.mixture` as a loop: Halley steps on :math:`\ln F(x) - \ln p`, kept in
a bracket by bisection, until every row has converged. It looks for both ends at once, the upper one
as the lower end of the mirrored mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.export.interface import ExportError, normal_quantile
from priornet.export.onnx.graph import Value, join
from priornet.special.gamma import digamma_gap, entropy_gap, excess_of_gap
from priornet.special.student_t import student_t_icdf

FloatArray = NDArray[np.float64]

_DEGREES = (*range(8, 41, 4), 48, 64, 96, 128, 192, 256)  # the last ones for K in the hundreds
_CLOSE = 2e-8  # below the resolution of float32
_LEAST = 1e-14  # v where the degrees of freedom count as infinite
_MOST_STEPS = 60
_EPS = float(np.finfo(np.float32).eps)  # also in double precision: that of the tail below
# ln of erfc(a) exp(a^2) / t at t = 1 / (1 + a / 2), relative error 1.2e-7 for every a >= 0
# (Press et al., chapter 6.2).
_ERFC = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


def log1p(x: Value) -> Value:
    """Compute ln(1 + x) to the last digit: a quotient corrects the rounding of 1 + x (Kahan)."""
    u = x + 1.0
    rounded = u - 1.0
    lost = rounded.compare("Equal", 0.0)
    return lost.where(x, u.do("Log") * (x / lost.where(u, rounded)))


def evidence_series(k_dim: int, coverage: float) -> FloatArray:
    r"""Fit the coefficients ``(terms, 3)`` of three functions of v.

    They are :math:`(\psi_K(\nu/2) - K\ln(\nu/2))/v`, :math:`f_K/v` (see
    :func:`~priornet.special.gamma.entropy_gap`), and :math:`\ln t - \ln z`, quantiles of the
    Student-T and of the normal at an end of the central interval.
    """
    return _series(lambda u: _functions(u, k_dim, coverage), k_dim)


def excess_series(k_dim: int, least_excess: float) -> tuple[FloatArray, float]:
    r"""Fit the coefficients ``(terms, 1)`` of :math:`v(g)/g`, and return the largest gap too.

    The gap g is that of :func:`~priornet.special.gamma.excess_of_gap`, which finds the excess, and
    so v, to a gap. It is the largest at the least excess; the series takes its share of that.
    """
    least = torch.tensor(least_excess, dtype=torch.float64)
    most = -float(digamma_gap(least, k_dim))

    def function(u: FloatArray) -> FloatArray:
        gap = most * torch.from_numpy(np.maximum((1 - u) / 2, _LEAST))
        return (2 / (excess_of_gap(gap, k_dim, 1e20) + 2) / gap).unsqueeze(-1).numpy()

    return _series(function, k_dim), most


def _series(function: Callable[[FloatArray], FloatArray], k_dim: int) -> FloatArray:
    """Fit the coefficients ``(terms, columns)`` of functions of u, from -1 to 1."""
    check = np.cos(np.linspace(0, np.pi, 1999))
    expected = function(check)
    for degree in _DEGREES:
        n = 4 * degree
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        coefficients: FloatArray = np.asarray(
            np.polynomial.chebyshev.chebfit(nodes, function(nodes), degree), np.float64
        )
        found = np.polynomial.chebyshev.chebval(check, coefficients).T
        if (np.abs(found - expected) <= _CLOSE * np.maximum(np.abs(expected), 1)).all():
            return coefficients
    raise ExportError(f"a model of {k_dim} targets together cannot be exported; fit fewer at once.")


def evaluate_series(share: Value, coefficients: FloatArray) -> Value:
    """Evaluate series at u = 1 - 2 ``share`` ``(..., 1)``, one column for each of them."""
    # onnxruntime has no arc cosine in double precision, and none is needed: the series is smooth.
    angle = (1.0 - share * 2.0).cast(np.float32).do("Acos").cast(share.dtype)
    return (angle * np.arange(len(coefficients))).do("Cos") @ coefficients


def _functions(u: FloatArray, k_dim: int, coverage: float) -> FloatArray:
    v = torch.from_numpy(np.maximum((1 - u) / 2, _LEAST))
    df = 2 / v
    excess = 2 * (1 - v) / v  # df - 2, without cancellation at v = 1
    t = student_t_icdf(torch.full_like(df, (1 + coverage) / 2), df)
    parts = (digamma_gap(excess, k_dim) / v, entropy_gap(excess, k_dim) / v, torch.log(t))
    shift = np.array([0.0, 0.0, np.log(normal_quantile(coverage))])
    return torch.stack(parts, -1).numpy() - shift


def mixture_interval(
    means: Value, scales: Value, mean: Value, variance: Value, coverage: float
) -> tuple[Value, Value]:
    """Find lower and upper end of each mixture's central interval.

    Means and standard deviations of the members have shape ``(M, *batch)``.
    """
    z, graph = -normal_quantile(coverage), means.graph
    reach = variance.do("Sqrt") * z
    # Both searches along a leading axis of two, members along the next.
    first, second = (graph.constant([axis], np.int64) for axis in (0, 1))
    both, centre = (
        join([m.do("Unsqueeze", first) for m in (values, values * -1.0)], 0)
        for values in (means, mean)
    )
    rates = 1.0 / scales
    members = both + scales * z
    low, high = members.reduce("ReduceMin", 1), members.reduce("ReduceMax", 1)
    x = (centre + reach).do("Max", low).do("Min", high)

    def step(carried: list[Value]) -> tuple[Value, list[Value]]:
        return _step(carried, both, rates, (1 - coverage) / 2, second)

    found, *_ = graph.loop(_MOST_STEPS, [x, low, high, high - low], step)
    return found.at(0, axis=0), found.at(1, axis=0) * -1.0


def _step(
    carried: list[Value], means: Value, rates: Value, p: float, axis: Value
) -> tuple[Value, list[Value]]:
    x, low, high, last = carried
    z = (x.do("Unsqueeze", axis) - means) * rates
    tail = _lower_tail(z.do("Abs"))
    above = z.compare("Greater", 0.0)
    # F(x) - p as whole members below x plus tails: between far members only tails differ.
    signed = above.where(tail * -1.0, tail)
    whole = above.cast(x.dtype).reduce("ReduceMean", 1)
    residual = (whole - p) + signed.reduce("ReduceMean", 1)
    parts = (z * z * -0.5).do("Exp") * (rates * (1 / math.sqrt(2 * math.pi)))
    density = parts.reduce("ReduceMean", 1)
    slope = (parts * z * rates).reduce("ReduceMean", 1)  # minus the density's own
    low = residual.compare("Greater", 0.0).where(low, x)
    high = residual.compare("Less", 0.0).where(high, x)
    level = residual + p
    newton = log1p(residual * (1 / p)) * level / density
    bend = 1.0 + newton * 0.5 * (slope / density + density / level)
    move = newton / bend.clip(0.5, 2.0)
    size = move.do("Abs")
    rounding = tail.reduce("ReduceMean", 1) * (8 * _EPS)
    sure = residual.do("Abs").compare("LessOrEqual", rounding)
    still = size.compare("LessOrEqual", x.do("Abs") * (2 * _EPS))
    done = sure.do("Or", still)
    new = x - move
    between = new.compare("GreaterOrEqual", low).do("And", new.compare("LessOrEqual", high))
    halved = size.compare("LessOrEqual", last * 0.5).do("Or", done)
    good = between.do("And", halved)
    new = good.where(new, done.where(x, (low + high) * 0.5))
    going = done.do("Not").cast(np.float32).do("ReduceMax", keepdims=0).compare("Greater", 0.0)
    return going, [new, low, high, (new - x).do("Abs")]


def _lower_tail(a: Value) -> Value:
    r"""Compute :math:`\Phi(-a)` for a >= 0 with full relative precision."""
    a = a * math.sqrt(0.5)
    t = 2.0 / (a + 2.0)
    total = t * _ERFC[-1] + _ERFC[-2]
    for c in reversed(_ERFC[:-2]):
        total = total * t + c
    return t * (total - a * a).do("Exp") * 0.5
