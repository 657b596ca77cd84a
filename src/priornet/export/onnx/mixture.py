r"""The central interval of a mixture of normals, as a loop of plain operators.

The search of :mod:`priornet.distributions.mixture`: Halley steps on :math:`\ln F(x) - \ln p`,
kept in a bracket by bisection, until every row has converged. Both ends are looked for at once, the
upper one as the lower one of the mirrored mixture.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from priornet.export.onnx.graph import Graph, Value, log1p

__all__ = ["mixture_interval"]

_MOST_STEPS = 60
_EPS = float(np.finfo(np.float32).eps)  # also in double precision: that of the tail below
# ln of erfc(a) exp(a^2) / t at t = 1 / (1 + a / 2), relative error 1.2e-7 for every a >= 0
# (Numerical Recipes, 6.2).
_ERFC = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


def mixture_interval(
    graph: Graph, means: Value, scales: Value, mean: Value, variance: Value, coverage: float
) -> tuple[Value, Value]:
    """Lower and upper end of each mixture's central interval.

    Args:
        graph: Gets the nodes.
        means: Member means, ``(M, *batch)``.
        scales: Member standard deviations, ``(M, *batch)``.
        mean: Of the mixture, ``(*batch)``.
        variance: Of the mixture.
        coverage: Of the interval.
    """
    p = (1 - coverage) / 2
    z = NormalDist().inv_cdf(p)
    reach = variance.do("Sqrt") * z
    # Both searches along a leading axis of two, members along the next.
    first = graph.constant([0], np.int64)
    second = graph.constant([1], np.int64)
    both = graph.join([m.do("Unsqueeze", first) for m in (means, means * -1.0)], 0)
    centre = graph.join([m.do("Unsqueeze", first) for m in (mean, mean * -1.0)], 0)
    rates = 1.0 / scales
    members = both + scales * z
    low, high = members.reduce("ReduceMin", 1), members.reduce("ReduceMax", 1)
    x = (centre + reach).do("Max", low).do("Min", high)

    def step(body: Graph, carried: list[Value]) -> tuple[Value, list[Value]]:
        return _step(body, carried, _inside(body, both), _inside(body, rates), p, second)

    found, *_ = graph.loop(_MOST_STEPS, [x, low, high, high - low], step)
    return found.at(0, axis=0), found.at(1, axis=0) * -1.0


def _inside(body: Graph, value: Value) -> Value:
    """A value of the surrounding graph, used in the body of a loop."""
    return Value(body, value.name, value.dtype)


def _step(
    body: Graph, carried: list[Value], means: Value, rates: Value, p: float, axis: Value
) -> tuple[Value, list[Value]]:
    x, low, high, last = carried
    z = (x.do("Unsqueeze", axis) - means) * rates
    tail = _lower_tail(z.do("Abs"))
    above = z.compare("Greater", 0.0)
    # F(x) - p as whole members below x plus tails: between far members only tails differ.
    signed = body.where(above, tail * -1.0, tail)
    whole = above.cast(x.dtype).reduce("ReduceMean", 1)
    residual = (whole - p) + signed.reduce("ReduceMean", 1)
    parts = (z * z * -0.5).do("Exp") * (rates * (1 / math.sqrt(2 * math.pi)))
    density = parts.reduce("ReduceMean", 1)
    slope = (parts * z * rates).reduce("ReduceMean", 1)  # minus the density's own
    low = body.where(residual.compare("Greater", 0.0), low, x)
    high = body.where(residual.compare("Less", 0.0), high, x)
    level = residual + p
    newton = log1p(body, residual * (1 / p)) * level / density
    bend = 1.0 + newton * 0.5 * (slope / density + density / level)
    limits = (body.constant(limit, x.dtype) for limit in (0.5, 2.0))
    move = newton / bend.do("Clip", *limits)
    size = move.do("Abs")
    rounding = tail.reduce("ReduceMean", 1) * (8 * _EPS)
    sure = body.add("LessOrEqual", residual.do("Abs"), rounding, dtype=bool)
    still = body.add("LessOrEqual", size, x.do("Abs") * (2 * _EPS), dtype=bool)
    done = sure.do("Or", still)
    new = x - move
    between = new.compare("GreaterOrEqual", low).do("And", new.compare("LessOrEqual", high))
    halved = size.compare("LessOrEqual", last * 0.5).do("Or", done)
    good = between.do("And", halved)
    middle = (low + high) * 0.5
    new = body.where(good, new, body.where(done, x, middle))
    left = body.add("Not", done, dtype=bool).cast(np.float32)
    going = left.do("ReduceMax", keepdims=0).compare("Greater", 0.0)
    return going, [new, low, high, (new - x).do("Abs")]


def _lower_tail(a: Value) -> Value:
    r""":math:`\Phi(-a)` for a >= 0, with its relative precision."""
    a = a * math.sqrt(0.5)
    t = 2.0 / (a + 2.0)
    total = t * _ERFC[-1] + _ERFC[-2]
    for c in reversed(_ERFC[:-2]):
        total = total * t + c
    return t * (total - a * a).do("Exp") * 0.5
