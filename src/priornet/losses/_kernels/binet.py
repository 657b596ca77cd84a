r"""Gamma functions of a one-dimensional Wishart, value and slope together, for closed-form losses.

With :math:`n = \nu/2 = d/2 + 1` and Binet's function :math:`\mu`,

.. math:: \ln\Gamma(n) = (n - \tfrac12)\ln n - n + \tfrac12\ln 2\pi + \mu(n), \qquad
    \mu(n) = \mu(n+1) + (n + \tfrac12)\ln(1 + 1/n) - 1

so one unit step moves every argument above 1 (n is above 1 already while the excess is not
negative, as every head makes it). There, in float32, :math:`\mu` is a sum of simple
poles :math:`\sum_i c_i/(y + p_i)`: slopes and Bregman divergences of a pole are products, which
do not cancel. float64 uses the longer series of :mod:`priornet.special.gamma`. Nothing here has a
derivative of its own.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from priornet.special.gamma import (
    digamma_gap,
    log_gamma_gap,
    stirling_bregman,
    stirling_gap,
    trigamma_gap,
)
from priornet.special.phi import phi_value

__all__ = ["gamma_gaps", "student_constant", "wishart_divergence"]

# Poles (p, c), fitted to 40 digits over y >= 1: mu to 3e-7, its slope and curvature to 5e-7 of
# 1/(2y) and 1/(2y^2). The c sum to 1/12, which makes them right for large y.
_BINET = (
    (0.026016762, 0.042373614),
    (0.290932018, 0.165206855),
    (0.472416147, -0.167231544),
    (0.694737324, 0.042984408),
)
# The same for g(y) = ln Gamma(y + 1/2) - ln Gamma(y) - ln(y)/2; the c sum to -1/8.
_HALF_STEP = (
    (0.033271143, -0.053842635),
    (0.295447587, -0.231095713),
    (0.540162207, 0.208480066),
    (0.960880951, -0.059106408),
    (1.348919878, 0.010564691),
)
_FOUR_PI = 4 * math.pi


def gamma_gaps(excess: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Digamma gap, :math:`\nu`, and what the Stirling gap adds to its logarithm, at K = 1.

    Returns:
        :math:`\psi(n) - \ln n`, :math:`\nu = 2n`, and :math:`\ln(\nu/4\pi) + 2 - 2R(n)`; the caller
        has other logarithms and constants to merge these with.
    """
    df = excess + 2
    if excess.dtype == torch.float64:
        rest = torch.log(df / _FOUR_PI) + 2 - 2 * stirling_gap(excess, 1)
        return digamma_gap(excess, 1), df, rest
    needs_step = _below_one(excess)
    base = df + 2 if needs_step else df  # twice the argument of mu
    psi = base.reciprocal().neg_()
    if needs_step:
        inverse = df.reciprocal().mul_(2)
        log_step = torch.log1p(inverse)  # ln(1 + 1/n)
        psi.add_(log_step).sub_(inverse)
        rest = log_step.mul_(df + 1)
    else:
        rest = torch.full_like(df, 2.0)
    for p, c in _BINET:
        pole = (base + 2 * p).reciprocal_()
        rest.add_(pole, alpha=4 * c)
        psi.addcmul_(pole, pole, value=-4 * c)
    return psi, df, rest


def _below_one(*excesses: Tensor) -> bool:
    """Whether n falls below 1 somewhere; taken for granted where looking would synchronise."""
    return any(e.device.type != "cpu" or (e.numel() > 0 and e.amin().item() < 0) for e in excesses)


@functools.cache
def _pole_columns(device: torch.device) -> tuple[Tensor, Tensor]:
    """Twice the poles and twice their weights, kept per device: a copy there would synchronise."""
    p, c = zip(*((2 * p, 2 * c) for p, c in _BINET), strict=True)
    with torch.inference_mode(False):
        return tuple(torch.tensor(v, dtype=torch.float32, device=device) for v in (p, c))  # pyright: ignore[reportReturnType] (two of them)


