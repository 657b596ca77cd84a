"""Maps of targets, fitted to training targets: the scale on which networks learn them.

Each is linear from a little past the training targets on (:mod:`priornet.special.maps`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
import torch

from priornet.special.maps import AsinhMap, LogMap, MonotoneMap, QuantileMap, YeoJohnsonMap
from priornet.tables.values import FloatArray

_MARGIN = 0.25  # past the training targets, in standard deviations of the mapped ones
# Of the Yeo-Johnson parameter: at most a logarithm on either side, for past the ends stronger maps
# turn a small error into a prediction of many times the largest target.
_POWERS = (0.0, 2.0)
_MOST = 10_000  # targets that fit a power; more change nothing
_SCORES = 0.25  # between knots of a quantile map, in normal scores
_ROWS_PER_KNOT = 8
_LEAST_GAP = 1e-3  # between knots, in interquartile ranges


def fit_map(kind: str, y: FloatArray, weight: FloatArray | None, name: str) -> MonotoneMap:
    """Fit a map to the training targets of one column.

    Args:
        kind: ``"log"``, ``"asinh"``, ``"yeo-johnson"`` or ``"quantile"``.
        y: Targets, shape ``(N,)``, not all equal.
        weight: Weight per row; 2 counts as two equal rows.
        name: Name of the target, for messages.

    Example:
        >>> fit_map("log", np.array([1.0, 10.0, 100.0]), None, "price").scale
        10.0
    """
    weight = np.ones(len(y)) if weight is None else weight
    order = np.argsort(y, kind="stable")
    y, weight = y[order], weight[order]
    y, weight = y[weight > 0], weight[weight > 0]
    return _FITS[kind](y, weight, name)


def map_targets(y: FloatArray, maps: Sequence[MonotoneMap], names: Sequence[str]) -> FloatArray:
    """Map targets ``(N, K)`` to the scale of the model; refuse values that a map does not reach."""
    columns = [own.forward(torch.tensor(y[:, k])).numpy() for k, own in enumerate(maps)]
    mapped = np.stack(columns, axis=1)
    wrong = ~np.isfinite(mapped)
    if wrong.any():
        row, k = map(int, np.argwhere(wrong)[0])
        raise _not_positive(names[k], float(y[row, k]))
    return mapped


def _not_positive(name: str, value: float) -> ValueError:
    return ValueError(
        f"the target {name!r} has values that are not positive (such as {value:g}), which have no "
        'logarithm: set `target_transform` to "asinh" or "auto".'
    )


def _fit_log(y: FloatArray, weight: FloatArray, name: str) -> LogMap:
    if y[0] <= 0:
        raise _not_positive(name, float(y[0]))
    scale = _quantiles(y, weight, [0.5])[0]
    t = np.log(y / scale)
    return LogMap(0.0, scale, high=float(t[-1]) + _margin(t, weight))


def _fit_asinh(y: FloatArray, weight: FloatArray, name: str) -> AsinhMap:
    loc, scale = _centre(y, weight)
    t = np.arcsinh((y - loc) / scale)
    past = _margin(t, weight)
    return AsinhMap(loc, scale, float(t[0]) - past, float(t[-1]) + past)


def _fit_yeo_johnson(y: FloatArray, weight: FloatArray, name: str) -> YeoJohnsonMap:
    loc, scale = _centre(y, weight)
    u = (y - loc) / scale
    step = max(1, len(u) // _MOST)
    power = most_likely_power(u[::step], weight[::step])
    t = _power(u, power)
    past = _margin(t, weight)
    return YeoJohnsonMap(loc, scale, float(t[0]) - past, float(t[-1]) + past, power)


def most_likely_power(u: FloatArray, weight: FloatArray) -> float:
    r"""Find the power of Yeo and Johnson under which u is most likely to be normal.

    Only powers from 0 to 2 are tried. The log-likelihood per row is :math:`-\tfrac12\ln V[t] +
    (\lambda-1)\,E[\mathrm{sgn}(u)\ln(1 + |u|)]`. Each round looks at a finer grid around the best.
    """
    share = weight / weight.sum()
    log_slope = float(share @ (np.sign(u) * np.log1p(np.abs(u))))

    def likelihood(power: float) -> float:
        t = _power(u, power)
        variance = float(share @ np.square(t - share @ t))
        return -0.5 * math.log(max(variance, 1e-300)) + (power - 1) * log_slope

    (low, high), best = _POWERS, 1.0
    for _ in range(5):
        grid = np.linspace(low, high, 17)
        best = float(grid[np.argmax([likelihood(float(power)) for power in grid])])
        step = grid[1] - grid[0]
        low, high = max(best - step, _POWERS[0]), min(best + step, _POWERS[1])
    return best


def _power(u: FloatArray, power: float) -> FloatArray:
    """Compute Yeo and Johnson's power without ends."""
    v, own = np.log1p(np.abs(u)), np.where(u < 0, 2 - power, power)
    grown = np.expm1(own * v) / np.where(own == 0, 1.0, own)
    return np.sign(u) * np.where(own == 0, v, grown)


