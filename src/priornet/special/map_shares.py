r"""The share of knowledge in the variance of a mapped target, under a Normal-Wishart.

Given the precision, t and the mean :math:`\mu` are jointly normal with correlation
:math:`\sqrt\rho`, :math:`\rho = 1/(1+\kappa)`. In Hermite polynomials, :math:`h(t) = \sum_k a_k
H_k(x)`, conditional expectation multiplies :math:`a_k` by :math:`\rho^{k/2}` (Mehler), so that

.. math::
    V[E[y\mid\mu,\Lambda]\mid\Lambda] = \sum_{k\ge1}\rho^k a_k^2, \qquad
    E[V[y\mid\mu,\Lambda]\mid\Lambda] = \sum_{k\ge1}(1-\rho^k)\,a_k^2:

positive terms, of the right size for every belief. The precision is then integrated in its
logarithm by the trapezoidal rule, and the variance of :math:`a_0` over it is knowledge too. The
smaller part has a median error of 1e-4, and up to 10 % where maps bend sharply within the width of
t.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.special.map_moments import in_pieces
from priornet.special.maps import MonotoneMap

_PRECISIONS, _NODES = 24, 40
_DROP, _WIDEST = 36.0, 24.0  # nats left out; and of ln precision, from where h is linear
_ROWS = 512  # at once


def knowledge_share(
    own: MonotoneMap, loc: Tensor, scale: Tensor, excess: Tensor, belief: Tensor
) -> Tensor:
    """Compute the variance of E[y | mean, precision] over that of y, between 0 and 1.

    Args:
        own: The map from t to y.
        loc: Location of t, shape ``(*batch,)``.
        scale: Scale of the Student-T of t.
        excess: Its degrees of freedom - 2; where it is not positive, the share is that of t.
        belief: Belief of the Normal-Wishart.
    """
    rows = [part.double().reshape(-1) for part in (loc, scale, excess, belief)]
    (shares,) = in_pieces(lambda *part: (_share(own, *part),), rows, _ROWS)
    return shares.reshape(loc.shape).to(loc.dtype)


def _share(own: MonotoneMap, loc: Tensor, scale: Tensor, excess: Tensor, belief: Tensor) -> Tensor:
    proper = excess > 0
    log_precision, mass, second_mass = _precisions(torch.where(proper, excess, 2.0))
    nodes, table = (torch.from_numpy(part).to(loc) for part in _hermite(_NODES))
    deviation = scale * torch.exp(-0.5 * log_precision)  # (P, N)
    t = loc[:, None] + deviation.unsqueeze(-1) * nodes
    coefficients = (own.inverse(t) - own.inverse(loc)[:, None]) @ table  # (P, N, nodes)
    squares = coefficients[..., 1:].square()
    order = torch.arange(1, _NODES, dtype=loc.dtype, device=loc.device)
    log_rho = -torch.log1p(belief)[:, None] * order
    known = (squares * torch.exp(log_rho)).sum(-1)
    noise = (squares * -torch.expm1(log_rho)).sum(-1)
    centred = coefficients[..., 0] - (mass * coefficients[..., 0]).sum(0)
    knowledge = (second_mass * (known + centred * centred)).sum(0)
    data = (second_mass * noise).sum(0)
    return torch.where(proper, knowledge / (knowledge + data), 1 / (1 + belief))


def _precisions(excess: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return nodes of ln precision (of mean 1), their mass, and that for second moments; (P, N).

    The density is :math:`\propto e^{a(w - e^w)}`, a half the degrees of freedom. The ends follow
    from bounds of it; the tail of second moments below the first node, where variances grow as
    :math:`e^{-w}`, is added to that node.
    """
    half, rest = 0.5 * excess + 1, 0.5 * excess
    q = _DROP / half
    high = torch.log1p(q + (q * (q + 2)).sqrt())
    q = _DROP / rest
    low = torch.log(rest / half) - 0.5 * (q + (q * (q + 8)).sqrt())
    low = low.clamp(min=-_WIDEST)
    step = (high - low) / (_PRECISIONS - 1)
    w = low + step * torch.arange(_PRECISIONS, dtype=excess.dtype, device=excess.device)[:, None]
    log_mass = half * (w - torch.exp(w))
    mass = torch.softmax(log_mass, 0)
    second = mass.clone()
    second[0] = second[0] * (0.5 + 1 / (rest * step))
    return w, mass, second


@cache
def _hermite(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss-Hermite nodes, and the table that turns values there into coefficients."""
    x, weight = np.polynomial.hermite_e.hermegauss(n)
    table = np.empty((n, n))
    table[:, 0], table[:, 1] = 1.0, x
    for k in range(2, n):  # normalised: the squares of coefficients add up to the variance
        table[:, k] = (x * table[:, k - 1] - np.sqrt(k - 1) * table[:, k - 2]) / np.sqrt(k)
    return x, table * (weight / weight.sum())[:, None]
