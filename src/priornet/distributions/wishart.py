"""Wishart distribution over precision matrices, carried by its mean and its excess."""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from torch import Generator, Size, Tensor
from torch.distributions import constraints

from priornet.checks import check_parameters
from priornet.distributions.base import BatchDistribution, Shape, standard_gamma
from priornet.special import triangular
from priornet.special.gamma import digamma_gap, stirling_gap


class Wishart(BatchDistribution):
    r"""Distribution over the precision matrix :math:`\Lambda` of a Gaussian.

    .. math:: \mathcal{W}(\Lambda \mid L, \nu) \propto
        |\Lambda|^{(\nu-K-1)/2} \exp(-\tfrac12 \mathrm{tr}\, L^{-1}\Lambda)

    Paper: Eq. (19), arXiv:2006.11590v2. Inside, :math:`P = \nu L = E[\Lambda]` and :math:`d = \nu -
    K - 1` replace :math:`(L, \nu)`: every formula splits into a divergence from the mean and a
    function of d, and neither cancels.

    Args:
        scale_tril: Cholesky factor of the scale :math:`L`, shape ``(*batch, K, K)``.
        df: Degrees of freedom :math:`\nu > K - 1`, shape ``(*batch,)``.

    Example:
        >>> Wishart(torch.eye(1), df=5.0).mean
        tensor([[5.]])
    """

    _event_dims: ClassVar[dict[str, int]] = {"precision_tril": 2, "excess": 0}
    arg_constraints: ClassVar = {
        "precision_tril": constraints.lower_cholesky,
        "excess": constraints.greater_than(-2),
    }
    support = constraints.positive_definite
    has_rsample = True
    precision_tril: Tensor
    excess: Tensor

    def __init__(
        self, scale_tril: Tensor, df: Tensor | float, validate_args: bool | None = None
    ) -> None:
        trils, numbers = {"scale_tril": scale_tril}, {"df": df}
        scale_tril, df = check_parameters(
            validate_args, trils=trils, numbers=numbers, of_wishart=True
        )
        tril = scale_tril * df.sqrt()[..., None, None]
        self._set(precision_tril=tril, excess=df - (tril.shape[-1] + 1))

    @classmethod
    def from_excess(
        cls, precision_tril: Tensor, excess: Tensor | float, validate_args: bool | None = None
    ) -> Self:
        r"""Build it from the factor of :math:`P = \nu L` and the excess :math:`d = \nu - K - 1`."""
        trils, numbers = {"precision_tril": precision_tril}, {"excess": excess}
        precision_tril, excess = check_parameters(validate_args, trils=trils, numbers=numbers)
        return cls.unchecked(precision_tril=precision_tril, excess=excess)

    @property
    def df(self) -> Tensor:
        r"""Return the degrees of freedom :math:`\nu`."""
        return self.excess + (self.event_shape[0] + 1)

    @property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the scale L."""
        return self.precision_tril * self.df.rsqrt()[..., None, None]

    @property
    def mean(self) -> Tensor:
        r"""Return the expected precision :math:`\nu L`."""
        return triangular.outer(self.precision_tril)

    @property
    def mode(self) -> Tensor:
        r"""Return the mode :math:`(\nu-K-1) L`; ``nan`` where :math:`\nu \le K + 1`."""
        ratio = torch.where(self.excess > 0, self.excess, torch.nan) / self.df
        return self.mean * ratio[..., None, None]

    def expected_logdet(self) -> Tensor:
        r"""Compute :math:`E\ln|\Lambda| = \psi_K(\nu/2) + K\ln 2 + \ln|L|`."""
        return triangular.logdet(self.precision_tril) + digamma_gap(
            self.excess, self.event_shape[0]
        )

    def log_normalizer(self) -> Tensor:
        r"""Log of the divisor :math:`2^{\nu K/2}\,|L|^{\nu/2}\,\Gamma_K(\nu/2)`."""
        k_dim = self.event_shape[0]
        centred = triangular.logdet(self.precision_tril) - k_dim
        return 0.5 * self.df * centred - stirling_gap(self.excess, k_dim)

    def log_prob(self, value: Tensor) -> Tensor:
        r"""Log-density at a precision matrix ``(*sample, *batch, K, K)``, Eq. (19)."""
        value = self.checked_value("value", value, self.event_shape)
        return self.log_prob_tril(triangular.cholesky(value))

    def log_prob_tril(self, tril: Tensor) -> Tensor:
        r"""Log-density at the precision whose Cholesky factor is given.

        .. math:: -\tfrac{\nu}{2}\,[\mathrm{tr}(P^{-1}\Lambda) - K - \ln|P^{-1}\Lambda|]
            - \tfrac{K+1}{2}\ln|\Lambda| + R(\nu)
        """
        k_dim = self.event_shape[0]
        tril, mean = torch.broadcast_tensors(tril, self.precision_tril)
        from_mean = triangular.logdet_divergence(tril, mean)
        gap = stirling_gap(self.excess, k_dim)
        return gap - 0.5 * self.df * from_mean - 0.5 * (k_dim + 1) * triangular.logdet(tril)

    def entropy(self) -> Tensor:
        """Compute the differential entropy."""
        k_dim = self.event_shape[0]
        half = 0.5 * self.excess * digamma_gap(self.excess, k_dim)
        logdet = triangular.logdet(self.precision_tril)
        return 0.5 * (k_dim + 1) * logdet - stirling_gap(self.excess, k_dim) - half

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients, in the degrees of freedom too."""
        return triangular.outer(self.rsample_tril(sample_shape, generator))

    def rsample_tril(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        r"""Draw Cholesky factors by Bartlett's decomposition.

        :math:`\Lambda = C A A^\top C^\top / \nu` with :math:`A_{ii}^2 \sim \chi^2_{\nu-i}`
        (i = 0, ..., K-1) and standard normals below the diagonal.
        """
        k_dim = self.event_shape[0]
        shape = Size(sample_shape) + self.batch_shape
        steps = torch.arange(k_dim, dtype=self.dtype, device=self.device)
        half_df = 0.5 * (self.df.unsqueeze(-1) - steps)
        gamma = standard_gamma(half_df.expand((*shape, k_dim)), generator)
        noise = torch.randn(
            (*shape, k_dim, k_dim), dtype=self.dtype, device=self.device, generator=generator
        )
        bartlett = noise.tril(-1) + torch.diag_embed((2 * gamma).sqrt())
        root = (self.precision_tril * self.df.rsqrt()[..., None, None]).expand_as(bartlett)
        return triangular.product(root, bartlett)
