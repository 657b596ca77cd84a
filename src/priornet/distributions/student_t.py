"""Student-T distributions: the predictive of a Normal-Wishart."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Size, Tensor
from torch.distributions import constraints

from priornet.checks import check_parameters
from priornet.distributions.base import (
    BatchDistribution,
    MarginalQuantiles,
    Shape,
    standard_gamma,
)
from priornet.distributions.factors import Factor
from priornet.special import triangular
from priornet.special.elementwise import log_tail
from priornet.special.gamma import entropy_gap, log_gamma_gap, psi_gap
from priornet.special.student_t import student_t_cdf, student_t_icdf


def _log_constant(excess: Tensor, k_dim: int) -> Tensor:
    r"""Compute :math:`\ln\frac{\Gamma((df+K)/2)}{\Gamma(df/2)(\pi\,df)^{K/2}}`, the T's constant.

    With :math:`x_j = df/2 + j/2`: :math:`-\frac K2 \ln 2\pi + \sum_j [g(x_j) +
    \frac12\ln(x_j/x_0)]`.
    """
    x0 = 0.5 * excess + 1
    total = torch.full_like(x0, -0.5 * k_dim * math.log(2 * math.pi))
    for j in range(k_dim):
        total = total + log_gamma_gap(x0 + 0.5 * j)
        if j:
            total = total + 0.5 * torch.log1p(0.5 * j / x0)
    return total


def _entropy_constant(excess: Tensor, k_dim: int) -> Tensor:
    """Compute the entropy of the standard T: a Gaussian's plus terms that vanish as df grows."""
    x0 = 0.5 * excess + 1
    total = 0.5 * k_dim * (1 + math.log(2 * math.pi)) + entropy_gap(excess, k_dim)
    for j in range(k_dim):
        total = total - 0.5 * psi_gap(x0 + 0.5 * j)
        if j:
            total = total - 0.5 * torch.log1p(0.5 * j / x0)
    return total


def _standard_t(excess: Tensor, shape: Size, event: Size, generator: Generator | None) -> Tensor:
    """Draw white T noise: a Gaussian vector over the root of one gamma draw per vector."""
    half_df = (0.5 * excess + 1).expand(shape).contiguous()
    gamma = standard_gamma(half_df, generator)
    noise = torch.randn(
        shape + event, dtype=excess.dtype, device=excess.device, generator=generator
    )
    scale = (half_df / gamma).sqrt()
    return noise * scale.reshape(scale.shape + (1,) * len(event))


class StudentT(BatchDistribution):
    r"""Student-T over a number, with quantiles.

    .. math:: p(y) \propto \left(1 + \frac{(y-m)^2}{df\, s^2}\right)^{-(df+1)/2}

    Args:
        df: Degrees of freedom > 0, shape ``(*batch,)``.
        loc: Location m.
        scale: Scale s > 0 (not the standard deviation).

    Example:
        >>> StudentT(torch.tensor(3.0), 0.0, 1.0).icdf(torch.tensor(0.975))
        tensor(3.1824)
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0, "excess": 0}
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "excess": constraints.greater_than(-2),
    }
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor
    excess: Tensor

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        numbers = {"loc": loc, "scale": scale, "df": df}
        loc, scale, df = check_parameters(validate_args, numbers=numbers)
        self._set(loc=loc, scale=scale, excess=df - 2)

    @classmethod
    def from_excess(cls, excess: Tensor, loc: Tensor, scale: Tensor) -> Self:
        """Build it from ``excess`` = df - 2, which keeps its digits where the variance diverges."""
        return cls.unchecked(loc=loc, scale=scale, excess=excess)

    @property
    def df(self) -> Tensor:
        """Return the degrees of freedom."""
        return self.excess + 2

    @property
    def mean(self) -> Tensor:
        """Return the mean; ``nan`` for df <= 1."""
        return torch.where(self.excess > -1, self.loc, torch.nan)

    @property
    def mode(self) -> Tensor:
        """Return the mode."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Return the variance; ``inf`` for 1 < df <= 2, ``nan`` below."""
        return self.scale * self.scale * _variance_factor(self.excess)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density, Eq. (21) with K = 1."""
        value = self.checked_value("value", value, ())
        z = (value - self.loc) / self.scale
        square, df = torch.broadcast_tensors(z * z, self.df)
        tail = log_tail(square, df, 1)
        return _log_constant(self.excess, 1) - torch.log(self.scale) - tail

    def entropy(self) -> Tensor:
        """Compute the differential entropy, Eq. (33)."""
        return _entropy_constant(self.excess, 1) + torch.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value."""
        value = self.checked_value("value", value, ())
        return student_t_cdf((value - self.loc) / self.scale, self.df)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile at a probability."""
        value = self.checked_value("value", value, ())
        return self.loc + self.scale * student_t_icdf(value, self.df)

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients, in the degrees of freedom too."""
        shape = Size(sample_shape) + self.batch_shape
        return self.loc + self.scale * _standard_t(self.excess, shape, Size(), generator)


