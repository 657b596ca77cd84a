r"""Distributions of a target :math:`y = h(t)`, a monotone map of a normal, Student-T or mixture.

Density, distribution function, quantiles and draws are exact. Mean, variance and entropy come from
:mod:`priornet.special.map_moments`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution, constraints

from priornet.distributions.base import BatchDistribution, MarginalQuantiles, Shape
from priornet.distributions.gaussian import Normal
from priornet.distributions.mixture import NormalMixture
from priornet.distributions.student_t import StudentT
from priornet.special.map_moments import MapMoments, map_moments
from priornet.special.maps import CoordinateMaps, MonotoneMap

Univariate = Normal | StudentT | NormalMixture


class TransformedUnivariate(BatchDistribution):
    r"""Distribution of a number :math:`y = h(t)`.

    .. math:: p(y) = p_t(g(y))\,g'(y), \qquad g = h^{-1}

    Args:
        base: Distribution of t: a :class:`Normal`, :class:`StudentT` or :class:`NormalMixture`.
        target_map: The map; one per coordinate for a last batch axis of coordinates.

    Example:
        >>> from priornet.special.maps import LogMap
        >>> log, normal = LogMap(0.0, 1.0, high=5.0), Normal(torch.tensor(0.0), 1.0)
        >>> price = TransformedUnivariate(normal, log)
        >>> price.icdf(torch.tensor(0.5)), price.mean
        (tensor(1.), tensor(1.6487))
    """

    base: Univariate
    target_map: MonotoneMap | CoordinateMaps

    def __init__(self, base: Univariate, target_map: MonotoneMap | CoordinateMaps) -> None:
        self.base, self.target_map = base, target_map
        Distribution.__init__(self, base.batch_shape, base.event_shape, validate_args=False)

    @property
    def first(self) -> Tensor:
        """Return a parameter of the base, whose dtype and device count."""
        return self.base.first

    @property
    def support(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the values that y can have."""
        one = self.target_map
        if isinstance(one, MonotoneMap) and one.is_positive:
            return constraints.greater_than(one.loc)
        return constraints.real

    def expand(self, batch_shape: Shape, _instance: object = None) -> Self:
        """Expand the batch to ``batch_shape``."""
        return type(self)(self.base.expand(batch_shape), self.target_map)

    def without_last_axis(self) -> Self:
        """Drop the last batch axis, which has size 1."""
        target_map = (
            self.target_map.maps[0]
            if isinstance(self.target_map, CoordinateMaps)
            else self.target_map
        )
        return type(self)(self.base.without_last_axis(), target_map)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density; ``-inf`` outside the support."""
        t = self.target_map.forward(self.checked_value("value", value, ()))
        inside = t != -torch.inf  # nan stays
        t = torch.where(inside, t, 0.0)
        log_prob = self.base.log_prob(t) - self.target_map.log_slope(t)
        return torch.where(inside, log_prob, -torch.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Compute the probability of a smaller value."""
        t = self.target_map.forward(self.checked_value("value", value, ()))
        inside = t != -torch.inf  # nan stays
        return torch.where(inside, self.base.cdf(torch.where(inside, t, 0.0)), 0.0)

    def icdf(self, value: Tensor) -> Tensor:
        """Compute the quantile at a probability."""
        return self.target_map.inverse(self.base.icdf(value))

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw without gradient."""
        return self.target_map.inverse(self.base.sample(sample_shape, generator))

    @cached_property
    def parts(self) -> MapMoments:
        """Return the moments, ``(*batch,)``; of each component for a mixture, ``(*batch, M)``."""
        if isinstance(self.target_map, MonotoneMap):
            return _moments(self.target_map, self.base, None)
        each = [
            _moments(target_map, self.base, k) for k, target_map in enumerate(self.target_map.maps)
        ]
        dim = self.base.first.dim() - len(self.batch_shape) + 1  # of coordinates, from the end
        return MapMoments(*(torch.stack(part, -dim) for part in zip(*each, strict=True)))

    @cached_property
    def moments(self) -> MapMoments:
        """Return mean, variance, and the expectation of ln h'(t)."""
        if not isinstance(self.base, NormalMixture):
            return self.parts
        mean, variance, log_slope = self.parts
        total = variance.mean(-1) + variance_of_means(mean)
        return MapMoments(mean.mean(-1), total, log_slope.mean(-1))

    @property
    def mean(self) -> Tensor:
        """Return the mean; ``nan`` where t has none."""
        return self.moments.mean

    @property
    def variance(self) -> Tensor:
        """Return the variance; ``inf`` where that of t is."""
        return self.moments.variance

    @property
    def median(self) -> Tensor:
        """Return the median."""
        return self.icdf(torch.full(self.batch_shape, 0.5, dtype=self.dtype, device=self.device))

    def entropy(self) -> Tensor:
        r"""Compute the differential entropy, :math:`\mathcal H[t] + E[\ln h'(t)]`."""
        return self.base.entropy() + self.moments.log_slope


