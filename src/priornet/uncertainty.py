"""Total, data and knowledge uncertainty of any belief, in one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

__all__ = ["Belief", "Uncertainty", "uncertainty"]


@runtime_checkable
class Belief(Protocol):
    """The interface of a Normal-Wishart, a product of them, an ensemble and a single Gaussian."""

    def predictive_entropy(self) -> Tensor:
        """Compute total uncertainty as an entropy."""
        ...

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty as an entropy."""
        ...

    def mutual_information(self) -> Tensor:
        """Compute knowledge uncertainty as an entropy."""
        ...

    def expected_pairwise_kl(self) -> Tensor:
        """Compute knowledge uncertainty as an expected KL."""
        ...

    def data_covariance(self) -> Tensor:
        """Compute data uncertainty as a covariance."""
        ...

    def knowledge_covariance(self) -> Tensor:
        """Compute knowledge uncertainty as a covariance."""
        ...

    def total_covariance(self) -> Tensor:
        """Compute total uncertainty as a covariance."""
        ...


@dataclass(frozen=True)
class Uncertainty:
    """Every measure of the paper for a batch of inputs.

    Entropies are in nats and add up, total = data + mutual information, Eq. (5); so do the
    variances, Eq. (7). Mutual information and EPKL do not change with the units of the target,
    variances do.

    Attributes:
        total_entropy: Entropy of the predictive, ``(*batch,)``; None without a closed form.
        data_entropy: Expected entropy, ``(*batch,)``.
        mutual_information: Knowledge uncertainty, ``(*batch,)``; None without a closed form.
        epkl: Expected pairwise KL, an upper bound of the mutual information, ``(*batch,)``.
        total_variance: Variance of each target coordinate, ``(*batch, K)``.
        data_variance: Its data part, ``(*batch, K)``.
        knowledge_variance: Its knowledge part: variance of the mean, ``(*batch, K)``.
    """

    total_entropy: Tensor | None
    data_entropy: Tensor
    mutual_information: Tensor | None
    epkl: Tensor
    total_variance: Tensor
    data_variance: Tensor
    knowledge_variance: Tensor


def uncertainty(belief: Belief) -> Uncertainty:
    """Compute total, data and knowledge uncertainty of a belief.

    Args:
        belief: A Normal-Wishart, a product of them, an ensemble of Gaussians, or one Gaussian.

    Example:
        >>> from priornet.distributions import NormalWishart
        >>> nw = NormalWishart.from_excess(torch.zeros(1), torch.eye(1), belief=4.0, excess=2.0)
        >>> uncertainty(nw).knowledge_variance
        tensor([0.5000])
    """
    if not isinstance(belief, Belief):
        raise TypeError(
            "`belief` must be a NormalWishart, a ProductNormalWishart, a GaussianEnsemble or a "
            f"Gaussian; got {type(belief).__name__}."
        )
    return Uncertainty(
        total_entropy=_or_none(belief.predictive_entropy),
        data_entropy=belief.expected_entropy(),
        mutual_information=_or_none(belief.mutual_information),
        epkl=belief.expected_pairwise_kl(),
        total_variance=_diagonal(belief.total_covariance()),
        data_variance=_diagonal(belief.data_covariance()),
        knowledge_variance=_diagonal(belief.knowledge_covariance()),
    )


def _or_none(measure: Callable[[], Tensor]) -> Tensor | None:
    try:
        return measure()
    except NotImplementedError:
        return None


def _diagonal(covariance: Tensor) -> Tensor:
    return covariance.diagonal(dim1=-2, dim2=-1)
