r"""Distribution function and quantiles of the standard Student-T, for every degrees of freedom.

Put :math:`\ell = \ln(1 + t^2/\nu)`, the *growth*, and :math:`\kappa = \sqrt{\nu\ell}`. The upper
tail is

.. math::
    Q_\nu = C_\nu \int_\kappa^\infty e^{-R^2/2}\, q(R^2/\nu)\, dR, \qquad
    q(z) = \sqrt{\frac{z}{1 - e^{-z}}}, \qquad
    C_\nu = \frac{\Gamma(\frac{\nu+1}{2})}{\sqrt{\pi\nu}\,\Gamma(\frac\nu2)}.

The singularities of q, at :math:`|R| \ge \sqrt{2\pi\nu}`, are too near for small :math:`\nu`. The
recurrence of the incomplete beta function, exact and of positive terms in :math:`b = e^{-\ell}`,

.. math::
    Q_\nu = b^{\nu/2}\sqrt{1-b}\,\sum_{j<k} T_j b^j + Q_{\nu+2k}, \qquad
    T_j = \frac{\Gamma(\frac{\nu+1}{2}+j)}{2\sqrt\pi\,\Gamma(\frac\nu2+j+1)},

keeps :math:`\ell`, raises :math:`\nu` by 2k and moves them away: one Gauss-Legendre rule then
serves every argument. Near the centre it integrates from 0 to :math:`\kappa` at :math:`\nu` itself,
so that :math:`F - \frac12` keeps its digits there as Q does in the tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from priornet.special.elementwise import cache_pieces, elementwise, horner


class _Rule(NamedTuple):
    """Numbers of terms and steps that reach the precision of one dtype."""

    shift: int  # k of the recurrence
    nodes: tuple[tuple[float, float], ...]  # Gauss-Legendre (node, weight) on (0, 1)
    cut: float  # the tail integral stops where its integrand has fallen by exp(-cut)
    halley: int  # steps of the quantile
    largest_df: float  # from here on the T is a Gaussian to the last digit
    smallest: float  # floor of the growth, far below what the result can show


def _rule(dtype: torch.dtype, shift: int, n_nodes: int, halley: int) -> _Rule:
    x, w = np.polynomial.legendre.leggauss(n_nodes)
    nodes = tuple(zip((0.5 + 0.5 * x).tolist(), (0.5 * w).tolist(), strict=True))
    info = torch.finfo(dtype)
    return _Rule(shift, nodes, 1 - math.log(info.eps), halley, info.eps**-2, info.tiny**0.8)


_DOUBLE = _rule(torch.float64, shift=8, n_nodes=20, halley=3)
_SINGLE = _rule(torch.float32, shift=3, n_nodes=9, halley=2)
_FEW = 2048  # elements up to which an axis of nodes is faster than a loop over them
_ROWS = 4  # numbers per element that the integration keeps in cache

# lnGamma(x + 1/2) - lnGamma(x) - 1/2 ln x, coefficients of 1/x, 1/x^3, ...
_GAP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224, -5461 / 425984)
_GAP_SLOPE = tuple(-(2 * k + 1) * c for k, c in enumerate(_GAP))
# 1/z - 1/(e^z - 1) - 1/2, coefficients -B_2k / (2k)! of z, z^3, ...
_BERNOULLI = (
    *(-1 / 12, 1 / 720, -1 / 30240, 1 / 1209600, -1 / 47900160),
    *(691 / 1307674368000, -1 / 74724249600, 3617 / 10670622842880000),
)


def _rule_of(x: Tensor) -> _Rule:
    return _DOUBLE if x.dtype == torch.float64 else _SINGLE


def _growth(t: Tensor, df: Tensor) -> Tensor:
    """Compute ln(1 + t^2/df) without overflow."""
    r = t.abs() / torch.sqrt(df)
    far = r > 1
    large, small = torch.where(far, r, 1.0), torch.where(far, 0.0, t)
    square = torch.where(far, 1 / (large * large), small * small / df)
    return 2 * torch.log(large) + torch.log1p(square)


def _one_minus_exp(z: Tensor) -> Tensor:
    """Compute 1 - exp(-z), z >= 0; compiled CPU code has `expm1` as exp - 1 (pytorch#189803)."""
    half = 0.5 * z.clamp(max=64.0)
    return 2 * torch.exp(-half) * torch.sinh(half)


def _bend(z: Tensor) -> Tensor:
    """Compute q(z): 1 + z/4 + ... for small z, the root of z for large."""
    return torch.sqrt(z / _one_minus_exp(z))


def _bend_slope(z: Tensor) -> Tensor:
    """Compute 2 q'(z) / q(z) = 1/z - 1/(e^z - 1), falling from 1/2 to 0."""
    small, large = z.clamp(max=1.0), z.clamp(min=1.0)
    series = 0.5 + small * horner(small * small, _BERNOULLI)
    fall = torch.exp(-large)
    return torch.where(z < 1, series, 1 / large - fall / (1 - fall))


def _top_weight(x: Tensor) -> Tensor:
    """Compute T_k, where x = df/2 + k."""
    inverse = x.reciprocal()
    return torch.exp(inverse * horner(inverse * inverse, _GAP)) / torch.sqrt(4 * math.pi * x)


def _next_weight(weight: Tensor, half_df: Tensor, j: int) -> Tensor:
    """Compute T_j from T_(j+1)."""
    return weight * (half_df + (j + 1)) / (half_df + (j + 0.5))


def _scale(df: Tensor) -> Tensor:
    """Compute C_nu, the density at 0."""
    half_df, shift = 0.5 * df, _rule_of(df).shift
    weight = _top_weight(half_df + shift)
    for j in reversed(range(shift)):
        weight = _next_weight(weight, half_df, j)
    return weight * torch.sqrt(df)


def _integrate(growth: Tensor, df: Tensor, with_spread: bool) -> tuple[Tensor, list[Tensor]]:
    r"""Integrate :math:`e^{-R^2/2} q(R^2/\nu)` over the centre, or over the tail after the shift.

    Returns:
        Which elements are central: they cover :math:`(0, \kappa)` at ``df``. The others cover
        :math:`(\kappa, \infty)` at ``df + 2 shift``, divided by :math:`e^{-\kappa^2/2}`.
        A list of the integral and, when asked for, the same with a factor :math:`2 z q'(z)/q(z)`.
    """
    rule = _rule_of(growth)
    growth = growth.clamp(max=16.0)  # above, the integral is lost beside the recurrence's sum
    central = (growth < 0.5) & (df * growth < 1)
    df = torch.where(central, df, df + 2 * rule.shift)
    kappa = torch.sqrt(df * growth)
    reach = 2 * rule.cut / (kappa + torch.sqrt(kappa * kappa + 2 * rule.cut))
    start, width = torch.where(central, 0.0, kappa), torch.where(central, kappa, reach)
    half_inverse = 0.5 / df

    def terms(node: float | Tensor, weight: float | Tensor) -> list[Tensor]:
        step = node * width
        at = start + step
        h = at * at * half_inverse  # z / 2, so that q = exp(h/2) sqrt(h / sinh h)
        fall = torch.exp(0.5 * h - step * (start + 0.5 * step))
        term = weight * (fall * torch.sqrt(h / torch.sinh(h)))
        return [term, term * (2 * h * _bend_slope(2 * h))] if with_spread else [term]

    if torch.compiler.is_compiling() or width.numel() <= _FEW:
        rows = width.new_tensor(rule.nodes).T.reshape(2, -1, *[1] * width.dim())
        sums = [term.sum(0) for term in terms(rows[0], rows[1])]
    else:
        sums = [torch.zeros_like(width)] * (1 + with_spread)
        for node, weight in rule.nodes:
            sums = [total + term for total, term in zip(sums, terms(node, weight), strict=True)]
    return central, [total * width for total in sums]


def _mass(growth: Tensor, df: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Tell where the centre is; compute the mass and :math:`C_\nu`.

    The mass is :math:`P(0 < T < |t|)` in the centre and :math:`e^{\kappa^2/2} Q_\nu` in the tail.
    """
    half_df, shift = 0.5 * df, _rule_of(growth).shift
    central, (integral,) = _integrate(growth, df, with_spread=False)
    b, root = torch.exp(-growth), torch.sqrt(_one_minus_exp(growth))
    x = half_df + shift
    weight = _top_weight(x)
    tail = integral * weight * torch.sqrt(2 * x)
    for j in reversed(range(shift)):
        weight = _next_weight(weight, half_df, j)
        tail = root * weight + b * tail
    scale = weight * torch.sqrt(df)
    return central, torch.where(central, integral * scale, tail), scale


def _df_slope(growth: Tensor, df: Tensor) -> Tensor:
    r"""Compute :math:`e^{\kappa^2/2}\,\partial F(|t|) / \partial\nu` at fixed t.

    `_mass` is differentiated at fixed :math:`\kappa`, where each piece is of the order
    :math:`\nu^{-2}` of the result; the way from fixed :math:`\kappa` to fixed t is closed form.
    """
    half_df, shift = 0.5 * df, _rule_of(growth).shift
    growth = growth.clamp(min=_rule_of(growth).smallest)
    central, (integral, spread) = _integrate(growth, df, with_spread=True)
    bend, b, root = _bend(growth), torch.exp(-growth), torch.sqrt(_one_minus_exp(growth))
    d_b = b * growth / df
    d_root = -0.5 * d_b / root
    x = half_df + shift
    weight, z = _top_weight(x), (x * x).reciprocal()
    d_gap = z * horner(z, _GAP_SLOPE)
    scale, kappa = weight * torch.sqrt(2 * x), torch.sqrt(2 * x * growth)
    d_kappa = (-0.5 * shift) * kappa / (df * x)
    tail = integral * scale
    d_tail = scale * (d_kappa * (kappa * integral - bend) - 0.25 * spread / x) + 0.5 * d_gap * tail
    for j in reversed(range(shift)):
        weight, x = _next_weight(weight, half_df, j), half_df + j
        d_gap = d_gap + 0.5 / (x * (x + 1) * (2 * x + 1))
        d_weight = 0.5 * weight * (d_gap - 0.5 / x)
        d_tail = d_root * weight + root * d_weight + d_b * tail + b * d_tail
        tail = root * weight + b * tail
    scale, kappa = weight * torch.sqrt(df), torch.sqrt(df * growth)
    d_body = torch.exp(half_df * growth) * scale * (0.5 * d_gap * integral - 0.5 * spread / df)
    d_kappa = 0.5 * root * root * growth * (1 - _bend_slope(growth)) / kappa
    return torch.where(central, d_body, -d_tail) + scale * bend * d_kappa


def _cdf(t: Tensor, df: Tensor) -> Tensor:
    growth = _growth(torch.where(t.isinf(), 0.0, t), df).clamp(min=_rule_of(t).smallest)
    central, mass, _ = _mass(growth, df)
    lower = torch.where(central, 0.5 - mass, torch.exp(-0.5 * df * growth) * mass)
    lower = torch.where(t.isinf(), 0.0, lower)
    return torch.where(t > 0, 1 - lower, lower)


def _start(lower: Tensor, df: Tensor) -> Tensor:
    r"""Compute a first :math:`\kappa^2`: exact for df = 2, near at both ends, fair between."""
    normal = torch.special.ndtri(lower) ** 2
    power = 1 + 0.5 * df.clamp(max=2.0)
    heavy = -2 * torch.log(_one_minus_exp(-power * torch.log1p(-2 * lower)))
    return normal + (heavy - normal) * (2 / df.clamp(min=2.0))


def _icdf(p: Tensor, df: Tensor) -> Tensor:
    r"""Solve by Halley steps on :math:`\ln Q_\nu(\kappa)`, concave and nearly a parabola."""
    rule = _rule_of(p)
    nearest, gap = torch.minimum(p, 1 - p), (p - 0.5).abs()
    lower = nearest.clamp(min=torch.finfo(p.dtype).tiny)
    growth = (_start(lower, df) / df).clamp(min=rule.smallest)
    for _ in range(rule.halley):
        central, mass, scale = _mass(growth, df)
        kappa = torch.sqrt(df * growth)
        fall = torch.exp(-0.5 * df * growth - torch.log(lower))
        excess = torch.where(central, (gap - mass) / lower, fall * mass - 1)  # Q / lower - 1
        hazard = scale * _bend(growth) * fall / (1 + excess)
        newton = torch.log1p(excess) / hazard
        curvature = hazard - kappa + kappa * _bend_slope(growth) / df
        kappa = kappa + newton / (1 + 0.5 * newton * curvature)
        growth = (kappa * kappa / df).clamp(min=rule.smallest)
    quarter = torch.exp(0.25 * growth)  # twice, so that the product overflows only with the result
    t = torch.sqrt(df * _one_minus_exp(growth)) * quarter * quarter
    t = t.masked_fill(nearest == 0, torch.inf).masked_fill(~(nearest >= 0), torch.nan)
    return torch.sign(p - 0.5) * t


def _density(t: Tensor, df: Tensor) -> Tensor:
    """Compute the slope of the cdf in t."""
    growth = _growth(torch.where(t.isinf(), 0.0, t), df)
    density = _scale(df) * torch.exp(-0.5 * (df + 1) * growth)
    return torch.where(t.isinf(), 0.0, density)


def _cdf_df_slope(t: Tensor, df: Tensor) -> Tensor:
    """Compute the slope of the cdf in df."""
    t = torch.where(t.isinf(), 0.0, t)  # where the slope is 0 too
    growth = _growth(t, df)
    return torch.sign(t) * torch.exp(-0.5 * df * growth) * _df_slope(growth, df)


def _icdf_slope(p: Tensor, df: Tensor) -> Tensor:
    """Compute the slope of the quantile in p, one over the density; infinite at the ends."""
    quantile = _student_t_icdf(p, df)
    growth = _growth(torch.where(quantile.isinf(), 0.0, quantile), df)
    inverse_density = torch.exp(0.5 * (df + 1) * growth) / _scale(df)
    return torch.where(quantile.isinf(), torch.inf, inverse_density)


def _icdf_df_slope(p: Tensor, df: Tensor) -> Tensor:
    """Compute the slope of the quantile in df: minus the cdf's slope, over the density."""
    quantile = _student_t_icdf(p, df)
    t = torch.where(quantile.isinf(), 0.0, quantile)
    growth = _growth(t, df)
    return -torch.sign(t) * (torch.exp(0.5 * growth) / _scale(df)) * _df_slope(growth, df)


def _in_pieces(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, df: Tensor) -> Tensor:
    """Apply an elementwise function of two tensors in pieces that stay in cache."""
    flat, flat_df = x.flatten(), df.flatten()
    pieces = cache_pieces(x.numel(), _ROWS, x.device)
    return torch.cat([function(flat[s], flat_df[s]) for s in pieces]).reshape(x.shape)


@elementwise(_density, _cdf_df_slope)
def _student_t_cdf(t: Tensor, df: Tensor) -> Tensor:
    return _in_pieces(_cdf, t, df)


@elementwise(_icdf_slope, _icdf_df_slope)
def _student_t_icdf(p: Tensor, df: Tensor) -> Tensor:
    return _in_pieces(_icdf, p, df)


def student_t_cdf(t: Tensor, df: Tensor) -> Tensor:
    r"""Compute the probability that a standard Student-T variable is below ``t``; differentiable.

    The lower tail keeps its *relative* precision; for the upper tail take that of ``-t``.

    Args:
        t: Where to evaluate, any real number or infinity.
        df: Degrees of freedom :math:`\nu > 0`, ``inf`` included; broadcasts with ``t``, same dtype.

    Example:
        >>> student_t_cdf(torch.tensor([-1.0, 0.0, 1.0]), torch.tensor(1.0))
        tensor([0.2500, 0.5000, 0.7500])
    """
    t, df = torch.broadcast_tensors(t, df.clamp(max=_rule_of(df).largest_df))
    return _student_t_cdf(t, df)


def student_t_icdf(p: Tensor, df: Tensor) -> Tensor:
    r"""Compute the quantile of the standard Student-T: the t with :math:`F(t) = p`; differentiable.

    Small df makes it ill-conditioned: rounding p by :math:`\epsilon` moves it by
    :math:`\epsilon/\nu`.

    Args:
        p: Probability; 0 and 1 give the infinities, 1/2 gives exactly 0, outside [0, 1] ``nan``.
        df: Degrees of freedom :math:`\nu > 0`, ``inf`` included; broadcasts with ``p``, same dtype.

    Example:
        >>> student_t_icdf(torch.tensor([0.025, 0.5, 0.975]), torch.tensor(3.0))
        tensor([-3.1824,  0.0000,  3.1824])
    """
    p, df = torch.broadcast_tensors(p, df.clamp(max=_rule_of(df).largest_df))
    return _student_t_icdf(p, df)