def _moments(target_map: MonotoneMap, base: Univariate, k: int | None) -> MapMoments:
    """Compute the moments for one map, at one coordinate of the last batch axis or at all."""

    def at(value: Tensor, n_trailing: int = 0) -> Tensor:
        return value if k is None else value.select(value.dim() - 1 - n_trailing, k)

    if isinstance(base, StudentT):
        return map_moments(target_map, at(base.loc), at(base.scale), at(base.excess))
    if isinstance(base, Normal):
        return map_moments(target_map, at(base.loc), at(base.scale))
    means, scales = base.components
    return map_moments(target_map, at(means, 1), at(scales, 1))


def variance_of_means(means: Tensor) -> Tensor:
    """Compute the variance over the last axis; differences first, which keep their digits."""
    offsets = means - means[..., :1]
    return (offsets - offsets.mean(-1, keepdim=True)).square().mean(-1)


class TransformedMultivariate(MarginalQuantiles[TransformedUnivariate]):
    """Distribution of a vector of targets, each a monotone map of a coordinate of a base.

    Args:
        base: Distribution of the vector t, with ``marginals()``.
        target_map: One map per coordinate.

    Example:
        >>> from priornet.distributions import Gaussian
        >>> from priornet.special.maps import LogMap
        >>> base = Gaussian(torch.zeros(2), variance=torch.ones(2))
        >>> maps = CoordinateMaps([LogMap(0.0, 1.0, high=5.0)] * 2)
        >>> TransformedMultivariate(base, maps).mean
        tensor([1.6487, 1.6487])
    """

    base: Any
    target_map: CoordinateMaps

    def __init__(self, base: Any, target_map: CoordinateMaps) -> None:
        if tuple(base.event_shape) != (len(target_map),):
            raise ValueError(
                f"`target_map` must be one map per coordinate, {tuple(base.event_shape)}; got "
                f"{len(target_map)}."
            )
        self.base, self.target_map = base, target_map
        Distribution.__init__(self, base.batch_shape, base.event_shape, validate_args=False)

    @property
    def first(self) -> Tensor:
        """Return a parameter of the base, whose dtype and device count."""
        return self.base.first

    def expand(self, batch_shape: Shape, _instance: object = None) -> Self:
        """Expand the batch to ``batch_shape``."""
        return type(self)(self.base.expand(batch_shape), self.target_map)

    def marginals(self) -> TransformedUnivariate:
        """Return the distribution of each coordinate by itself: batch ``(*batch, K)``."""
        return self._marginals

    @cached_property
    def _marginals(self) -> TransformedUnivariate:
        return TransformedUnivariate(self.base.marginals(), self.target_map)

    @property
    def moments(self) -> MapMoments:
        """Return the moments of each coordinate, ``(*batch, K)``."""
        return self._marginals.moments

    @property
    def mean(self) -> Tensor:
        """Return the mean."""
        return self.moments.mean

    @property
    def variance(self) -> Tensor:
        """Return the variance of each coordinate."""
        return self.moments.variance

    @property
    def covariance_matrix(self) -> Tensor:
        """Return variances on the diagonal; covariances of coordinates are not computed: nan."""
        return only_variances(self.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density; ``-inf`` outside the support."""
        t = self.target_map.forward(self.checked_value("value", value, self.event_shape))
        inside = t != -torch.inf  # nan stays
        t = torch.where(inside, t, 0.0)
        log_prob = self.base.log_prob(t) - self.target_map.log_slope(t).sum(-1)
        return torch.where(inside.all(-1), log_prob, -torch.inf)

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Draw without gradient."""
        return self.target_map.inverse(self.base.sample(sample_shape, generator))

    def entropy(self) -> Tensor:
        r"""Compute the differential entropy, :math:`\mathcal H[t] + \sum E[\ln h'(t)]`."""
        return self.base.entropy() + self.moments.log_slope.sum(-1)


def only_variances(variance: Tensor) -> Tensor:
    """Return a matrix with these variances, and ``nan`` for the covariances."""
    k_dim = variance.shape[-1]
    eye = torch.eye(k_dim, dtype=torch.bool, device=variance.device)
    return torch.where(eye, variance.unsqueeze(-1), torch.nan)
