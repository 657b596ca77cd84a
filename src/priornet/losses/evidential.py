"""Deep Evidential Regression."""

from __future__ import annotations

import functools

from torch import Tensor

from priornet.checks import check_weight, masked, prepare_target
from priornet.distributions import NormalWishart
from priornet.losses._kernels import scalar
from priornet.losses._kernels.autograd import closed_form, scalar_belief, scalar_parameters

__all__ = ["evidential"]


def evidential(
    nw: NormalWishart, y: Tensor, coefficient: Tensor | float, mask: Tensor | None = None
) -> Tensor:
    r"""Compute the loss of Deep Evidential Regression (Amini et al., 2020).

    .. math:: -\ln\mathcal T(y) + c\,|y - \gamma|\,(2\upsilon + \alpha)

    In the Normal-Wishart's letters :math:`\gamma = m`, :math:`\upsilon = \kappa`,
    :math:`\alpha = \nu/2`.

    Note:
        The paper has one target. For K > 1 the first term is the multivariate Student-T's, and the
        error of the second is the sum of the errors of the coordinates.

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        y: Targets, shape ``(*batch, K)``.
        coefficient: Weight c of the evidence regulariser: a number, or a tensor that broadcasts
            with the batch, one per network of a stack.
        mask: True where the target counts, shape ``(*batch,)``.

    Example:
        >>> nw = NormalWishart.from_excess(torch.zeros(2, 1), torch.ones(2, 1, 1), 1.0, 2.0)
        >>> evidential(nw, torch.zeros(2, 1), coefficient=0.01)
        tensor([1.3274, 1.3274])
    """
    check_weight("coefficient", coefficient, nw.batch_shape, nw.loc)
    y = prepare_target(nw, nw.loc, y, mask)
    if nw.k_dim != 1:
        return masked(_evidential(nw, y, coefficient), mask)
    constants = (y.squeeze(-1),)
    number = 0.0
    if isinstance(coefficient, Tensor):
        constants = (*constants, coefficient)
    else:
        number = float(coefficient)

    def composed(*tensors: Tensor) -> Tensor:
        belief, rest = scalar_belief(*tensors[:4]), tensors[4:]
        return _evidential(belief, rest[0].unsqueeze(-1), rest[1] if len(rest) > 1 else number)

    kernel = functools.partial(scalar.evidential, coefficient=number)
    return masked(closed_form(kernel, composed, nw, scalar_parameters(nw), constants), mask)


def _evidential(nw: NormalWishart, y: Tensor, coefficient: Tensor | float) -> Tensor:
    nll = -nw.predictive().log_prob(y)
    evidence = 2 * nw.belief + 0.5 * nw.df
    return nll + coefficient * (y - nw.loc).abs().sum(-1) * evidence
