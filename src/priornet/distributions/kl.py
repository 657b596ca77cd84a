"""Kullback-Leibler divergences, registered with ``torch.distributions.kl_divergence``."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal
from torch.distributions.kl import register_kl

from priornet.checks import broadcast_batch, check_same_kind
from priornet.distributions.base import BatchDistribution
from priornet.distributions.gaussian import Gaussian
from priornet.distributions.normal_wishart import NormalWishart
from priornet.distributions.product import ProductNormalWishart
from priornet.distributions.wishart import Wishart
from priornet.special import triangular
from priornet.special.elementwise import phi
from priornet.special.gamma import stirling_bregman

D = TypeVar("D", bound=BatchDistribution)


def _common(p: D, q: D) -> tuple[D, D]:
    """Expand both to one batch shape; refuse kinds, events or batches that do not fit."""
    check_same_kind("p", p.first, "q", q.first)
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"the two distributions must have one event shape; got {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}."
        )
    batch = broadcast_batch(p=p.batch_shape, q=q.batch_shape)
    p = p if p.batch_shape == batch else p.expand(batch)
    return p, q if q.batch_shape == batch else q.expand(batch)


def _wishart_kl(p: Wishart | NormalWishart, q: Wishart | NormalWishart) -> Tensor:
    """Compute Eq. (28): the divergence of the means, weighted by q's df, plus that of the df."""
    k_dim, half_df = p.event_shape[0], 0.5 * q.df
    from_mean = triangular.logdet_divergence(p.precision_tril, q.precision_tril)
    return half_df * from_mean + stirling_bregman(q.excess, p.excess, k_dim)


@register_kl(Wishart, Wishart)
def kl_wishart(p: Wishart, q: Wishart) -> Tensor:
    r"""Compute the KL between Wisharts, Eq. (28), arXiv:2006.11590v2.

    .. math:: \tfrac{\nu_0}{2}\left[\mathrm{tr}(P_0^{-1}P) - K - \ln|P_0^{-1}P|\right] + B_F(n_0, n)
    """
    p, q = _common(p, q)
    return _wishart_kl(p, q)


@register_kl(NormalWishart, NormalWishart)
def kl_normal_wishart(p: NormalWishart, q: NormalWishart) -> Tensor:
    r"""Compute the KL between Normal-Wisharts, Eqs. (27) and (28), arXiv:2006.11590v2.

    .. math:: \tfrac{\kappa_0}{2}(m-m_0)^\top P (m-m_0) + \tfrac K2\,\varphi(\kappa_0/\kappa)
        + KL[\mathcal W \| \mathcal W_0]

    Four terms, none negative: means, beliefs, expected precisions, degrees of freedom.
    """
    p, q = _common(p, q)
    off = triangular.sum_of_squares(triangular.transpose_matvec(p.precision_tril, p.loc - q.loc))
    normal = q.belief * off + p.event_shape[0] * phi(q.belief, p.belief)
    return 0.5 * normal + _wishart_kl(p, q)


@register_kl(ProductNormalWishart, ProductNormalWishart)
def kl_product_normal_wishart(p: ProductNormalWishart, q: ProductNormalWishart) -> Tensor:
    """Sum the KL over the coordinates of two products."""
    p, q = _common(p, q)
    return kl_normal_wishart(p.factors, q.factors).sum(-1)


@register_kl(Gaussian, Gaussian)
def kl_gaussian(p: Gaussian, q: Gaussian) -> Tensor:
    r"""Compute the KL between Gaussians.

    .. math:: \tfrac12[\mathrm{tr}(\Lambda_q\Sigma_p) - K - \ln|\Lambda_q\Sigma_p|
        + (\mu_p-\mu_q)^\top\Lambda_q(\mu_p-\mu_q)]
    """
    p, q = _common(p, q)
    tril = q.precision_tril
    off = triangular.sum_of_squares(triangular.transpose_matvec(tril, p.loc - q.loc))
    return 0.5 * (triangular.logdet_divergence(tril, p.precision_tril) + off)


def as_gaussian(distribution: Distribution) -> Gaussian:
    """Convert a torch Gaussian over vectors to a ``Gaussian``."""
    if isinstance(distribution, Gaussian):
        return distribution
    if isinstance(distribution, MultivariateNormal):
        return Gaussian(distribution.loc, scale_tril=distribution.scale_tril, validate_args=False)
    if (
        isinstance(distribution, Independent)
        and isinstance(distribution.base_dist, Normal)
        and distribution.reinterpreted_batch_ndims == 1
    ):
        base = distribution.base_dist
        scale_tril = torch.diag_embed(base.scale)
        return Gaussian(base.loc, scale_tril=scale_tril, validate_args=False)
    raise NotImplementedError(
        f"{type(distribution).__name__} is not a Gaussian over vectors; use Gaussian, "
        "MultivariateNormal, or Independent(Normal(...), 1)."
    )


def _kl_as_gaussian(p: Distribution, q: Distribution) -> Tensor:
    return kl_gaussian(as_gaussian(p), as_gaussian(q))


# Pairs that torch does not know: ours with torch's, and torch's diagonal with its full Gaussian.
for _p, _q in (
    (Gaussian, MultivariateNormal),
    (MultivariateNormal, Gaussian),
    (Gaussian, Independent),
    (Independent, Gaussian),
    (Independent, MultivariateNormal),
    (MultivariateNormal, Independent),
):
    register_kl(_p, _q)(_kl_as_gaussian)
