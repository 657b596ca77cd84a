r"""A belief about a target :math:`y = h(t)` from a belief about t: monotone maps of any belief.

Information does not change under a monotone map, so mutual information and expected pairwise KL are
those of t. Variances follow the law of total variance in units of y,
:math:`V[y] = E[V[y \mid \mu, \Lambda]] + V[E[y \mid \mu, \Lambda]]`: data plus knowledge.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import torch
from torch import Size, Tensor

from priornet.distributions.base import Decomposition, affine_map
from priornet.distributions.ensemble import GaussianEnsemble
from priornet.distributions.gaussian import Gaussian
from priornet.distributions.normal_wishart import NormalWishart
from priornet.distributions.product import ProductNormalWishart
from priornet.distributions.transformed import (
    TransformedMultivariate,
    only_variances,
    variance_of_means,
)
from priornet.special.map_shares import knowledge_share
from priornet.special.maps import CoordinateMaps

AnyBelief = NormalWishart | ProductNormalWishart | GaussianEnsemble | Gaussian


class TransformedBelief:
    """A belief about y from one about t.

    Args:
        base: A belief about t: a Normal-Wishart, a product of them, an ensemble or a Gaussian.
        target_map: One map per coordinate.

    Example:
        >>> from priornet.special.maps import LogMap
        >>> base = GaussianEnsemble(torch.tensor([[0.0], [1.0]]), torch.ones(2, 1))
        >>> belief = TransformedBelief(base, CoordinateMaps([LogMap(0.0, 1.0, high=9.0)]))
        >>> belief.knowledge_covariance()
        tensor([[2.0064]])
    """

    def __init__(self, base: AnyBelief, target_map: CoordinateMaps) -> None:
        if base.event_shape != Size([len(target_map)]):
            raise ValueError(
                f"`target_map` must be one map per coordinate, {tuple(base.event_shape)}; got "
                f"{len(target_map)}."
            )
        self.base, self.target_map = base, target_map

    def __repr__(self) -> str:
        kinds = ", ".join(one.kind for one in self.target_map.maps)
        return f"TransformedBelief({self.base!r}, {kinds})"

    @property
    def batch_shape(self) -> Size:
        """Return the batch shape."""
        return self.base.batch_shape

    @property
    def event_shape(self) -> Size:
        """Return the shape of the target, ``(K,)``."""
        return self.base.event_shape

    @property
    def k_dim(self) -> int:
        """Return the target dimension K."""
        return self.base.event_shape[0]

    def expand(self, batch_shape: Any) -> Self:
        """Expand the batch to ``batch_shape``."""
        return type(self)(self.base.expand(batch_shape), self.target_map)

    def predictive(self) -> TransformedMultivariate:
        """Return the distribution of the target."""
        return self._predictive

    @cached_property
    def _predictive(self) -> TransformedMultivariate:
        return TransformedMultivariate(self.base.predictive(), self.target_map)

    def expected_log_prob(self, y: Tensor) -> Tensor:
        """Compute the expected log-likelihood of a target."""
        t = self.target_map.forward(y)
        inside = t > -torch.inf
        t = torch.where(inside, t, 0.0)
        found = self.base.expected_log_prob(t) - self.target_map.log_slope(t).sum(-1)
        return torch.where(inside.all(-1), found, -torch.inf)

    # -- measures of uncertainty: entropies -------------------------------------------------------

    @property
    def _log_slope(self) -> Tensor:
        """Return E[ln h'(t)], by which entropies of y exceed those of t."""
        return self._predictive.moments.log_slope.sum(-1)

    def predictive_entropy(self) -> Tensor:
        """Compute total uncertainty as an entropy."""
        return self.base.predictive_entropy() + self._log_slope

    def expected_entropy(self) -> Tensor:
        """Compute data uncertainty as an entropy."""
        return self.base.expected_entropy() + self._log_slope

    def mutual_information(self) -> Tensor:
        """Compute knowledge uncertainty as an entropy: that of t."""
        return self.base.mutual_information()

    def expected_pairwise_kl(self) -> Tensor:
        """Compute knowledge uncertainty as an expected KL: that of t."""
        return self.base.expected_pairwise_kl()

    # -- measures of uncertainty: variances -------------------------------------------------------

    @cached_property
    def variances(self) -> Decomposition:
        """Return total, data and knowledge variance of each coordinate, ``(*batch, K)``."""
        marginals, base = self._predictive.marginals(), self.base
        if isinstance(base, GaussianEnsemble):
            data = marginals.parts.variance.mean(-1)
            knowledge = variance_of_means(marginals.parts.mean)
        else:
            share = self._knowledge_share()
            total = marginals.variance
            # An infinite variance is infinite in each part, and a share of 0 is none at all.
            data = total * (1 - share)
            knowledge = torch.where(share == 0, 0.0, total * share)
        return Decomposition(data + knowledge, data, knowledge)

    def _knowledge_share(self) -> Tensor:
        """Compute the share of knowledge in the variance of each coordinate, ``(*batch, K)``."""
        t: Any = self._predictive.marginals().base
        base = self.base
        if isinstance(base, (Gaussian, GaussianEnsemble)):
            return torch.zeros_like(t.loc)
        belief = base.belief.unsqueeze(-1) if isinstance(base, NormalWishart) else base.belief
        given = torch.broadcast_tensors(t.loc, t.scale, t.excess, belief)
        columns = [
            knowledge_share(target_map, *(part[..., k] for part in given))
            for k, target_map in enumerate(self.target_map.maps)
        ]
        return torch.stack(columns, -1)

    def data_covariance(self) -> Tensor:
        """Compute the expected variances; covariances of coordinates are not computed: nan."""
        return only_variances(self.variances.data)

    def knowledge_covariance(self) -> Tensor:
        """Compute the variances of the expectation; covariances are ``nan``."""
        return only_variances(self.variances.knowledge)

    def total_covariance(self) -> Tensor:
        """Compute the variances of the target, data plus knowledge; covariances are ``nan``."""
        return only_variances(self.variances.total)

    def covariance_logdet(self) -> Decomposition:
        """Compute log-determinants of the covariances: ``nan`` for several coordinates."""
        logs = (torch.log(part).sum(-1) for part in self.variances)
        return Decomposition(*(log if self.k_dim == 1 else log * torch.nan for log in logs))

    def covariance_trace(self) -> Decomposition:
        """Compute traces of the covariances: summed variances."""
        return Decomposition(*(part.sum(-1) for part in self.variances))

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> Self:
        """Return the belief about ``shift + scale * y`` per coordinate: the target in other units.

        Args:
            shift: A number, or one per coordinate ``(K,)``.
            scale: Positive, likewise.
        """
        shift, scale, _ = affine_map(shift, scale, self.base.predictive().mean, self.batch_shape)
        if shift.dim() > 1 or scale.dim() > 1:
            raise ValueError(
                "`shift` and `scale` of a transformed belief must be (K,), the same for all rows."
            )
        units = zip(self.target_map.maps, shift.tolist(), scale.tolist(), strict=True)
        maps = [target_map.affine(a, b) for target_map, a, b in units]
        return type(self)(self.base, CoordinateMaps(maps))
