"""The normal over a number, and the Gaussian over vectors, which answers the belief protocol."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Normal as TorchNormal
from torch.distributions import constraints

from priornet.checks import (
    broadcast_batch,
    check_finite,
    check_greater,
    check_matrix_shapes,
    check_tril,
    check_values,
    check_vector_shapes,
    common_tensors,
)
from priornet.distributions.base import (
    BatchDistribution,
    Decomposition,
    MarginalQuantiles,
    Shape,
    affine_map,
    wants_check,
)
from priornet.distributions.factors import CovarianceFactor, Factor, PrecisionFactor
from priornet.special import triangular
from priornet.special.elementwise import normal_cdf


# torch's class is a base so that its divergences and `isinstance` hold here too.
class Normal(BatchDistribution, TorchNormal):
    r"""Normal over a number, with quantiles that hold in the tails.

    Where ``torch.distributions.Normal`` would broadcast a value ``(N, 1)`` against ``(N,)`` into
    ``(N, N)``, this one refuses; its draws take a generator.

    Args:
        loc: Mean, shape ``(*batch,)``.
        scale: Standard deviation > 0.
        validate_args: Check parameter values; torch's default when None.

    Example:
        >>> Normal(torch.tensor(1.0), 2.0).icdf(torch.tensor(0.975))
        tensor(4.9199)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        loc, scale = common_tensors(loc=loc, scale=scale)
        broadcast_batch(loc=loc.shape, scale=scale.shape)
        if wants_check(validate_args, loc, scale):
            check_finite("loc", loc)
            check_greater("scale", scale, 0.0)
        self._set((), loc=loc, scale=scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density."""
        z = (self.checked_value("value", value, ()) - self.loc) / self.scale
        return -0.5 * z * z - torch.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value."""
        return normal_cdf((self.checked_value("value", value, ()) - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile at a probability."""
        value = self.checked_value("value", value, ())
        return self.loc + self.scale * torch.special.ndtri(value)

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients."""
        shape = Size(sample_shape) + self.batch_shape
        noise = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
        return self.loc + self.scale * noise


class Gaussian(MarginalQuantiles[Normal]):
    r"""Gaussian over vectors, Eq. (1), by whichever factor is at hand.

    torch's ``MultivariateNormal`` always factorises in batched linear algebra; this one is
    elementwise for K up to 3 and accepts the precision factor that networks predict. As a belief
    about the target it is certain of its own parameters: all its uncertainty is data uncertainty.

    Args:
        loc: Mean, shape ``(*batch, K)``.
        precision_tril: Cholesky factor of the precision, ``(*batch, K, K)``.
        scale_tril: Or the Cholesky factor of the covariance.
        variance: Or the variances of independent coordinates, ``(*batch, K)``.
        validate_args: Check parameter values; torch's default when None.

    Example:
        >>> Gaussian(torch.zeros(1), variance=torch.tensor([4.0])).entropy()
        tensor(2.1121)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "_tril": 2}
    _kept: ClassVar[tuple[str, ...]] = ("_kind",)
    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    _tril: Tensor
    _kind: type[CovarianceFactor] | type[PrecisionFactor]

    def __init__(
        self,
        loc: Tensor,
        precision_tril: Tensor | None = None,
        scale_tril: Tensor | None = None,
        variance: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "precision_tril": precision_tril,
            "scale_tril": scale_tril,
            "variance": variance,
        }
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            raise ValueError(
                "give exactly one of `precision_tril`, `scale_tril`, `variance`; "
                f"got {', '.join(named) or 'none'}."
            )
        ((name, matrix),) = named.items()
        loc, matrix = common_tensors(loc=loc, **{name: matrix})
        diagonal = name == "variance"
        if diagonal:
            check_vector_shapes("loc", loc, name, matrix)
        else:
            check_matrix_shapes("loc", loc, name, matrix)
        k_dim = loc.shape[-1]
        batches = {"loc": loc.shape[:-1], name: matrix.shape[: -1 if diagonal else -2]}
        broadcast_batch(**batches)
        if wants_check(validate_args, loc, matrix):
            check_finite("loc", loc)
            if diagonal:
                good = (matrix > 0) & torch.isfinite(matrix)
                check_values(name, matrix, good, "positive and finite")
            else:
                check_tril(name, matrix)
        if diagonal:
            matrix = torch.diag_embed(matrix.sqrt()) if k_dim > 1 else matrix.sqrt().unsqueeze(-1)
        self._kind = PrecisionFactor if name == "precision_tril" else CovarianceFactor
        self._set(loc.shape[-1:], loc=loc, _tril=matrix)

    @property
    def _factor(self) -> Factor:
        return self._kind(self._tril)

    @property
    def precision_tril(self) -> Tensor:
        """Return the Cholesky factor of the precision."""
        return self._factor.precision_tril()

    @property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the covariance."""
        return self._factor.covariance_tril()

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance matrix."""
        return self._factor.matrix()

    @property
    def mean(self) -> Tensor:
        """Return the mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """Return the mode."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Return the variance of each coordinate."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density, Eq. (19)."""
        value = self.checked_value("value", value, self.event_shape)
        square = triangular.sum_of_squares(self._factor.whiten(value - self.loc))
        constant = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (square + self._factor.logdet() + constant)

    def entropy(self) -> Tensor:
        """Compute the differential entropy."""
        constant = self.event_shape[0] * (1 + math.log(2 * math.pi))
        return 0.5 * (constant + self._factor.logdet())

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients."""
        shape = Size(sample_shape) + self.batch_shape + self.event_shape
        noise = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
        return self.loc + self._factor.colour(noise)

    def marginals(self) -> Normal:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        return Normal(self.loc, self._factor.deviations(), validate_args=False)

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> Self:
        r"""Return the distribution of ``shift + scale * y`` per coordinate: y in other units.

        Args:
            shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
            scale: Positive, likewise.
        """
        shift, scale, _ = affine_map(shift, scale, self.loc, self.batch_shape)
        new = type(self).__new__(type(self))
        new._kind = self._kind
        new._set(
            self.event_shape, loc=shift + scale * self.loc, _tril=self._factor.scaled(scale).tril
        )
        return new

    # -- the belief protocol: no knowledge uncertainty --------------------------------------------

    def predictive(self) -> Self:
        """Return the distribution of the target: itself."""
        return self

    def expected_log_prob(self, y: Tensor) -> Tensor:
        """Log-likelihood of a target."""
        return self.log_prob(y)

    def predictive_entropy(self) -> Tensor:
        """Compute total uncertainty: the entropy."""
        return self.entropy()

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty: the entropy."""
        return self.entropy()

    def mutual_information(self) -> Tensor:
        """Return knowledge uncertainty: zero."""
        return torch.zeros_like(self.loc[..., 0])

    def expected_pairwise_kl(self) -> Tensor:
        """Return knowledge uncertainty: zero."""
        return torch.zeros_like(self.loc[..., 0])

    def data_covariance(self) -> Tensor:
        """Return the covariance."""
        return self.covariance_matrix

    def total_covariance(self) -> Tensor:
        """Return the covariance."""
        return self.covariance_matrix

    def knowledge_covariance(self) -> Tensor:
        """Return zero."""
        return torch.zeros_like(self.covariance_matrix)

    def covariance_logdet(self) -> Decomposition:
        """Log-determinants of the total, data and knowledge covariances."""
        logdet = self._factor.logdet()
        return Decomposition(logdet, logdet, torch.full_like(logdet, -torch.inf))

    def covariance_trace(self) -> Decomposition:
        """Traces of the total, data and knowledge covariances."""
        trace = self.variance.sum(-1)
        return Decomposition(trace, trace, torch.zeros_like(trace))
