r"""Gamma functions of a one-dimensional Wishart, value and slope together, for closed-form losses.

With :math:`n = \nu/2 = d/2 + 1` and Binet's function :math:`\mu`,

.. math:: \ln\Gamma(n) = (n - \tfrac12)\ln n - n + \tfrac12\ln 2\pi + \mu(n), \qquad
    \mu(n) = \mu(n+1) + (n + \tfrac12)\ln(1 + 1/n) - 1

so one unit step moves every argument above 1. There, in float32, :math:`\mu` is a sum of simple
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
        return (
            digamma_gap(excess, 1),
            df,
            torch.log(df / _FOUR_PI) + 2 - 2 * stirling_gap(excess, 1),
        )
    inverse = df.reciprocal().mul_(2)
    log_step = torch.log1p(inverse)  # ln(1 + 1/n)
    psi = (log_step - inverse).sub_((df + 2).reciprocal_())
    rest = log_step.mul_(df + 1)
    for p, c in _BINET:
        pole = (df + (2 + 2 * p)).reciprocal_()  # 1/(2y + 2p)
        rest.add_(pole, alpha=4 * c)
        psi.addcmul_(pole, pole, value=-4 * c)
    return psi, df, rest


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

    With :math:`\delta = n_0 - n`, :math:`y = n + 1`, Eq. (28) leaves
    :math:`B_F(n_0, n) = \varphi(n_0/n) - \frac12\varphi(y_0/y) - n_0\,\varphi(1 -
    \frac{\delta}{n_0 y}) + B_\mu(y_0, y)`, and a pole of :math:`\mu` has
    :math:`c\,\delta^2/((y_0+p)(y+p)^2)`.

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
    df, df0 = excess + 2, excess0 + 2  # 2n; and 2y is two more
    above, above0 = excess + 4, excess0 + 4
    change = excess0 - excess
    inverse, inverse_above = df.reciprocal(), above.reciprocal()
    ratio, ratio_above = df0 * inverse, above0 * inverse_above
    step = change * inverse_above
    pairs = (
        (change * inverse, ratio),
        (step, ratio_above),
        (step * (-2 / df0), ratio_above / ratio),
        *others,
    )
    deltas, ratios = zip(*pairs, strict=True)
    own, ahead, through, *values = phi_value(torch.stack(deltas), torch.stack(ratios)).unbind(0)
    p, c = (v.reshape(-1, *(1,) * df.dim()) for v in _pole_columns(df.device))
    pole = (above + p).reciprocal_()
    square = (pole * pole).mul_(c)
    of_poles = (square / (above0 + p)).sum(0).mul_(change).mul_(change)
    divergence = of_poles.add_(own).sub_(ahead, alpha=0.5).addcmul_(through, df0, value=-0.5)
    psi = torch.log1p(2 * inverse).sub_(inverse, alpha=2).sub_(inverse_above)
    psi.sub_(square.sum(0), alpha=2)
    # 1/(n^2 y) + 1/(2 y^2) + mu''(y): no term is negative.
    slope = square.mul_(pole).sum(0).mul_(8).addcmul_(inverse_above, inverse_above, value=2)
    slope.addcmul_(inverse.square_(), inverse_above, value=8)
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
