r"""Moments of a monotone map of a normal or a Student-T, by quadrature that knows where maps bend.

Past the ends of a map, and between the knots of a :class:`~priornet.special.maps.QuantileMap`,
h is linear: closed forms from partial moments. Between the ends one Gauss-Legendre rule integrates
:math:`h(t) - h(m)`, whose squares do not cancel, over the part of the interval that matters. A
Student-T is integrated over w with :math:`x = \sqrt\nu \sinh w`, in which its density
:math:`\cosh^{-\nu} w` has no heavy tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.special.elementwise import normal_cdf
from priornet.special.gamma import log_gamma_gap
from priornet.special.maps import MonotoneMap, QuantileMap
from priornet.special.student_t import student_t_cdf

_NORMAL_NODES, _T_NODES = 20, 32  # on each side of the centre
_DROP, _MOST_DROP = 32.0, 120.0  # nats by which what is left out is smaller
_ROWS = 4096  # at once


class MapMoments(NamedTuple):
    """Moments of y = h(t), each of the batch shape."""

    mean: Tensor
    variance: Tensor
    log_slope: Tensor
    """Expectation of ln h'(t): the entropy of y less that of t."""


def map_moments(
    own: MonotoneMap, loc: Tensor, scale: Tensor, excess: Tensor | None = None
) -> MapMoments:
    """Compute the moments of ``own.inverse(t)``.

    Args:
        own: The map.
        loc: Location of t.
        scale: Scale of t.
        excess: Degrees of freedom - 2 of a Student-T; None for a normal. For an excess of at most 0
            the variance is ``inf``, and for one of at most -1 moments are ``nan``.
    """
    given = (loc, scale) if excess is None else (loc, scale, excess)
    given = torch.broadcast_tensors(*given)
    rows = [part.double().reshape(-1) for part in given]
    joined = in_pieces(lambda *part: _moments(own, *part), rows, _ROWS)
    return MapMoments(*(part.reshape(given[0].shape).to(loc.dtype) for part in joined))


def in_pieces(
    function: Callable[..., tuple[Tensor, ...]], rows: list[Tensor], n: int
) -> tuple[Tensor, ...]:
    """Apply a function to n rows at a time; to all at once in a program, whose rows vary."""
    if torch.compiler.is_compiling():
        return function(*rows)
    pieces = [function(*part) for part in zip(*(row.split(n) for row in rows), strict=True)]
    return tuple(torch.cat(part) for part in zip(*pieces, strict=True))


def _moments(
    own: MonotoneMap, loc: Tensor, scale: Tensor, excess: Tensor | None = None
) -> MapMoments:
    if excess is None:
        return _of_bell(own, loc, scale, _Bell(normal_tails, None))
    df = torch.where(excess > -1, excess + 2, 3.0)
    found = _of_bell(own, loc, scale, _Bell(lambda u: student_t_tails(u, df), df))
    undefined = ~(excess > -1)
    variance = found.variance.masked_fill(excess <= 0, torch.inf)
    return MapMoments(
        *(
            part.masked_fill(undefined, torch.nan)
            for part in (found.mean, variance, found.log_slope)
        )
    )


class _Bell(NamedTuple):
    """A standard normal or Student-T: its partial moments, and degrees of freedom."""

    tails: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
    df: Tensor | None