def _fit_quantile(y: FloatArray, weight: FloatArray, name: str) -> QuantileMap:
    """Fit normal scores: knots at even distances on the normal scale, and past both ends.

    Past the ends the slope is that of the last piece, or that from the median to the end where it
    is steeper: targets a little past the last one are no surprise.
    """
    normal = NormalDist()
    loc, scale = _centre(y, weight)
    end = -normal.inv_cdf(0.5 / len(y))
    n_knots = int(min(2 * end / _SCORES, len(y) / _ROWS_PER_KNOT)) + 2
    t = np.linspace(-end, end, max(n_knots, 3))
    inner = _quantiles(y, weight, [normal.cdf(float(score)) for score in t[1:-1]])
    u = (np.array([y[0], *inner, y[-1]]) - loc) / scale
    # Values that occur often hold several knots: their mean takes the place of them all.
    group = np.concatenate([[0], np.cumsum(np.diff(u) > _LEAST_GAP)])
    n_equal = np.bincount(group)
    knots, levels = np.bincount(group, t) / n_equal, np.bincount(group, u) / n_equal
    if len(knots) < 2:
        knots, levels = t[[0, -1]], u[[0, -1]]
    slopes = np.diff(levels) / np.diff(knots)
    below, above = max(slopes[0], -levels[0] / end), max(slopes[-1], levels[-1] / end)
    knots = [float(knots[0]) - 1, *knots.tolist(), float(knots[-1]) + 1]
    levels = [float(levels[0] - below), *levels.tolist(), float(levels[-1] + above)]
    return QuantileMap(loc, scale, knots[0], knots[-1], tuple(knots), tuple(levels))


def _centre(y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return median and interquartile range; a wider range where half of the targets are equal."""
    for tail in (0.25, 0.1, 0.02):
        low, middle, high = _quantiles(y, weight, [tail, 0.5, 1 - tail])
        if high - low > 1e-9 * (y[-1] - y[0]):
            return middle, high - low
    return _quantiles(y, weight, [0.5])[0], float(y[-1] - y[0])


def _quantiles(y: FloatArray, weight: FloatArray, shares: Sequence[float]) -> list[float]:
    """Compute quantiles of sorted values: each stands in the middle of its weight."""
    reached = np.cumsum(weight)
    places = (reached - 0.5 * weight) / reached[-1]
    return np.interp(shares, places, y).tolist()


def _margin(t: FloatArray, weight: FloatArray) -> float:
    share = weight / weight.sum()
    return _MARGIN * math.sqrt(float(share @ np.square(t - share @ t)))


_FITS: dict[str, Callable[[FloatArray, FloatArray, str], MonotoneMap]] = {
    "log": _fit_log,
    "asinh": _fit_asinh,
    "yeo-johnson": _fit_yeo_johnson,
    "quantile": _fit_quantile,
}
