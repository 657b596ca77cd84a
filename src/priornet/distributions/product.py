"""Product of one-dimensional Normal-Wisharts: a belief about targets with diagonal covariance."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from torch import Generator, Tensor
from torch.distributions import constraints

from priornet.checks import broadcast_batch, check_parameters
from priornet.distributions.base import (
    BatchDistribution,
    Decomposition,
    GaussianParameters,
    MarginalQuantiles,
    Shape,
    affine_map,
)
from priornet.distributions.normal_wishart import NormalWishart
from priornet.distributions.student_t import StudentT


class ProductStudentT(MarginalQuantiles[StudentT]):
    """Independent Student-Ts: the predictive of a :class:`ProductNormalWishart`.

    Args:
        df: Degrees of freedom > 0, per coordinate ``(*batch, K)``.
        loc: Locations, shape ``(*batch, K)``.
        scale: Scales > 0 (not standard deviations), shape ``(*batch, K)``.

    Example:
        >>> ones = torch.ones(2)
        >>> ProductStudentT(4 * ones, 0 * ones, ones).variance
        tensor([2., 2.])
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "scale": 1, "excess": 1}
    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    scale: Tensor
    excess: Tensor

    def __init__(
        self, df: Tensor, loc: Tensor, scale: Tensor, validate_args: bool | None = None
    ) -> None:
        vectors = {"loc": loc, "scale": scale, "df": df}
        loc, scale, df = check_parameters(validate_args, vectors=vectors)
        self._set(loc=loc, scale=scale, excess=df - 2)

    @classmethod
    def from_marginals(cls, marginals: StudentT) -> Self:
        """Build it from Student-Ts with batch ``(*batch, K)``."""
        t = marginals
        return cls.unchecked(loc=t.loc, scale=t.scale, excess=t.excess)

    def marginals(self) -> StudentT:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        return StudentT.from_excess(self.excess, self.loc, self.scale)

    @property
    def df(self) -> Tensor:
        """Return the degrees of freedom, per coordinate."""
        return self.excess + 2

    @property
    def mean(self) -> Tensor:
        """Return the mean; ``nan`` for df <= 1."""
        return self.marginals().mean

    @property
    def mode(self) -> Tensor:
        """Return the mode."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Return the variance of each coordinate; ``inf`` for 1 < df <= 2, ``nan`` below."""
        return self.marginals().variance

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance, diagonal."""
        return torch.diag_embed(self.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of vectors ``(*sample, *batch, K)``."""
        value = self.checked_value("value", value, self.event_shape)
        return self.marginals().log_prob(value).sum(-1)

    def entropy(self) -> Tensor:
        """Compute the differential entropy, Eq. (33) per coordinate."""
        return self.marginals().entropy().sum(-1)

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients, in the degrees of freedom too."""
        return self.marginals().rsample(sample_shape, generator)


class ProductNormalWishart(BatchDistribution):
    r"""K independent Normal-Wisharts, one for each coordinate of the target.

    .. math:: p(\mu, \lambda) = \prod_k \mathcal{NW}(\mu_k, \lambda_k \mid m_k, l_k, \kappa_k,\nu_k)

    Note:
        A full Wishart evaluated at diagonal matrices, as in the paper's public code, is normalised
        only for K = 1.

    Args:
        loc: Prior means, shape ``(*batch, K)``.
        precision: Expected precisions :math:`\nu_k l_k`, shape ``(*batch, K)``.
        belief: Beliefs, per coordinate ``(*batch, K)``.
        excess: :math:`d_k = \nu_k - 2`, per coordinate ``(*batch, K)``.

    Example:
        >>> one = torch.ones(3)
        >>> belief = ProductNormalWishart(torch.zeros(3), one, belief=one, excess=one)
        >>> belief.expected_pairwise_kl()
        tensor(9.)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "precision": 1, "belief": 1, "excess": 1}
    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = True
    loc: Tensor
    precision: Tensor
    belief: Tensor
    excess: Tensor

    def __init__(
        self,
        loc: Tensor,
        precision: Tensor,
        belief: Tensor,
        excess: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        vectors = {"loc": loc, "precision": precision, "belief": belief, "excess": excess}
        tensors = check_parameters(validate_args, vectors=vectors)
        self._set(**dict(zip(vectors, tensors, strict=True)))

    @property
    def factors(self) -> NormalWishart:
        """Return the coordinates as one Normal-Wishart with K = 1 and batch ``(*batch, K)``."""
        loc, tril = self.loc.unsqueeze(-1), self.precision.sqrt()[..., None, None]
        return NormalWishart.unchecked(
            loc=loc, precision_tril=tril, belief=self.belief, excess=self.excess
        )

    @property
    def k_dim(self) -> int:
        """Return the target dimension K."""
        return self.event_shape[0]

    @property
    def df(self) -> Tensor:
        r"""Return the degrees of freedom :math:`\nu_k`, per coordinate."""
        return self.excess + 2

    @property
    def mean(self) -> GaussianParameters:
        """Return the expected mean and (diagonal) precision."""
        return GaussianParameters(self.loc, torch.diag_embed(self.precision))

    def log_prob(self, value: tuple[Tensor, Tensor]) -> Tensor:
        """Log-density at ``(mean, precisions)``, both ``(*sample, *batch, K)``."""
        event = self.event_shape
        mean, precision = self.checked_pair(value, mean=event, precisions=event)
        return self.factors.log_prob((mean.unsqueeze(-1), precision[..., None, None])).sum(-1)

    def entropy(self) -> Tensor:
        """Compute the differential entropy over means and precisions."""
        return self.factors.entropy().sum(-1)

    def rsample(
        self, sample_shape: Shape = (), generator: Generator | None = None
    ) -> GaussianParameters:
        """Draw means and precisions, both ``(*sample, *batch, K)``; reparameterised."""
        mean, precision = self.factors.rsample(sample_shape, generator)
        return GaussianParameters(mean.squeeze(-1), precision[..., 0, 0])

    # -- the target y -----------------------------------------------------------------------------

    def marginals(self) -> StudentT:
        """Return the predictive of each coordinate by itself: batch ``(*batch, K)``."""
        t = self.factors.predictive().marginals()
        return StudentT.from_excess(t.excess.squeeze(-1), t.loc.squeeze(-1), t.scale.squeeze(-1))

    def predictive(self) -> ProductStudentT:
        """Return the predictive of y: a product of Student-Ts, Eq. (4) per coordinate."""
        return ProductStudentT.from_marginals(self.marginals())

    def expected_log_prob(self, y: Tensor) -> Tensor:
        """Compute the expected log-likelihood of a target, minus Eq. (25)."""
        y = self.checked_value("y", y, self.event_shape)
        return self.factors.expected_log_prob(y.unsqueeze(-1)).sum(-1)

    def posterior(self, y: Tensor, beta: Tensor | float = 1.0) -> Self:
        """Update the belief with ``y`` seen ``beta`` times, Eq. (9) per coordinate."""
        y = self.checked_value("y", y, self.event_shape)
        if isinstance(beta, Tensor):  # one per target, for all of its coordinates
            broadcast_batch(y=y.shape[:-1], beta=beta.shape, belief=self.batch_shape)
            beta = beta.unsqueeze(-1).expand((*beta.shape, self.k_dim))
        after = self.factors.posterior(y.unsqueeze(-1), beta)
        loc, precision = after.loc.squeeze(-1), after.precision_tril[..., 0, 0].square()
        return self.unchecked(
            loc=loc, precision=precision, belief=after.belief, excess=after.excess
        )

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> Self:
        """Return the belief about ``shift + scale * y`` per coordinate: the target in other units.

        Args:
            shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
            scale: Positive, likewise.
        """
        shift, scale, _ = affine_map(shift, scale, self.loc, self.batch_shape)
        precision = self.precision / scale / scale  # twice: the square may leave the range
        loc = shift + scale * self.loc
        return self.unchecked(loc=loc, precision=precision, belief=self.belief, excess=self.excess)

    # -- measures of uncertainty: sums over coordinates -------------------------------------------

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty, Eq. (35)."""
        return self.factors.expected_entropy().sum(-1)

    def mutual_information(self) -> Tensor:
        """Compute knowledge uncertainty, Eq. (36)."""
        return self.factors.mutual_information().sum(-1)

    def predictive_entropy(self) -> Tensor:
        """Compute total uncertainty, Eq. (33)."""
        return self.factors.predictive_entropy().sum(-1)

    def expected_pairwise_kl(self) -> Tensor:
        """Compute knowledge uncertainty, Eq. (40)."""
        return self.factors.expected_pairwise_kl().sum(-1)

    def data_covariance(self) -> Tensor:
        """Compute the expected covariance, diagonal, Eq. (42)."""
        return torch.diag_embed(self.factors.data_covariance()[..., 0, 0])

    def knowledge_covariance(self) -> Tensor:
        """Compute the covariance of the mean, diagonal, Eq. (43)."""
        return torch.diag_embed(self.factors.knowledge_covariance()[..., 0, 0])

    def total_covariance(self) -> Tensor:
        """Compute the covariance of the target, diagonal, Eq. (44)."""
        return torch.diag_embed(self.factors.total_covariance()[..., 0, 0])

    def covariance_logdet(self) -> Decomposition:
        """Log-determinants of the total, data and knowledge covariances."""
        return Decomposition(*(part.sum(-1) for part in self.factors.covariance_logdet()))

    def covariance_trace(self) -> Decomposition:
        """Traces of the total, data and knowledge covariances."""
        return Decomposition(*(part.sum(-1) for part in self.factors.covariance_trace()))
