"""Deep Evidential Regression."""

from __future__ import annotations

from torch import Tensor

from priornet.checks import check_not_negative
from priornet.distributions import NormalWishart
from priornet.losses.reduction import masked, prepare_target

__all__ = ["evidential"]


def evidential(
    nw: NormalWishart, y: Tensor, coefficient: float, mask: Tensor | None = None
) -> Tensor:
    r"""Deep Evidential Regression (Amini et al., 2020) for one-dimensional targets.

    .. math:: -\ln\mathcal T(y) + c\,|y - \gamma|\,(2\upsilon + \alpha)

    In the Normal-Wishart's letters :math:`\gamma = m`, :math:`\upsilon = \kappa`,
    :math:`\alpha = \nu/2`.

    Args:
        nw: Prediction with K = 1.
        y: Targets, shape ``(*batch, 1)``.
        coefficient: Weight c of the evidence regulariser.
        mask: True where the target counts, shape ``(*batch,)``.

    Example:
        >>> nw = NormalWishart.from_excess(torch.zeros(2, 1), torch.ones(2, 1, 1), 1.0, 2.0)
        >>> evidential(nw, torch.zeros(2, 1), coefficient=0.01)
        tensor([1.3274, 1.3274])
    """
    if nw.k_dim != 1:
        raise ValueError(
            "`evidential` is defined for one-dimensional targets; the prediction has "
            f"K = {nw.k_dim}."
        )
    check_not_negative("coefficient", coefficient)
    y = prepare_target(nw, nw.loc, y, mask)
    nll = -nw.predictive().log_prob(y)
    evidence = 2 * nw.belief + 0.5 * nw.df
    return masked(nll + coefficient * (y - nw.loc).squeeze(-1).abs() * evidence, mask)
