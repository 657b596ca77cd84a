r"""CRPS of the standard Student-T, without cancellation where its mean ceases to exist.

The textbook form (Jordan, Krueger and Lerch, 2019) has two terms over :math:`\nu - 1`, which cancel
at :math:`\nu = 1`, and is said to need :math:`\nu > 1`. But :math:`\int (F - 1_{x \ge z})^2 dx` is
finite down to :math:`\nu > 1/2`, for the *square* of the tail is what counts. With
:math:`u = \nu - 1`, :math:`\ell = \ln(1 + z^2/\nu)`, the density at the centre :math:`C_\nu` and

.. math::
    a = \frac1u \ln\frac{\Gamma(\frac{\nu+1}2)\,\Gamma(\nu-\frac12)}{\Gamma(\frac\nu2)\,\Gamma(\nu)}

the two are :math:`2 C_\nu \nu\,(e^{-u\ell/2} - e^{ua})/u`, which is smooth through u = 0:

.. math::
    \mathrm{CRPS} = z\,(2F_\nu(z) - 1) - 2 C_\nu \nu\, e^{ua} \left(a + \tfrac\ell2\right)
        \frac{e^w - 1}{w}, \qquad w = -u\left(a + \tfrac\ell2\right).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from priornet.special.gamma import log_gamma_gap
from priornet.special.phi import horner
from priornet.special.student_t import student_t_cdf

__all__ = ["standard_student_t_crps"]

# a as a series in u, radius 1/2: -ln 2, then (-1)^n (1 - 2^(1-n)) zeta(n, 1/2) / n for u^(n-1).
_NEAR = 1 / 16
_ZETA = torch.special.zeta(torch.arange(2.0, 18.0, dtype=torch.float64), 0.5).tolist()
_SLOPE = (
    -math.log(2),
    *((-1) ** n * (1 - 2.0 ** (1 - n)) * zeta / n for n, zeta in enumerate(_ZETA, start=2)),
)
_EXPM1 = tuple(1 / math.factorial(k) for k in range(1, 14))


def standard_student_t_crps(z: Tensor, excess: Tensor) -> Tensor:
    """CRPS of a standard Student-T at ``z``; ``inf`` for df <= 1/2.

    Args:
        z: Standardised target.
        excess: Degrees of freedom less 2, which keeps the digits of df near 2; broadcasts with
            ``z``, same dtype.
    """
    z, excess = torch.broadcast_tensors(z, excess)
    proper = excess > -1.5
    # From eps^-2 degrees of freedom on the T is a Gaussian to the last digit, infinity included.
    excess = torch.where(proper, excess, 0.0).clamp(max=torch.finfo(z.dtype).eps ** -2)
    df, beyond = excess + 2, excess + 1
    slope = _gamma_slope(excess)
    rate = slope + 0.5 * _growth(z / torch.sqrt(df))
    centre = torch.exp(log_gamma_gap(0.5 * df)) / math.sqrt(2 * math.pi)  # density at 0
    spread = centre * df * torch.exp(beyond * slope) * rate * _relative(-beyond * rate)
    crps = z * (2 * student_t_cdf(z, df) - 1) - 2 * spread
    return torch.where(proper, crps, torch.inf)


def _growth(r: Tensor) -> Tensor:
    """ln(1 + r^2), without overflow."""
    far = r.abs() > 1
    small, large = torch.where(far, 0.0, r), torch.where(far, r.abs(), 1.0)
    return torch.where(
        far, 2 * torch.log(large) + torch.log1p(large**-2), torch.log1p(small * small)
    )


def _gamma_slope(excess: Tensor) -> Tensor:
    """The slope ``a`` of the module's docstring: a series near df = 1, gamma functions beyond."""
    beyond = excess + 1
    near = beyond.abs() < _NEAR
    series = horner(torch.where(near, beyond, 0.0), _SLOPE)
    df = torch.where(near, 3.0, excess + 2)  # where the series serves, any other df will do
    log_ratio = log_gamma_gap(0.5 * df) - log_gamma_gap(df - 0.5) - 0.5 * torch.log(2 - 1 / df)
    return torch.where(near, series, log_ratio / (df - 1))


def _relative(w: Tensor) -> Tensor:
    """(exp(w) - 1) / w, smooth through 0."""
    near = w.abs() < 0.25
    series = horner(torch.where(near, w, 0.0), _EXPM1)
    far = torch.where(near, 1.0, w)
    return torch.where(near, series, torch.expm1(far) / far)
