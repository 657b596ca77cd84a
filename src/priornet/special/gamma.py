r"""Stable gamma-function combinations for Wishart-like formulas.

The paper's closed forms subtract log-gamma and digamma values that agree to many digits once the
degrees of freedom grow. Here they are written with *differences*, which are small and smooth:

.. math::
    h(x) = \psi(x) - \ln x \qquad
    g(x) = \ln\Gamma(x + 1/2) - \ln\Gamma(x) - \tfrac12 \ln x \qquad
    \Delta\psi(x) = \psi(x + 1/2) - \psi(x)

Each is moved up by a fixed number of unit steps (exact rational terms) and summed as its asymptotic
series: elementwise arithmetic without branches, whose derivative is another such series.

The grouped forms take the excess :math:`d = \nu - K - 1` and write
:math:`x_j = d/2 + 1 + j/2`, :math:`j = 0, \dots, K-1`, and :math:`n = \nu/2 = x_{K-1}`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from priornet.special.elementwise import elementwise, horner, phi_value

# Coefficients in 1/y^2, for k = 1, 2, ...; the odd or even leading power is applied by the caller.
# Those that functions with slopes of their own share come from the code, not from the module:
# torch.compile with ``dynamic=True`` makes inputs of a module's floats, and cannot hand one to the
# graphs of two such functions.


def _bernoulli() -> tuple[float, ...]:
    """Return B_2, B_4, ..., B_16, which are also the coefficients of h' - 1/(2y^2) in y^-(2k+1)."""
    return (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _psi() -> tuple[float, ...]:
    """Return the coefficients of h + 1/(2y) in y^-2k."""
    return tuple(-b / (2 * k) for k, b in enumerate(_bernoulli(), 1))


def _binet() -> tuple[float, ...]:
    """Return the coefficients of Binet's function in y^-(2k-1)."""
    return tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_bernoulli(), 1))


_LOG_GAMMA = tuple((2.0 ** (1 - 2 * k) - 2) * c for k, c in enumerate(_binet(), 1))  # g: y^-(2k-1)
_DELTA_PSI = tuple(-(2 * k - 1) * c for k, c in enumerate(_LOG_GAMMA, 1))  # y^-2k, after 1/(2y)
_D_ODD = tuple(-2 * k * c for k, c in enumerate(_LOG_GAMMA, 1))[1:]  # y^-(2k+1); y^-1 cancels
_D_EVEN = tuple(c / 2 for c in _psi())  # y^-2k

# In the excess every slope carries the 1/2 of n = (excess + K + 1) / 2.
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_NEWTON_STEPS = 8


def _plan(dtype: torch.dtype) -> tuple[int, int]:
    """Return the unit steps up and series terms that reach the precision of ``dtype``."""
    return (10, 8) if dtype == torch.float64 else (4, 4)


def psi_gap(x: Tensor) -> Tensor:
    r"""Compute digamma minus logarithm, :math:`h(x) = \psi(x) - \ln x`, for ``x > 0``."""
    steps, terms = _plan(x.dtype)
    inverse = (x + steps).reciprocal()
    z = inverse * inverse
    series = z * horner(z, _psi(), terms) - 0.5 * inverse
    return series + torch.log1p(steps / x) - _reciprocal_sum(x, steps)


def _reciprocal_sum(x: Tensor, steps: int) -> Tensor:
    """Sum of 1/(x + k) over k < steps."""
    total = x.reciprocal()
    for k in range(1, steps):
        total = total + (x + k).reciprocal()
    return total


def log_gamma_gap(x: Tensor) -> Tensor:
    r"""Compute the half-step gap :math:`g(x) = \ln\Gamma(x+1/2) - \ln\Gamma(x) - \frac12\ln x`."""
    steps, terms = _plan(x.dtype)
    inverse = (x + steps).reciprocal()
    series = inverse * horner(inverse * inverse, _LOG_GAMMA, terms)
    # Down a unit step: g(x) = g(x + 1) + 1/2 ln(1 - 1/(2x + 1)^2). Carrying the product of these
    # factors minus one keeps its relative precision for large x.
    product = torch.zeros_like(x)
    for k in range(steps):
        odd = 2 * x + (2 * k + 1)
        step = (odd * odd).reciprocal()
        product = product - step - product * step
    return series + 0.5 * torch.log1p(product)


def delta_psi(x: Tensor) -> Tensor:
    r"""Compute the half-step difference :math:`\Delta\psi(x) = \psi(x + 1/2) - \psi(x)`."""
    steps, terms = _plan(x.dtype)
    inverse = (x + steps).reciprocal()
    z = inverse * inverse
    total = z * horner(z, _DELTA_PSI, terms) + 0.5 * inverse
    for k in range(steps):
        total = total + 0.5 / ((x + k) * (x + (k + 0.5)))
    return total


