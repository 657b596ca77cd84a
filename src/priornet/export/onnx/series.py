r"""What depends on the evidence alone, as one short Chebyshev series.

The digamma and log-gamma combinations of a Normal-Wishart and the quantile of its Student-T are
smooth functions of :math:`v = 2/(d + 2) \in (0, 1]`, d the excess, up to v = 0 (infinite degrees
of freedom). A dozen terms reach float32, and :math:`T_k(u) = \cos(k \arccos u)` at
:math:`u = 1 - 2v` makes them four plain operators for all functions together. They are fitted to
the stable functions of :mod:`priornet.special` in float64, anew for each export.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.export.errors import ExportError
from priornet.special.gamma import digamma_gap, entropy_gap
from priornet.special.student_t import student_t_icdf

__all__ = ["check_coverage", "evidence_series", "normal_quantile"]

FloatArray = NDArray[np.float64]

_DEGREES = (*range(8, 41, 4), 48, 64, 96, 128, 192, 256)  # the last ones for K in the hundreds
_CLOSE = 2e-8  # below what float32 can show
_EDGE = 1e-12  # least distance of a coverage from 0 and 1
_LEAST = 1e-14  # v where the degrees of freedom count as infinite


def check_coverage(coverage: float) -> None:
    """Refuse intervals that are all or nothing, or that double precision cannot tell from that."""
    if not _EDGE <= coverage <= 1 - _EDGE:
        near = f", {_EDGE:g} away from both" if 0 < coverage < 1 else ""
        raise ExportError(f"`coverage` must lie between 0 and 1{near}; got {coverage!r}.")


def normal_quantile(coverage: float) -> float:
    """Half the width of the central interval of a standard normal."""
    return -NormalDist().inv_cdf((1 - coverage) / 2)


def evidence_series(k_dim: int, coverage: float) -> FloatArray:
    r"""Coefficients ``(terms, 3)`` of three functions of v.

    They are :math:`(\psi_K(\nu/2) - K\ln(\nu/2))/v`, :math:`f_K/v` (see
    :func:`~priornet.special.gamma.entropy_gap`), and :math:`\ln t - \ln z`, quantiles of the
    Student-T and of the normal.

    Args:
        k_dim: Target dimension K.
        coverage: Of the central interval.
    """
    check = np.cos(np.linspace(0, np.pi, 1999))
    expected = _functions(check, k_dim, coverage)
    for degree in _DEGREES:
        n = 4 * degree
        nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
        values = _functions(nodes, k_dim, coverage)
        coefficients: FloatArray = np.asarray(
            np.polynomial.chebyshev.chebfit(nodes, values, degree), np.float64
        )
        found = np.polynomial.chebyshev.chebval(check, coefficients).T
        if (np.abs(found - expected) <= _CLOSE * np.maximum(np.abs(expected), 1)).all():
            return coefficients
    raise ExportError(f"a model of {k_dim} targets together cannot be exported; fit fewer at once.")


def _functions(u: FloatArray, k_dim: int, coverage: float) -> FloatArray:
    v = torch.from_numpy(np.maximum((1 - u) / 2, _LEAST))
    df = 2 / v
    excess = 2 * (1 - v) / v  # df - 2, without cancellation at v = 1
    t = student_t_icdf(torch.full_like(df, (1 + coverage) / 2), df)
    parts = (digamma_gap(excess, k_dim) / v, entropy_gap(excess, k_dim) / v, torch.log(t))
    shift = np.array([0.0, 0.0, np.log(normal_quantile(coverage))])
    return torch.stack(parts, -1).numpy() - shift