def wishart_divergence(
    excess0: Tensor, excess: Tensor, *others: tuple[Tensor, Tensor]
) -> tuple[list[Tensor], Tensor, Tensor]:
    r"""Divergence of two Wisharts with one mean, at K = 1, and what its slopes need.

    Eq. (28) leaves :math:`B_F(n_0, n) = \frac12\varphi(n_0/n) + B_\mu(n_0, n)`, and with
    :math:`\delta = n_0 - n` a pole of :math:`\mu` has :math:`c\,\delta^2/((n_0+p)(n+p)^2)`. After a
    unit step, :math:`y = n + 1`, it is :math:`\varphi(n_0/n) - \frac12\varphi(y_0/y) -
    n_0\,\varphi(1 - \frac{\delta}{n_0 y}) + B_\mu(y_0, y)`.

    Args:
        excess0: Excess of the reference, broadcastable to ``excess``.
        excess: Excess of the prediction.
        others: Further arguments of :math:`\varphi`, as for :func:`phi_value`: a small batch pays
            for the call, not for the numbers.

    Returns:
        The divergence followed by :math:`\varphi` of the others, then :math:`\psi(n) - \ln n`, and
        its slope :math:`\psi'(n) - 1/n` in n.
    """
    if excess.dtype == torch.float64:
        values = [stirling_bregman(excess0.expand_as(excess), excess, 1)]
        values += [phi_value(*other) for other in others]
        return values, digamma_gap(excess, 1), trigamma_gap(excess, 1)
    needs_step = _below_one(excess, excess0)
    shift = 4 if needs_step else 2
    base, base0 = excess + shift, excess0 + shift  # twice the arguments of mu
    change = excess0 - excess
    inverse = base.reciprocal()
    ratio = base0 * inverse
    pairs = [(change * inverse, ratio), *others]
    psi, slope = -inverse, (inverse * inverse).mul_(2)
    df0 = base0
    if needs_step:
        own, df0 = (excess + 2).reciprocal_(), excess0 + 2
        own_ratio = df0 * own
        pairs += [(change * own, own_ratio), (pairs[0][0] * (-2 / df0), ratio / own_ratio)]
        psi.add_(torch.log1p(2 * own)).sub_(own, alpha=2)
        slope.addcmul_(own * own, inverse, value=8)
    deltas, ratios = zip(*pairs, strict=True)
    ahead, *values = phi_value(torch.stack(deltas), torch.stack(ratios)).unbind(0)

    p, c = (v.reshape(-1, *(1,) * base.dim()) for v in _pole_columns(base.device))
    pole = (base + p).reciprocal_()
    square = (pole * pole).mul_(c)
    divergence = (square / (base0 + p)).sum(0).mul_(change).mul_(change)
    divergence.add_(ahead, alpha=-0.5 if needs_step else 0.5)
    if needs_step:
        *values, step, through = values
        divergence.add_(step).addcmul_(through, df0, value=-0.5)
    psi.sub_(square.sum(0), alpha=2)
    slope.add_(square.mul_(pole).sum(0), alpha=8)
    return [divergence, *values], psi, slope


def student_constant(excess: Tensor) -> tuple[Tensor, Tensor]:
    r"""Log-constant g(n) of a standard Student-T and its slope in n, at K = 1.

    :math:`g(n) = \ln\Gamma(n + \frac12) - \ln\Gamma(n) - \frac12\ln n`; down a unit step it changes
    by :math:`\frac12\ln\frac{n(n+1)}{(n+1/2)^2}`, whose slope is
    :math:`\frac{1}{2n(n+1)(2n+1)}`.
    """
    n = (0.5 * excess).add_(1)
    if excess.dtype == torch.float64:
        with torch.enable_grad():
            leaf = n.requires_grad_()
            value = log_gamma_gap(leaf)
            (slope,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), slope
    quarter = (n + 0.5).square_().reciprocal_().mul_(0.25)  # 1 - n (n + 1) / (n + 1/2)^2
    value = quarter.neg_().log1p_().mul_(0.5)
    slope = torch.mul(n, n + 1).mul_(4 * n + 2).reciprocal_()
    for p, c in _HALF_STEP:
        pole = (n + (1 + p)).reciprocal_()
        value.add_(pole, alpha=c)
        slope.addcmul_(pole, pole, value=-c)
    return value, slope
