"""Closed-form maximum likelihood of a Normal-Wishart for an ensemble of Gaussians."""

from __future__ import annotations

import torch
from torch import Tensor

from priornet.distributions.averages import precision_averages
from priornet.distributions.ensemble import GaussianEnsemble
from priornet.distributions.normal_wishart import NormalWishart
from priornet.special.gamma import digamma_gap, trigamma_gap

__all__ = ["fit_normal_wishart", "solve_excess"]

_NEWTON_STEPS = 8


def fit_normal_wishart(
    ensemble: GaussianEnsemble, *, max_belief: float = 1e8, max_excess: float = 1e8
) -> NormalWishart:
    r"""Normal-Wishart under which the ensemble's members are most likely.

    .. math::
        m = \left(\sum\Lambda\right)^{-1}\sum\Lambda\mu \qquad P = \bar\Lambda \qquad
        K/\kappa = \tfrac1M\sum(\mu-m)^\top\Lambda(\mu-m) \\
        \psi_K(\nu/2) - K\ln(\nu/2) = \tfrac1M\sum\ln|\Lambda| - \ln|\bar\Lambda|

    This is the optimum of the EnD2 loss, Eq. (15), arXiv:2006.11590v2, at each input by itself.

    Note:
        Members that coincide make the likelihood unbounded: belief and excess stop at their maxima.
        Few members make it too sure: for K = 1 both :math:`\kappa` and :math:`\nu` of a fit are on
        average about M / (M - 3) times those that the members were drawn from, 2.5 times for five.

    Args:
        ensemble: M Gaussians per input.
        max_belief: Largest belief returned.
        max_excess: Largest excess returned.
    """
    for name, bound in (("max_belief", max_belief), ("max_excess", max_excess)):
        if not bound > 0:
            raise ValueError(f"`{name}` must exceed 0; got {bound:g}.")
    averages = precision_averages(ensemble, exact_gap=True)
    k_dim = ensemble.k_dim
    belief = (k_dim / averages.spread).clamp(max=max_belief)
    excess = solve_excess(averages.gap, k_dim, max_excess)
    return NormalWishart.from_excess(
        averages.loc, averages.precision_tril, belief, excess, validate_args=False
    )


def solve_excess(gap: Tensor, k_dim: int, max_excess: float = 1e8) -> Tensor:
    r"""Excess d at which :math:`K\ln n - \psi_K(n) = \mathrm{gap}`, :math:`n = (d+K+1)/2`.

    Newton on the reciprocal of the left side: that is close to a straight line in n over the whole
    range (slope :math:`4/(K(K+1))` at infinity, 1 at the lower end), so a handful of steps suffice.
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