class MultivariateStudentT(MarginalQuantiles[StudentT]):
    r"""Student-T over vectors.

    .. math:: \mathcal{T}(y \mid m, S, df) = \frac{\Gamma((df+K)/2)}{\Gamma(df/2)(\pi
        df)^{K/2}|S|^{1/2}} \left(1 + \tfrac1{df}(y-m)^\top S^{-1}(y-m)\right)^{-(df+K)/2}

    Paper: Eq. (21), arXiv:2006.11590v2. S is the scale *matrix*; the covariance is
    :math:`S\,df/(df-2)`.

    Args:
        df: Degrees of freedom > 0, shape ``(*batch,)``.
        loc: Location m, shape ``(*batch, K)``.
        scale_tril: Cholesky factor of S, shape ``(*batch, K, K)``.

    Example:
        >>> t = MultivariateStudentT(torch.tensor(4.0), torch.zeros(2), torch.eye(2))
        >>> t.variance
        tensor([2., 2.])
    """

    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "_tril": 2, "excess": 0}
    _kept: ClassVar[tuple[str, ...]] = ("_of_precision",)
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        "excess": constraints.greater_than(-2),
    }
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    excess: Tensor
    _tril: Tensor
    _of_precision: bool

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor,
        scale_tril: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        loc, scale_tril, df = check_parameters(
            validate_args,
            vectors={"loc": loc},
            trils={"scale_tril": scale_tril},
            numbers={"df": df},
        )
        self._init(df - 2, loc, Factor(scale_tril, of_precision=False))

    @classmethod
    def from_excess(cls, excess: Tensor, loc: Tensor, factor: Factor) -> Self:
        """Build it from ``excess`` = df - 2 and a factor of S or of its inverse, unchecked."""
        new = cls.__new__(cls)
        new._init(excess, loc, factor)
        return new

    def _init(self, excess: Tensor, loc: Tensor, factor: Factor) -> None:
        self._of_precision = factor.of_precision
        self._set(loc=loc, _tril=factor.tril, excess=excess)

    @property
    def _factor(self) -> Factor:
        return Factor(self._tril, self._of_precision)

    @property
    def df(self) -> Tensor:
        """Return the degrees of freedom."""
        return self.excess + 2

    @property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the scale matrix."""
        return self._factor.covariance_tril()

    @property
    def scale_matrix(self) -> Tensor:
        """Scale matrix S."""
        return self._factor.matrix()

    @property
    def mean(self) -> Tensor:
        """Return the mean; ``nan`` for df <= 1."""
        return torch.where((self.excess > -1).unsqueeze(-1), self.loc, torch.nan)

    @property
    def mode(self) -> Tensor:
        """Return the mode."""
        return self.loc

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance; where it does not exist ``inf`` or ``nan``, as for variances."""
        factor = _variance_factor(self.excess)[..., None, None]
        finite = self.scale_matrix * torch.where(torch.isfinite(factor), factor, 1.0)
        undefined = torch.where(torch.isnan(factor), torch.nan, undefined_covariance(finite))
        return torch.where(torch.isfinite(factor), finite, undefined)

    @property
    def variance(self) -> Tensor:
        """Return the variance of each coordinate; ``inf`` for 1 < df <= 2, ``nan`` below."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density, Eq. (21)."""
        value = self.checked_value("value", value, self.event_shape)
        k_dim = self.event_shape[0]
        square = triangular.sum_of_squares(self._factor.whiten(value - self.loc))
        square, df = torch.broadcast_tensors(square, self.df)
        tail = log_tail(square, df, k_dim)
        return _log_constant(self.excess, k_dim) - 0.5 * self._factor.logdet() - tail

    def entropy(self) -> Tensor:
        """Compute the differential entropy, Eqs. (32) and (33)."""
        return _entropy_constant(self.excess, self.event_shape[0]) + 0.5 * self._factor.logdet()

    def rsample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw with reparameterised gradients, in the degrees of freedom too."""
        shape = Size(sample_shape) + self.batch_shape
        noise = _standard_t(self.excess, shape, self.event_shape, generator)
        return self.loc + self._factor.colour(noise)

    def marginals(self) -> StudentT:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        scale = self._factor.deviations()
        return StudentT.from_excess(self.excess.unsqueeze(-1).expand_as(scale), self.loc, scale)


def _variance_factor(excess: Tensor) -> Tensor:
    """Return the factor df / (df - 2); inf for 1 < df <= 2, nan below."""
    proper = excess > 0
    finite = 1 + 2 / torch.where(proper, excess, 1.0)
    return finite.masked_fill(~proper, torch.inf).masked_fill(excess <= -1, torch.nan)


def undefined_covariance(like: Tensor) -> Tensor:
    """Return a covariance that does not exist: ``inf`` variances, ``nan`` covariances."""
    eye = torch.eye(like.shape[-1], dtype=torch.bool, device=like.device)
    return torch.full_like(like, torch.nan).masked_fill(eye, torch.inf)