def _d_gap(x: Tensor) -> Tensor:
    r"""Compute D(x) = x Dpsi(x) - 1/2 + h(x)/2 - g(x), of order 1/x^2, without cancellation."""
    steps, terms = _plan(x.dtype)
    # Direct for small x (no cancellation there yet), series for large x; both sides are evaluated
    # inside their own range, so that the unused one cannot poison the gradient.
    terms = min(terms + 2, len(_D_EVEN))
    near, far = x.clamp(max=steps), x.clamp(min=steps)
    direct = near * delta_psi(near) - 0.5 + 0.5 * psi_gap(near) - log_gamma_gap(near)
    inverse = far.reciprocal()
    z = inverse * inverse
    odd = inverse * z * horner(z, _D_ODD, terms - 1)
    return torch.where(x < steps, direct, odd + z * horner(z, _D_EVEN, terms))


def entropy_gap(excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute the part of the mutual information that comes from the unknown precision.

    .. math:: f_K = \sum_{j<K} \left[\tfrac{K-j}{2}\,\Delta\psi(x_j) + D(x_j)\right]
        \to \frac{K(K+1)}{4\nu}

    so that Eq. (36), arXiv:2006.11590v2, is :math:`\frac K2\ln(1 + 1/\kappa) + f_K`.
    """
    total = torch.zeros_like(excess)
    for j in range(k_dim):
        x = 0.5 * excess + (1 + 0.5 * j)
        total = total + 0.5 * (k_dim - j) * delta_psi(x) + _d_gap(x)
    return total


def trigamma_gap(excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute the slope of the digamma gap in n: :math:`\psi'_K(n) - K/n`, positive."""
    steps, terms = _plan(excess.dtype)
    n = 0.5 * excess + 0.5 * (k_dim + 1)
    total = torch.zeros_like(excess)
    for j in range(k_dim):
        x = 0.5 * excess + (1 + 0.5 * j)
        inverse = (x + steps).reciprocal()
        z = inverse * inverse
        total = total + 0.5 * z + inverse * z * horner(z, _bernoulli(), terms)  # h'(y)
        total = total - (steps - 0.5 * (k_dim - 1 - j)) * inverse / n  # 1/y - 1/n
        for k in range(steps):
            step = (x + k).reciprocal()
            total = total + step * step
    return total


@elementwise(lambda d, k: 0.5 * trigamma_gap(d, k))
def digamma_gap(excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute the multivariate :math:`\psi_K(n) - K\ln n` at :math:`n = \nu/2`, negative.

    :math:`E\ln|\Lambda| = \ln|E\Lambda| + \psi_K(n) - K\ln n` for a Wishart.
    """
    steps, terms = _plan(excess.dtype)
    n = 0.5 * excess + 0.5 * (k_dim + 1)
    total = torch.zeros_like(excess)
    for j in range(k_dim):
        x = 0.5 * excess + (1 + 0.5 * j)
        inverse = (x + steps).reciprocal()
        z = inverse * inverse
        total = total + z * horner(z, _psi(), terms) - 0.5 * inverse  # h(y)
        total = total + torch.log1p((steps - 0.5 * (k_dim - 1 - j)) / n)  # ln(y/n)
        total = total - _reciprocal_sum(x, steps)
    return total


@elementwise(lambda d, k: -0.5 * digamma_gap(d, k))
def stirling_gap(excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute the normaliser of a Wishart relative to its own mean.

    .. math:: R = K(n\ln n - n) - \ln\Gamma_K(n), \qquad n = \nu/2, \qquad R' = K\ln n - \psi_K(n)
    """
    steps, terms = _plan(excess.dtype)
    n = 0.5 * excess + 0.5 * (k_dim + 1)
    constant = -k_dim * _HALF_LOG_2PI - 0.25 * k_dim * (k_dim - 1) * math.log(math.pi)
    total = torch.full_like(excess, constant)
    for j in range(k_dim):
        c = 0.5 * (k_dim - 1 - j)  # n - x
        x = 0.5 * excess + (1 + 0.5 * j)
        y = x + steps
        inverse = y.reciprocal()
        # n ln n - n - lnGamma(x), with lnGamma(x) = lnGamma(y) - sum ln(x + k), Stirling at y.
        ratio = x * inverse
        for k in range(1, steps):
            ratio = ratio * ((x + k) * inverse)
        total = total + n * torch.log1p((c - steps) * inverse) + (steps - c)
        total = total + (c + 0.5) * torch.log(y) + torch.log(ratio)
        total = total - inverse * horner(inverse * inverse, _binet(), terms)
    return total


def _binet_bregman(y: Tensor, y0: Tensor, delta: Tensor, terms: int) -> Tensor:
    r"""Compute the Bregman divergence of the Binet series.

    A term :math:`y^{-p}` has :math:`(\delta/y)^2 S_p` with
    :math:`S_p = \sum_{i<p} (i + 1)\, y^{-i} y_0^{i-p}`, built up by
    :math:`S_{p+1} = (S_p + (p+1)\, y^{-p}) / y_0`.
    """
    a, b = y.reciprocal(), y0.reciprocal()
    s, a_power = b, torch.ones_like(a)
    coefficients = _binet()
    total = coefficients[0] * s
    for p in range(1, 2 * terms - 1):
        a_power = a_power * a
        s = (s + (p + 1) * a_power) * b
        if p % 2 == 0:
            total = total + coefficients[p // 2] * s  # s is now S_(p+1)
    step = delta * a
    return step * step * total


def _bregman_slope(excess0: Tensor, excess: Tensor, k_dim: int) -> Tensor:
    """Compute half the rise of the digamma gap from excess to excess0."""
    rise = digamma_gap(excess0, k_dim) - digamma_gap(excess, k_dim)
    # Close together the difference cancels; Simpson's rule for the integral of its slope does not.
    step = 0.5 * (excess0 - excess)
    ends = trigamma_gap(excess0, k_dim) + trigamma_gap(excess, k_dim)
    middle = trigamma_gap(0.5 * (excess0 + excess), k_dim)
    near = step * (ends + 4 * middle) / 6
    reach = 1e-3 if excess.dtype == torch.float64 else 0.05
    return 0.5 * torch.where(step.abs() < reach * (0.5 * excess + 1), near, rise)


@elementwise(_bregman_slope, lambda d0, d, k: 0.25 * (d - d0) * trigamma_gap(d, k))
def stirling_bregman(excess0: Tensor, excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute the Bregman divergence of :math:`F(n) = \ln\Gamma_K(n) - K(n\ln n - n)` at n0 and n.

    This is the KL between two Wisharts with one mean, :math:`F(n_0) - F(n) - F'(n)(n_0 - n) \ge 0`.
    Unit steps, Stirling and Binet enter with their own Bregman divergences, so that nothing
    cancels.
    """
    steps, terms = _plan(excess.dtype)
    delta = 0.5 * (excess0 - excess)
    n, n0 = 0.5 * excess + 0.5 * (k_dim + 1), 0.5 * excess0 + 0.5 * (k_dim + 1)
    total = torch.zeros_like(delta)
    for j in range(k_dim):
        c = 0.5 * (k_dim - 1 - j) - steps  # n - y
        x, x0 = 0.5 * excess + (1 + 0.5 * j), 0.5 * excess0 + (1 + 0.5 * j)
        y, y0 = x + steps, x0 + steps
        for k in range(steps):  # -ln(x + k)
            total = total + phi_value(delta / (x + k), (x0 + k) / (x + k))
        total = total + (c + 0.5) * phi_value(delta / y, y0 / y)  # -(c + 1/2) ln y
        # -n ln(n / y): its first-order part cancels in closed form.
        shift = c * delta
        total = total + n0 * phi_value(-shift / (y0 * n), (n0 / n) * (y / y0))
        total = total - (shift / y) * (shift / y0) / n
        total = total + _binet_bregman(y, y0, delta, terms)
    return total


def excess_of_gap(gap: Tensor, k_dim: int, max_excess: float = 1e8) -> Tensor:
    r"""Solve :math:`K\ln n - \psi_K(n) = \mathrm{gap}` at :math:`n = (d+K+1)/2` for the excess d.

    Newton on the reciprocal of the left side, close to a straight line in n over the whole range.
    """
    lowest = torch.finfo(gap.dtype).eps
    target = gap.reciprocal()
    n = (0.25 * k_dim * (k_dim + 1) * target + 0.5 * (k_dim - 1)).clamp(max=max_excess)
    excess = 2 * n - (k_dim + 1)
    for _ in range(_NEWTON_STEPS):
        value = -digamma_gap(excess, k_dim)
        slope = trigamma_gap(excess, k_dim) / (value * value)  # d(1/value)/dn
        step = 2 * (target - value.reciprocal()) / slope
        # Stay inside the domain d > -2: at most nine tenths of the way to its edge.
        excess = torch.maximum(excess + step, -2 + 0.1 * (excess + 2))
        excess = excess.clamp(min=-2 + lowest, max=max_excess)
    return excess
