"""The semi-informative prior that out-of-domain predictions return to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from priornet.checks import check_finite, common_tensors, values_visible
from priornet.distributions import NormalWishart
from priornet.special import triangular

__all__ = ["semi_informative_prior", "stack_priors"]


def semi_informative_prior(
    y: Tensor,
    belief: float = 1e-2,
    excess: float = 1e-2,
    match: Literal["precision", "variance"] = "precision",
) -> NormalWishart:
    r"""Build a prior with the targets' mean and covariance, Eq. (10), arXiv:2006.11590v2.

    .. math:: m_0 = \bar y \qquad L_0^{-1} = \nu_0\,\mathrm{Cov}(y) \qquad \kappa_0 = \epsilon
        \qquad \nu_0 = K + 1 + \epsilon

    Note:
        The paper's :math:`L_0` makes the expected *precision* that of the data; the expected
        variance is then :math:`\nu_0/\epsilon` times the data's. ``match="variance"`` uses
        :math:`L_0^{-1} = (\nu_0-K-1)\,\mathrm{Cov}(y)` instead.

    Args:
        y: Training targets, shape ``(N, K)``.
        belief: Belief :math:`\kappa_0` in the mean.
        excess: :math:`\nu_0 - K - 1`.
        match: Which of the two moments follows the data.

    Example:
        >>> semi_informative_prior(torch.tensor([[1.0], [3.0]])).mean
        GaussianParameters(mean=tensor([2.]), precision=tensor([[1.]]))
    """
    (y,) = common_tensors(y=y)
    _check_settings(y, belief, excess, match)
    offsets = y - y[0]  # differences first: the mean of equal numbers would be rounded
    shift = offsets.mean(0)
    loc, centred = y[0] + shift, offsets - shift
    covariance = (centred.unsqueeze(-1) * centred.unsqueeze(-2)).mean(0)
    tril = triangular.precision_cholesky(covariance)
    if values_visible(y):
        _check_varied(y, covariance, tril)
    if match == "variance":
        # E[Lambda^-1] = (nu / d) P^-1 should be the covariance.
        tril = tril * (1 + (y.shape[1] + 1) / excess) ** 0.5
    return NormalWishart.from_excess(loc, tril, belief, excess)


def _check_settings(y: Tensor, belief: float, excess: float, match: str) -> None:
    if match not in ("precision", "variance"):
        raise ValueError(f'unknown match "{match}"; choose one of: precision, variance.')
    if y.dim() != 2 or y.shape[0] < 2 or y.shape[1] < 1:
        raise ValueError(
            f"`y` must have shape (N, K) with N >= 2 and K >= 1; got {tuple(y.shape)}."
        )
    if not belief > 0:
        raise ValueError(f"`belief` must exceed 0; given {belief:g}.")
    if match == "variance" and not excess > 0:
        raise ValueError(
            '`excess` must exceed 0 with match="variance" (the variance is infinite otherwise); '
            f"given {excess:g}."
        )


def _check_varied(y: Tensor, covariance: Tensor, tril: Tensor) -> None:
    """Check for targets that vary in every direction, as their precision factor shows."""
    check_finite("y", y)
    # What each coordinate varies by, given the others, as a share of its variance.
    own = (tril.diagonal().square() * covariance.diagonal()).reciprocal()
    varied = bool((own > 16 * y.shape[1] * torch.finfo(y.dtype).eps).all())
    if y.shape[0] <= y.shape[1] or not varied:
        raise ValueError(
            "`y` must vary in every direction: its covariance is singular, so it has no "
            "precision (a constant or duplicated target column, or fewer rows than columns)."
        )


def stack_priors(priors: Sequence[NormalWishart]) -> NormalWishart:
    """Stack the priors of networks that train together: batch shape ``(S, 1)``, to meet ``(S, B)``.

    Example:
        >>> y = torch.randn(100, 1)
        >>> stack_priors([semi_informative_prior(y), semi_informative_prior(2 * y)]).batch_shape
        torch.Size([2, 1])
    """
    names = ("loc", "precision_tril", "belief", "excess")
    columns = {name: torch.stack([getattr(nw, name) for nw in priors]) for name in names}
    return NormalWishart.unchecked(**{name: c.unsqueeze(1) for name, c in columns.items()})
