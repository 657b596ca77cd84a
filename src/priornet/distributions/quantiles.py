"""Quantiles of a mixture of normals, for many mixtures at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from priornet.checks import values_visible
from priornet.special.normal import normal_cdf
from priornet.special.pieces import cache_pieces

__all__ = ["mixture_quantile"]

# Steps between looks at which rows are done. Most need five; a row whose probability falls between
# far members may need to halve its bracket down to the last digit.
_ROUNDS = (4, 1, 1, 1, 1, 2, 4, 8, 28)


class _Search(NamedTuple):
    """Rows still looked for: their mixture, and what is known of the quantile."""

    p: Tensor  # (n,), at most 1/2
    means: Tensor  # (M, n)
    rates: Tensor  # 1 / scales, (M, n)
    x: Tensor
    low: Tensor
    high: Tensor
    last: Tensor  # size of the last step


def mixture_quantile(p: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    r"""The x with :math:`\frac1M\sum_m \Phi((x - \mu_m)/\sigma_m) = p`; no gradient.

    Halley steps on :math:`\ln F(x) - \ln p`, kept between the extreme quantiles of the members by
    bisection. Rows leave the search when they have converged.

    Args:
        p: Probabilities, shape ``(n,)``.
        means: Member means, shape ``(M, n)``.
        scales: Member standard deviations, shape ``(M, n)``.
    """
    with torch.no_grad():
        pieces = cache_pieces(p.numel(), 2 * len(means), p.device)
        return torch.cat([_quantile(p[s], means[:, s], scales[:, s]) for s in pieces])


def _quantile(p: Tensor, means: Tensor, scales: Tensor) -> Tensor:
    # Upper-tail quantiles are those of the mirrored mixture, where the cdf keeps its digits.
    upper = p > 0.5
    mirror = torch.ones_like(p).masked_fill(upper, -1.0)
    search = _begin(torch.where(upper, 1 - p, p), means * mirror, scales)
    rounds = (*_ROUNDS, 30) if p.dtype == torch.float64 else _ROUNDS
    if not values_visible(p, means, scales):  # which rows are done cannot be seen
        for _ in range(sum(rounds)):
            search, _ = _step(search)
        return search.x * mirror
    x, rows = search.x, torch.arange(p.numel(), device=p.device)
    for count in rounds:
        done = torch.zeros_like(search.p, dtype=torch.bool)
        for _ in range(count):
            search, done = _step(search)
        x = x.index_copy(0, rows, search.x)
        (left,) = torch.nonzero(~done, as_tuple=True)
        if not len(left):
            break
        rows, search = rows[left], _Search(*(part[..., left] for part in search))
    return x * mirror


def _begin(p: Tensor, means: Tensor, scales: Tensor) -> _Search:
    """Between the extreme quantiles of the members, at that of a normal with the same moments."""
    z = torch.special.ndtri(p)
    quantiles = torch.addcmul(means, scales, z)
    low, high = quantiles.amin(0), quantiles.amax(0)
    mean = means.mean(0)
    variance = (scales.square() + (means - mean).square()).mean(0)
    x = torch.clamp(mean + variance.sqrt() * z, low, high)
    return _Search(p, means, scales.reciprocal(), x, low, high, high - low)


def _step(search: _Search) -> tuple[_Search, Tensor]:
    """One step, and which rows had converged before it."""
    p, means, rates, x, low, high, last = search
    z = (x - means) * rates
    # F(x) - p as whole members below x plus tails: between far members only tails differ.
    tail = normal_cdf(-z.abs())
    below = (z > 0).to(z.dtype)
    residual = (below.mean(0) - p) + (tail * (1 - 2 * below)).mean(0)
    parts = torch.exp(-0.5 * z * z) * rates * (1 / math.sqrt(2 * math.pi))
    density, slope = parts.mean(0), -(parts * z * rates).mean(0)
    low, high = torch.where(residual > 0, low, x), torch.where(residual < 0, high, x)
    # g = ln F - ln p, g' = f/F and g''/g' = f'/f - f/F
    level = p + residual
    newton = torch.log1p(residual / p) * level / density
    bend = 1 - 0.5 * newton * (slope / density - density / level)
    step = newton / bend.clamp(0.5, 2.0)  # Newton's, corrected by no more than a factor 2
    eps = torch.finfo(x.dtype).eps
    rounding = 8 * eps * tail.mean(0)  # of the residual; between far members far below eps
    done = (residual.abs() <= rounding) | (step.abs() <= 2 * eps * x.abs())
    new = x - step
    # A step that leaves the bracket, or is not half of the one before, gives way to bisection:
    # without the second rule a spike between two plateaus can send x to and fro.
    good = (new >= low) & (new <= high) & (done | (step.abs() <= 0.5 * last))
    new = torch.where(good, new, torch.where(done, x, 0.5 * (low + high)))
    return _Search(p, means, rates, new, low, high, (new - x).abs()), done
