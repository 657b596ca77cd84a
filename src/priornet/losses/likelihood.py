"""Likelihood losses for networks that predict one Gaussian."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import masked, prepare_target
from priornet.distributions import Gaussian
from priornet.losses._kernels import scalar
from priornet.losses._kernels.autograd import closed_form

__all__ = ["beta_nll", "gaussian_nll"]


def gaussian_nll(distribution: Distribution, y: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Compute the negative log-likelihood, constants kept.

    .. math:: \tfrac12[(y-\mu)^\top\Lambda(y-\mu) - \ln|\Lambda| + K\ln 2\pi]

    Any predictive with a ``log_prob`` over vectors is accepted, not only a Gaussian.

    Args:
        distribution: Prediction with batch shape ``(*batch,)`` and event ``(K,)``.
        y: Targets, shape ``(*batch, K)``.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``; lower is better.

    Example:
        >>> prediction = Gaussian(torch.zeros(3, 1), variance=torch.ones(3, 1))
        >>> gaussian_nll(prediction, torch.zeros(3, 1))
        tensor([0.9189, 0.9189, 0.9189])
    """
    mean = distribution.mean
    if not isinstance(mean, Tensor):
        raise TypeError(
            f"`distribution` must be over targets; got {type(distribution).__name__}, which is "
            "over Gaussians: pass its `.predictive()`."
        )
    y = prepare_target(distribution, mean, y, mask)
    if isinstance(distribution, Gaussian) and distribution.event_shape[0] == 1:
        return masked(_scalar_nll(distribution, y), mask)
    return masked(-distribution.log_prob(y), mask)


def _scalar_nll(gaussian: Gaussian, y: Tensor) -> Tensor:
    """Compute K = 1 in closed form where possible."""

    def composed(loc: Tensor, root: Tensor, y: Tensor) -> Tensor:
        same = Gaussian(loc.unsqueeze(-1), root[..., None, None], validate_args=False)
        return -same.log_prob(y.unsqueeze(-1))

    parameters = (gaussian.loc.squeeze(-1), gaussian.precision_tril.squeeze((-2, -1)))
    return closed_form(scalar.gaussian_nll, composed, gaussian, parameters, (y.squeeze(-1),))


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
