"""The normal over a number, and the Gaussian over vectors, which answers the belief protocol."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Normal as TorchNormal
from torch.distributions import constraints

from priornet.checks import check_parameters
from priornet.distributions.base import (
    BatchDistribution,
    Decomposition,
    MarginalQuantiles,
    Shape,
    affine_map,
)
from priornet.distributions.factors import Factor
from priornet.special import triangular
from priornet.special.elementwise import normal_cdf


# torch's class is a base so that its divergences and `isinstance` hold here too.
class Normal(BatchDistribution, TorchNormal):
    """Normal over a number, with quantiles that hold in the tails.

    It refuses a value ``(N, 1)`` against a batch ``(N,)``, which torch's would broadcast to ``(N,
    N)``.

    Args:
        loc: Mean, shape ``(*batch,)``.
        scale: Standard deviation > 0.

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
        numbers = {"loc": loc, "scale": scale}
        loc, scale = check_parameters(validate_args, numbers=numbers)
        self._set(loc=loc, scale=scale)

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
    """Gaussian over vectors, Eq. (1), by whichever factor is at hand.

    Unlike torch's ``MultivariateNormal`` it is elementwise for K up to 3 and accepts the precision
    factor that networks predict. As a belief it is certain: all its uncertainty is data
    uncertainty.

    Args:
        loc: Mean, shape ``(*batch, K)``.
        precision_tril: Cholesky factor of the precision, ``(*batch, K, K)``.
        scale_tril: Or the Cholesky factor of the covariance.
        variance: Or the variances of independent coordinates, ``(*batch, K)``.

    Example:
        >>> Gaussian(torch.zeros(1), variance=torch.tensor([4.0])).entropy()
        tensor(2.1121)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "_tril": 2}
    _kept: ClassVar[tuple[str, ...]] = ("_of_precision",)
    arg_constraints: ClassVar[dict[str, Any]] = {"loc": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    _tril: Tensor
    _of_precision: bool

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
        if variance is None:
            loc, tril = check_parameters(validate_args, vectors={"loc": loc}, trils=named)
        else:
            vectors = {"loc": loc, "variance": variance}
            loc, variance = check_parameters(validate_args, vectors=vectors)
            deviation = variance.sqrt()
            one = loc.shape[-1] == 1
            tril = deviation.unsqueeze(-1) if one else torch.diag_embed(deviation)
        self._of_precision = precision_tril is not None
        self._set(loc=loc, _tril=tril)

    @classmethod
    def from_factor(cls, loc: Tensor, factor: Factor) -> Self:
        """Build it from a mean and a factor that fit together, unchecked."""
        new = cls.__new__(cls)
        new._of_precision = factor.of_precision
        new._set(loc=loc, _tril=factor.tril)
        return new

    @property
    def _factor(self) -> Factor:
        return Factor(self._tril, self._of_precision)

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

    mode = mean

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
        return Normal.unchecked(loc=self.loc, scale=self._factor.deviations())

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> Self:
        r"""Return the distribution of ``shift + scale * y`` per coordinate: y in other units.

        Args:
            shift: Shape ``(K,)`` or ``(*batch, K)``; a number stands for every coordinate.
            scale: Positive, likewise.
        """
        shift, scale, _ = affine_map(shift, scale, self.loc, self.batch_shape)
        return self.from_factor(shift + scale * self.loc, self._factor.scaled(scale))

    # -- the belief protocol: no knowledge uncertainty --------------------------------------------

    def predictive(self) -> Self:
        """Return the distribution of the target: itself."""
        return self

    def expected_log_prob(self, y: Tensor) -> Tensor:
        """Log-likelihood of a target."""
        return self.log_prob(y)

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty, which is all of it: the entropy."""
        return self.entropy()

    predictive_entropy = expected_entropy

    def mutual_information(self) -> Tensor:
        """Return knowledge uncertainty: zero."""
        return torch.zeros_like(self.loc[..., 0])

    expected_pairwise_kl = mutual_information

    def data_covariance(self) -> Tensor:
        """Return the covariance, which is total and data uncertainty."""
        return self.covariance_matrix

    total_covariance = data_covariance

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
