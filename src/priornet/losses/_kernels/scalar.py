r"""Kernels of the one-dimensional losses: value and gradient in closed form.

Each writes one loss of a Normal-Wishart (or a Gaussian) whose parameters come as plain tensors: the
mean :math:`m`, the root :math:`c` of the expected precision :math:`P = c^2`, the belief
:math:`\kappa` and the excess :math:`d = \nu - 2`. The composed formulas next to the losses say the
same for any K; :mod:`priornet.losses._kernels.autograd` chooses. In-place operations on fresh
intermediates throughout: this is the inner loop of training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from priornet.distributions.averages import scalar_averages
from priornet.losses._kernels.binet import gamma_gaps, student_constant, wishart_divergence
from priornet.special.phi import phi_value

__all__ = ["end", "endd", "evidential", "gaussian_nll", "reverse_kl"]

Tensors = Sequence[Tensor]
_LOG_2PI = math.log(2 * math.pi)


def _precision_divergence(c: Tensor, c0: Tensor) -> tuple[Tensor, Tensor]:
    r"""Divergence :math:`t - 1 - \ln t` of precisions at :math:`t = c^2/c_0^2`, and t - 1."""
    x = (c - c0).div_(c0)  # t = (1 + x)^2
    value = phi_value(x, c / c0).mul_(2).addcmul_(x, x)
    return value, x.mul_(x + 2)


def gaussian_nll(parameters: Tensors, constants: Tensors, loss: Tensor, grads: Tensors) -> None:
    """Gaussian negative log-likelihood, Eq. (19): loc and root of the precision; target."""
    (loc, c), (y,) = parameters, constants
    off = loc - y
    z = off * c
    torch.mul(z, c, out=grads[0])
    torch.mul(z, off, out=grads[1]).sub_(c.reciprocal())
    torch.addcmul(torch.log(c).neg_(), z, z, value=0.5, out=loss).add_(0.5 * _LOG_2PI)


def end(parameters: Tensors, constants: Tensors, loss: Tensor, grads: Tensors) -> None:
    """Mean KL of the members to one Gaussian, Eq. (12): loc, c; averages of the members.

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


def reverse_kl(
    parameters: Tensors,
    constants: Tensors,
    loss: Tensor,
    grads: Tensors,
    beta: Tensor | float | None = None,
) -> None:
    r"""Reverse KL, Eq. (11): divergence from the prior plus ``beta`` expected likelihoods.

    Constants are the prior's four parameters, then the target, then ``beta`` if it is a tensor.
    Without a target only the divergence is left.
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
        y, *given = target
        beta = given[0] if given else beta
        assert beta is not None
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


def evidential(
    parameters: Tensors,
    constants: Tensors,
    loss: Tensor,
    grads: Tensors,
    coefficient: float = 0.0,
) -> None:
    r"""Deep Evidential Regression: Student-T likelihood, Eqs. (4) and (21), plus the regulariser.

    Constants are the target, then the coefficient if it is a tensor.
    """
    loc, c, belief, excess = parameters
    y, *given = constants
    weight = given[0] if given else coefficient
    off = loc - y
    df = excess + 2
    constant, constant_slope = student_constant(excess)

    # Squared distance q in the predictive's own scale, P / (1 + 1/kappa) = P kappa / (kappa + 1).
    share = belief / (belief + 1)
    pull = (off * c).mul_(c).mul_(share)
    square = pull * off
    beyond = df + square
    # Tail (df + 1)/2 ln(1 + q/df): slopes (df + 1)/(2 (df + q)) in q; in df see `log_tail`.
    steep = (df + 1).div_(beyond)
    fraction = square / beyond
    tail_slope = phi_value(-fraction, df / beyond).sub_(fraction.div_(df))

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
    parameters: Tensors,
    constants: Tensors,
    loss: Tensor,
    grads: Tensors,
    temperature: float | None = 1.0,
    tempering: str = "paper",
) -> None:
    r"""EnD2, Eqs. (15) to (17): likelihood of a teacher's members through their averages.

    Constants are the members (means and variances) or their five averages, then the temperature
    if it is a tensor, which ``temperature`` = None says.
    """
    t = temperature
    if t is None:
        *constants, t = constants
    if len(constants) == 2:
        means, variances = constants
        constants = scalar_averages(means, variances, 2 / (t + 1))  # Eq. (16)
    if not isinstance(t, Tensor) and t == 1.0:
        _likelihood(parameters, constants, loss, grads)
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
    _likelihood((loc, scale * c, t * belief, excess), constants, loss, grads)
    if bend is not None:
        grads[3].addcmul_(grads[1] * c, bend)
    grads[1].mul_(scale / t)
    grads[0].div_(t)
    loss.div_(t)


def _likelihood(parameters: Tensors, averages: Tensors, loss: Tensor, grads: Tensors) -> None:
    """Eq. (15) from the averages: anchor, shift, root of the mean precision, spread and gap."""
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
