"""Likelihood losses: of one Gaussian, and of a Normal-Wishart in Deep Evidential Regression."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import check_weight, masked, prepare_target, target_mean
from priornet.distributions import Gaussian, NormalWishart
from priornet.losses import _kernels
from priornet.losses._closed_form import closed_form


def gaussian_nll(distribution: Distribution, y: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Compute the negative log-likelihood, constants kept.

    .. math:: \tfrac12[(y-\mu)^\top\Lambda(y-\mu) - \ln|\Lambda| + K\ln 2\pi]

    Args:
        distribution: Gaussian, or any predictive with a ``log_prob``: batch ``(*batch,)``, event
            ``(K,)``.
        y: Targets, shape ``(*batch, K)``.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``; lower is better.

    Example:
        >>> prediction = Gaussian(torch.zeros(3, 1), variance=torch.ones(3, 1))
        >>> gaussian_nll(prediction, torch.zeros(3, 1))
        tensor([0.9189, 0.9189, 0.9189])
    """
    y = prepare_target(distribution, target_mean(distribution), y, mask)
    if isinstance(distribution, Gaussian) and distribution.event_shape[0] == 1:
        loss = closed_form(
            _kernels.gaussian_nll, distribution, (y.squeeze(-1),), lambda same: -same.log_prob(y)
        )
        return masked(loss, mask)
    return masked(-distribution.log_prob(y), mask)


def beta_nll(
    gaussian: Gaussian, y: Tensor, beta: float = 0.5, mask: Tensor | None = None
) -> Tensor:
    r"""Weight the Gaussian NLL by :math:`|\Sigma|^{\beta/K}`, no gradient (Seitzer et al., 2022).

    ``beta`` = 0 is the plain NLL; 1 gives the mean the gradient of a squared error. It keeps
    networks from giving up on points whose variance they have blown up.

    Args:
        gaussian: Prediction.
        y: Targets, shape ``(*batch, K)``.
        beta: Between 0 and 1.
        mask: True where the target counts, shape ``(*batch,)``.
    """
    if not 0 <= beta <= 1:
        raise ValueError(f"`beta` must lie in [0, 1]; got {beta:g}.")
    nll = gaussian_nll(gaussian, y, mask)
    logdet = gaussian.covariance_logdet().total.detach()
    return masked(nll * (logdet * (beta / gaussian.event_shape[0])).exp(), mask)


def evidential(
    nw: NormalWishart, y: Tensor, coefficient: Tensor | float, mask: Tensor | None = None
) -> Tensor:
    r"""Compute the loss of Deep Evidential Regression (Amini et al., 2020).

    .. math:: -\ln\mathcal T(y) + c\,|y - \gamma|\,(2\upsilon + \alpha), \qquad
        \gamma = m,\ \upsilon = \kappa,\ \alpha = \nu/2

    Note:
        The paper has one target. For K > 1 the first term is the multivariate Student-T's, and the
        error of the second is the sum of the errors of the coordinates.

    Args:
        nw: Prediction with batch shape ``(*batch,)``.
        y: Targets, shape ``(*batch, K)``.
        coefficient: Weight c of the regulariser: a number, or a tensor that broadcasts with the
            batch.
        mask: True where the target counts, shape ``(*batch,)``.

    Example:
        >>> nw = NormalWishart.from_excess(torch.zeros(2, 1), torch.ones(2, 1, 1), 1.0, 2.0)
        >>> evidential(nw, torch.zeros(2, 1), coefficient=0.01)
        tensor([1.3274, 1.3274])
    """
    check_weight("coefficient", coefficient, nw.batch_shape, nw.loc)
    y = prepare_target(nw, nw.loc, y, mask)

    def formula(nw: NormalWishart) -> Tensor:
        nll = -nw.predictive().log_prob(y)
        evidence = 2 * nw.belief + 0.5 * nw.df
        return nll + coefficient * (y - nw.loc).abs().sum(-1) * evidence

    if nw.k_dim != 1:
        return masked(formula(nw), mask)
    constants = (y.squeeze(-1), coefficient)
    return masked(closed_form(_kernels.evidential, nw, constants, formula), mask)
