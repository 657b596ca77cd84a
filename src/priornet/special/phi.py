r"""The kernel :math:`\varphi(t) = t - 1 - \ln t`, from which divergences and tails are built.

It is what every Kullback-Leibler divergence here charges for a ratio that should be 1. Written out
it cancels near t = 1; these functions do not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from priornet.special.elementwise import elementwise

__all__ = ["horner", "log_tail", "phi", "phi_value", "plain_phi"]


def horner(z: Tensor, coefficients: tuple[float, ...], terms: int | None = None) -> Tensor:
    """c_1 + c_2 z + c_3 z^2 + ..., over the first ``terms`` coefficients or all of them."""
    *first, last = coefficients[:terms]
    total = torch.full_like(z, last)
    for c in reversed(first):
        total = total * z + c
    return total


def phi_value(delta: Tensor, ratio: Tensor) -> Tensor:
    """Delta - ln(ratio), where ratio = 1 + delta is known better than that sum would give it.

    No derivative of its own: for use inside closed-form backwards.
    """
    # Near 0: with s = delta / (2 + delta), log1p(delta) = 2 artanh(s) and delta - 2s = delta s.
    near = delta.clamp(-2 / 5, 2 / 3)
    s = near / (near + 2)
    z = s * s
    # Beyond: what is left of both, exactly 0 while nothing was cut off. No `where`: it would cost
    # more than everything else here.
    rest = torch.log(ratio / ratio.clamp(3 / 5, 5 / 3))
    return torch.addcmul(delta - near, s, _minus_artanh(near, z)) - rest


def _minus_artanh(near: Tensor, z: Tensor) -> Tensor:
    """Near - 2 z (c_0 + c_1 z + ...), where the series is that of (artanh s - s) / s^3 in z = s^2.

    The coefficients stand in the code: torch.compile with ``dynamic=True`` makes inputs of floats
    it finds in a module, and cannot hand them to the graph of an ``autograd.Function``.
    """
    if z.dtype == torch.float32:
        c0, c1, c2, c3 = 0.333333321, 0.20000622, 0.142365723, 0.123379536  # minimax, |s| < 1/4
        square = z * z
        total = torch.add(near, z, alpha=-2 * c0).add_(square, alpha=-2 * c1)
        return total.addcmul_(square, torch.add(z, square, alpha=c3 / c2), value=-2 * c2)
    total, power = near, z
    for k in range(3, 29, 2):
        total = torch.add(total, power, alpha=-2 / k)
        power = power * z
    return total


def phi(a: Tensor, b: Tensor) -> Tensor:
    r"""Relative-entropy kernel :math:`\varphi(t) = t - 1 - \ln t \ge 0` at :math:`t = a/b`.

    Exact to rounding also where a and b nearly agree. Both are positive and of the same shape.
    """
    return _phi(a, b)


def log_tail(square: Tensor, df: Tensor, k_dim: int) -> Tensor:
    r"""Tail of a Student-T, :math:`\frac{df + K}{2} \ln(1 + q/df)`, both of one shape.

    Its slope in df, :math:`\frac12[\varphi(df/(df+q)) - K q/(df(df+q))]`, is of order 1/df^2; the
    product rule would leave it to two terms of order 1/df.
    """
    return _log_tail(square, df, k_dim)


def plain_phi(a: Tensor, b: Tensor) -> Tensor:
    """The same kernel, straight from its definition: relative error of eps over t - 1."""
    ratio = a / b
    return (ratio - 1) - torch.log(ratio)


def _tail_slope(square: Tensor, df: Tensor, k_dim: int) -> Tensor:
    share = square / (df + square)
    return 0.5 * (phi_value(-share, df / (df + square)) - k_dim * share / df)


_phi = elementwise(
    lambda a, b: phi_value((a - b) / b, a / b),
    lambda a, b: (a - b) / b / a,
    lambda a, b: (b - a) / b / b,
)
_log_tail = elementwise(
    lambda q, df, k: 0.5 * (df + k) * torch.log1p(q / df),
    lambda q, df, k: 0.5 * (df + k) / (df + q),
    _tail_slope,
)