def normal_tails(u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the moments 0, 1, 2 of a standard normal above u >= 0."""
    density = torch.exp(-0.5 * u * u) * (1 / math.sqrt(2 * math.pi))
    tail = normal_cdf(-u)
    return tail, density, tail + torch.where(torch.isinf(u), 0.0, u * density)


def student_t_tails(u: Tensor, df: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute the moments 0, 1, 2 of a standard Student-T above u >= 0.

    With :math:`\bar F` the tail, :math:`\int_u x f = c\,\tfrac{\nu}{\nu-1}(1+u^2/\nu)^{(1-\nu)/2}`
    and, by parts, :math:`\int_u x^2 f = u\int_u x f + \tfrac\nu{\nu-2}\bar
    F_{\nu-2}(u\sqrt{(\nu-2)/\nu})`.

    Args:
        u: Shape ``(*batch,)`` or ``(n, *batch)``.
        df: Degrees of freedom > 1; the second moment is wrong where it does not exist.
    """
    excess = torch.where(df > 2, df - 2, 1.0)
    growth = torch.log1p(torch.square(u / df.sqrt()))
    first = torch.exp(_log_top(df) - 0.5 * (df - 1) * growth) * (df / (df - 1))
    inner = student_t_cdf(-u * (excess / df).sqrt(), excess.expand_as(u))
    second = torch.where(torch.isinf(u), 0.0, u * first) + df / excess * inner
    return student_t_cdf(-u, df.expand_as(u)), first, second


def _log_top(df: Tensor) -> Tensor:
    """Compute the log-density of a standard Student-T at 0."""
    return log_gamma_gap(0.5 * df) - 0.5 * math.log(2 * math.pi)


def _of_bell(own: MonotoneMap, loc: Tensor, scale: Tensor, bell: _Bell) -> MapMoments:
    """Add up the linear pieces and the curved one, each of the shape ``(N,)``."""
    centre = own.inverse(loc)
    first, second, slope = (torch.zeros_like(loc) for _ in range(3))
    for low, high, log_slope, (m0, m1, m2) in _linear_pieces(own, loc, scale, bell):
        # On this piece h(t) - h(m) = a + b x, with x = (t - m) / s, and a = 0 where m is on it.
        near = loc.clamp(low, high)
        a = own.inverse(near) - centre + torch.exp(log_slope) * (loc - near)
        b = torch.exp(log_slope) * scale
        first = first + a * m0 + b * m1
        second = second + a * a * m0 + 2 * a * b * m1 + b * b * m2
        slope = slope + log_slope * m0
    if not isinstance(own, QuantileMap):
        x, mass = _nodes(own, loc, scale, bell)
        t = loc + scale * x
        gap = own.inverse(t) - centre
        first = first + (mass * gap).sum(0)
        second = second + (mass * gap * gap).sum(0)
        slope = slope + (mass * own.log_slope(t)).sum(0)
    return MapMoments(centre + first, (second - first * first).clamp(min=0), slope)


def _linear_pieces(
    own: MonotoneMap, loc: Tensor, scale: Tensor, bell: _Bell
) -> Iterator[tuple[float, float, Tensor, list[Tensor]]]:
    """Yield the ends of each linear piece, its ln h', and the moments of x on it."""
    knots = own.knots if isinstance(own, QuantileMap) else (own.low, own.high)
    edges = (-math.inf, *knots, math.inf)
    moments = _partial_moments((loc.new_tensor(edges)[:, None] - loc) / scale, bell)
    for i, (low, high) in enumerate(pairwise(edges)):
        is_curved = i == 1 and not isinstance(own, QuantileMap)
        if high == -math.inf or is_curved:
            continue
        inside = high if i == 0 else low if high == math.inf else 0.5 * (low + high)
        log_slope = own.log_slope(loc.new_tensor(inside))
        yield low, high, log_slope, [part[i] for part in moments]


def _partial_moments(u: Tensor, bell: _Bell) -> list[Tensor]:
    """Compute the moments 0, 1, 2 of x between neighbouring edges ``(n, N)``, without cancelling.

    Between edges on one side of the centre they are differences of tails on that side.
    """
    below = u < 0
    both_below, both_above = below[1:], ~below[:-1]
    spread = torch.ones_like(u[0]) if bell.df is None else bell.df / (bell.df - 2)
    totals = (torch.ones_like(spread), torch.zeros_like(spread), spread)
    moments: list[Tensor] = []
    for sign, total, tail in zip((1.0, -1.0, 1.0), totals, bell.tails(u.abs()), strict=True):
        tail = torch.where(below, sign * tail, tail)
        left, right = tail[:-1], tail[1:]
        across = torch.where(both_above, left - right, total - left - right)
        moments.append(torch.where(both_below, right - left, across))
    return moments


def _nodes(own: MonotoneMap, loc: Tensor, scale: Tensor, bell: _Bell) -> tuple[Tensor, Tensor]:
    """Return nodes x between the ends and the probability of each, both ``(n, N)``."""
    edges = [(edge - loc) / scale for edge in own.edges]
    span = math.log((own.ends[1] - own.ends[0]) * own.scale)
    drop = _DROP + 2 * (span - torch.log(scale) - own.log_slope(loc))
    drop = drop.clamp(_DROP, _MOST_DROP)
    if bell.df is None:
        x, width = _legendre(edges, (2 * drop).sqrt(), _NORMAL_NODES)
        return x, width * torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    root, over = bell.df.sqrt(), torch.expm1(drop / bell.df)
    reach = torch.log1p(over + (over * (over + 2)).sqrt())  # where cosh w = exp(drop / df)
    w, width = _legendre([(edge / root).asinh() for edge in edges], reach, _T_NODES)
    sinh = torch.sinh(w)
    log_density = _log_top(bell.df) - 0.5 * bell.df * torch.log1p(sinh * sinh)
    return root * sinh, width * root * torch.exp(log_density)


def _legendre(edges: list[Tensor], reach: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return n Gauss-Legendre nodes and weights on each piece between edges, 0 among them."""
    cuts = torch.stack([edge.clamp(-reach, reach) for edge in edges])
    middle = torch.zeros_like(reach).clamp(cuts[0], cuts[-1])
    cuts = torch.cat([cuts, middle[None]]).sort(0).values
    half, centre = 0.5 * cuts.diff(dim=0), 0.5 * (cuts[1:] + cuts[:-1])  # (pieces, N)
    nodes, weights = (torch.from_numpy(part).to(half)[:, None] for part in _rule(n))
    x = centre[:, None] + half[:, None] * nodes
    return x.flatten(0, 1), (half[:, None] * weights).flatten(0, 1)


@cache
def _rule(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(n)
