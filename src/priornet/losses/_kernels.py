"""Values and gradients of the losses of one-dimensional targets, in one pass each."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from priornet.distributions.averages import scalar_averages
from priornet.special.elementwise import phi_value
from priornet.special.gamma import (
    digamma_gap,
    log_gamma_gap,
    stirling_bregman,
    stirling_gap,
    trigamma_gap,
)

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
    r"""Compute :math:`\psi(n) - \ln n`, :math:`\nu = 2n` and :math:`\ln(\nu/4\pi) + 2 - 2R(n)`.

    For K = 1. The last is the Stirling gap in the form that the caller merges with other
    logarithms.
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
    """Check for an n below 1; assume one where looking would synchronise."""
    return any(e.device.type != "cpu" or (e.numel() > 0 and e.amin().item() < 0) for e in excesses)


@functools.cache
def _pole_columns(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return twice the poles and twice their weights, kept per device: a copy would synchronise."""
    p, c = zip(*((2 * p, 2 * c) for p, c in _BINET), strict=True)
    with torch.inference_mode(False):
        return tuple(torch.tensor(v, dtype=torch.float32, device=device) for v in (p, c))  # pyright: ignore[reportReturnType] (two of them)


def _pole_sums(base: Tensor, base0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Sum the poles' terms over :math:`(n_0+p)(n+p)^2`, :math:`(n+p)^2` and :math:`(n+p)^3`."""
    p, c = (v.reshape(-1, *(1,) * base.dim()) for v in _pole_columns(base.device))
    pole = (base + p).reciprocal_()
    square = (pole * pole).mul_(c)
    return (square / (base0 + p)).sum(0), square.sum(0), square.mul_(pole).sum(0)


def wishart_divergence(
    excess0: Tensor, excess: Tensor, *others: tuple[Tensor, Tensor]
) -> tuple[list[Tensor], Tensor, Tensor]:
    r"""Compute the divergence of two Wisharts with one mean, K = 1, and the parts of its slopes.

    Eq. (28) leaves :math:`B_F(n_0, n) = \frac12\varphi(n_0/n) + B_\mu(n_0, n)`, and with
    :math:`\delta = n_0 - n` a pole of :math:`\mu` has :math:`c\,\delta^2/((n_0+p)(n+p)^2)`. After a
    unit step, :math:`y = n + 1`, it is :math:`\varphi(n_0/n) - \frac12\varphi(y_0/y) -
    n_0\,\varphi(1 - \frac{\delta}{n_0 y}) + B_\mu(y_0, y)`.

    Returns:
        The divergence followed by :math:`\varphi` of the others, which cost less in one call, then
        :math:`\psi(n) - \ln n`, and its slope :math:`\psi'(n) - 1/n` in n.
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

    apart, squares, cubes = _pole_sums(base, base0)
    divergence = apart.mul_(change).mul_(change)
    divergence.add_(ahead, alpha=-0.5 if needs_step else 0.5)
    if needs_step:
        *values, step, through = values
        divergence.add_(step).addcmul_(through, df0, value=-0.5)
    psi.sub_(squares, alpha=2)
    slope.add_(cubes, alpha=8)
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


Tensors = Sequence[Tensor]
Constants = Sequence[Any]  # tensors, then perhaps a number
_LOG_2PI = math.log(2 * math.pi)


def _precision_divergence(c: Tensor, c0: Tensor) -> tuple[Tensor, Tensor]:
    r"""Compute :math:`t - 1 - \ln t` of precisions at :math:`t = c^2/c_0^2`, and t - 1."""
    x = (c - c0).div_(c0)  # t = (1 + x)^2
    value = phi_value(x, c / c0).mul_(2).addcmul_(x, x)
    return value, x.mul_(x + 2)


def gaussian_nll(parameters: Tensors, constants: Constants, loss: Tensor, grads: Tensors) -> None:
    """Compute the Gaussian NLL, Eq. (19): loc and root of the precision; target."""
    (loc, c), (y,) = parameters, constants
    off = loc - y
    z = off * c
    torch.mul(z, c, out=grads[0])
    torch.mul(z, off, out=grads[1]).sub_(c.reciprocal())
    torch.addcmul(torch.log(c).neg_(), z, z, value=0.5, out=loss).add_(0.5 * _LOG_2PI)


def end(parameters: Tensors, constants: Constants, loss: Tensor, grads: Tensors) -> None:
    """Compute the mean KL of the members to one Gaussian, Eq. (12): loc, c; members' averages.

    Constants are anchor, shift, root of the inverse mean variance, scatter of the means and gap.
    """
    (loc, c), (anchor, shift, mean_tril, scatter, gap) = parameters, constants
    off = (loc - anchor).sub_(shift)
    within, slope = _precision_divergence(c, mean_tril)
    pull = off * c
    torch.mul(pull, c, out=grads[0])
    square = torch.addcmul(scatter, off, off)
    torch.addcmul(slope.div_(c), square, c, out=grads[1])
    torch.addcmul(within.add_(gap), square.mul_(c), c, out=loss).mul_(0.5)


def reverse_kl(parameters: Tensors, constants: Constants, loss: Tensor, grads: Tensors) -> None:
    """Compute the reverse KL, Eq. (11): KL to the prior plus ``beta`` expected likelihoods.

    Constants are the prior's four parameters, then target and ``beta``; neither for the KL alone.
    """
    loc, c, belief, excess = parameters
    loc0, c0, belief0, excess0, *target = constants
    off = loc - loc0
    mean_pull = belief0 * off
    square = mean_pull * off
    inverse_belief = belief.reciprocal()
    more, more_df = belief0 - belief, excess0 - excess
    x = (c - c0).div_(c0)  # P / P0 = t = (1 + x)^2
    (of_df, of_belief, of_root), psi, psi_slope = wishart_divergence(
        excess0, excess, (more * inverse_belief, belief0 * inverse_belief), (x, c / c0)
    )
    # Eq. (27): kappa0 P (m - m0)^2 + phi(kappa0 / kappa); Eq. (28): nu0 (t - 1 - ln t) + 2 B.
    df0 = excess0 + 2
    twice = (x * x).add_(of_root, alpha=2).mul_(df0).add_(of_belief).add_(of_df, alpha=2)
    slope = torch.addcmul(2 * x, x, x).mul_(df0)  # nu0 (t - 1)
    if target:
        y, beta = target
        # Eq. (25): P (y - m)^2 + 1/kappa + ln 2 pi - E ln |Lambda|.
        miss = loc - y
        weighted = miss * beta
        spread = (inverse_belief + _LOG_2PI).sub_(torch.log(c), alpha=2).sub_(psi)
        twice.add_(spread.mul_(beta))
        square.addcmul_(weighted, miss)
        mean_pull.add_(weighted)
        slope.sub_(beta)
        more.add_(beta)
        more_df.add_(beta)
    pull = square * c
    torch.mul(mean_pull, c, out=grads[0]).mul_(c)
    torch.add(pull, slope.div_(c), out=grads[1])
    torch.mul(more, inverse_belief, out=grads[2]).mul_(inverse_belief).mul_(-0.5)
    torch.mul(more_df, psi_slope, out=grads[3]).mul_(-0.25)
    torch.addcmul(twice, pull, c, out=loss).mul_(0.5)


def evidential(parameters: Tensors, constants: Constants, loss: Tensor, grads: Tensors) -> None:
    """Compute the Student-T likelihood, Eqs. (4), (21), and regulariser: target; coefficient."""
    (loc, c, belief, excess), (y, weight) = parameters, constants
    off = loc - y
    df = excess + 2
    constant, constant_slope = student_constant(excess)

    # Squared distance q in the predictive's own scale, P / (1 + 1/kappa) = P kappa / (kappa + 1).
    share = belief / (belief + 1)
    pull = (off * c).mul_(c).mul_(share)
    square = pull * off
    total = df + square
    # Tail (df + 1)/2 ln(1 + q/df): slopes (df + 1)/(2 (df + q)) in q; in df see `log_tail`.
    steep = (df + 1).div_(total)
    fraction = square / total
    tail_slope = phi_value(-fraction, df / total).sub_(fraction.div_(df))

    evidence = torch.add(0.5 * df, belief, alpha=2).mul_(weight)
    torch.addcmul(steep * pull, off.sign(), evidence, out=grads[0])
    torch.mul(square, steep, out=grads[1]).sub_(1)  # c times its slope, and 2 kappa (kappa + 1)
    miss = off.abs_().mul_(weight)
    torch.div(grads[1], belief, out=grads[2]).div_(belief + 1).mul_(0.5).add_(miss, alpha=2)
    grads[1].div_(c)
    torch.add(miss, tail_slope, out=grads[3]).sub_(constant_slope).mul_(0.5)

    tail = torch.log1p(square.div_(df)).mul_(df.add_(1))
    tail.sub_(share.log_()).mul_(0.5).sub_(torch.log(c))
    evidence = torch.addcmul(tail, miss, (2 * belief).add_(excess, alpha=0.5).add_(1))
    torch.sub(evidence, constant, out=loss).add_(0.5 * _LOG_2PI)


def endd(
    parameters: Tensors, constants: Constants, loss: Tensor, grads: Tensors, *, tempering: str
) -> None:
    """Compute EnD2, Eqs. (15) to (17): likelihood of a teacher's members through their averages.

    Constants are the members (means and variances) or their five averages, then the temperature.
    """
    *averages, t = constants
    if len(averages) == 2:
        means, variances = averages
        averages = scalar_averages(means, variances, 2 / (t + 1))  # Eq. (16)
    if not isinstance(t, Tensor) and t == 1.0:
        _likelihood(parameters, averages, loss, grads)
        return
    # Eq. (17): T kappa, nu_T and the scale of P; each slope is passed back by hand.
    loc, c, belief, excess = parameters
    scale, bend = 1.0, None
    if tempering == "paper":
        scale = t**0.5
    elif tempering == "exact":
        df, rise = excess + 2, 1 - 1 / t
        scale = (1 - rise / df).sqrt_()
        bend = (df * df).mul_(scale).mul_(2 * t).reciprocal_().mul_(rise)  # its slope over T
    excess = t * excess + (t - 1) * (1 if tempering == "exact" else 2)
    _likelihood((loc, scale * c, t * belief, excess), averages, loss, grads)
    if bend is not None:
        grads[3].addcmul_(grads[1] * c, bend)
    grads[1].mul_(scale / t)
    grads[0].div_(t)
    loss.div_(t)


def _likelihood(parameters: Tensors, averages: Tensors, loss: Tensor, grads: Tensors) -> None:
    """Compute Eq. (15) from averages: anchor, shift, root of the mean precision, spread and gap."""
    loc, c, belief, excess = parameters
    anchor, shift, mean_tril, spread, gap = averages
    psi, df, rest = gamma_gaps(excess)

    mean_precision = mean_tril * mean_tril
    off = (loc - anchor).sub_(shift)
    pull = mean_precision * off
    torch.mul(pull, belief, out=grads[0])
    square = pull.mul_(off).add_(spread)

    # t - 1 - ln t at t = mean precision / P; slope -2 (t - 1) / c in c.
    from_mean, slope = _precision_divergence(mean_tril, c)
    from_mean.add_(gap)
    torch.mul(slope, df, out=grads[1]).div_(-c)

    inverse_belief = belief.reciprocal()
    torch.sub(square, inverse_belief, out=grads[2]).mul_(0.5)
    torch.add(from_mean, psi, out=grads[3]).mul_(0.5)

    # 1/2 [kappa (S + off) + nu (phi + gap) + ln(mean precision / kappa) - gap + ln 2 pi - 2 R]
    total = square.mul_(belief).addcmul_(df, from_mean).sub_(gap).add_(rest)
    total.add_(mean_precision.mul_(inverse_belief).div_(df).log_())
    torch.add(total, 2 * _LOG_2PI + math.log(2) - 2, out=loss).mul_(0.5)
