"""Maps of every kind, and their h in plain NumPy."""

from __future__ import annotations

import math

import numpy as np

from priornet.special.maps import AsinhMap, LogMap, MonotoneMap, QuantileMap, YeoJohnsonMap

KNOTS, VALUES = (-2.0, -1.0, 0.2, 2.5), (-4.0, -1.0, 3.0, 3.5)
MAPS = {
    "log": LogMap(0.0, 2.0, high=4.0),
    "asinh": AsinhMap(1.0, 2.0, -3.0, 6.0),
    "yeo-johnson 0.7": YeoJohnsonMap(0.0, 1.0, -2.0, 3.0, power=0.7),
    "yeo-johnson -0.5": YeoJohnsonMap(-1.0, 3.0, -8.0, 1.9, power=-0.5),
    "quantile": QuantileMap(0.5, 2.0, -2.0, 2.5, knots=KNOTS, values=VALUES),
}


def plain_inverse(own: MonotoneMap, t: float) -> float:
    """y = h(t), with the linear ends written out."""
    if own.kind == "quantile":
        piece = min(max(int(np.searchsorted(KNOTS, t)), 1), 3)
        (a, b), (c, d) = KNOTS[piece - 1 : piece + 1], VALUES[piece - 1 : piece + 1]
        u = c + (t - a) * (d - c) / (b - a)
    else:
        at = min(max(t, own.low), own.high)
        u = _core(own, at)
        if t != at:
            step = 1e-6
            u += (t - at) * (_core(own, at + step) - _core(own, at - step)) / (2 * step)
    return own.loc + own.scale * u


def _core(own: MonotoneMap, t: float) -> float:
    if own.kind == "log":
        return math.exp(t)
    if own.kind == "asinh":
        return math.sinh(t)
    assert isinstance(own, YeoJohnsonMap)
    power, sign = (own.power, 1) if t >= 0 else (2 - own.power, -1)
    return sign * ((1 + power * abs(t)) ** (1 / power) - 1)
