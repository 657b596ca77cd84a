"""Training a prior network from targets: KL towards the tempered posterior, and the OOD sum."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.distributions import kl_divergence

from priornet.checks import broadcast_batch, check_mask, check_not_negative
from priornet.distributions import NormalWishart, ProductNormalWishart
from priornet.losses.reduction import masked, prepare_target

__all__ = ["MultiTaskLoss", "forward_kl", "multi_task", "reverse_kl"]

Explicit = NormalWishart | ProductNormalWishart


def _prior_for(nw: Explicit, prior: Explicit) -> Explicit:
    """The prior expanded to the prediction's batch; never the other way round."""
    if type(nw) is not type(prior):
        raise TypeError(
            f"`prior` must be a {type(nw).__name__}, like the prediction; got "
            f"{type(prior).__name__}."
        )
    if prior.event_shape != nw.event_shape:
        raise ValueError(
            f"`prior` must have the prediction's event shape {tuple(nw.event_shape)}; got "
            f"{tuple(prior.event_shape)}."
        )
    common = broadcast_batch(prediction=nw.batch_shape, prior=prior.batch_shape)
    if common != nw.batch_shape:
        raise ValueError(
            f"`prior` must have no batch shape, or the prediction's {tuple(nw.batch_shape)}; got "
            f"batch {tuple(prior.batch_shape)}."
        )
    return prior.expand(nw.batch_shape)


def reverse_kl(
    nw: Explicit,
    y: Tensor | None,
    prior: Explicit,
    beta: float,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Reverse KL to the tempered posterior of a prior, Eq. (11), arXiv:2006.11590v2.

    .. math:: \beta\,E_{q}[-\ln p(y\mid\mu,\Lambda)] + KL[q \| p_0]
        \;=\; KL[q \| p_0(\cdot\mid y,\beta)] - Z

    Z does not depend on the network and is left out. With ``beta`` = 0 this is the out-of-domain
    term: the prediction returns to the prior, and ``y`` may be None.

    Args:
        nw: Prediction q with batch shape ``(*batch,)``.
        y: Targets, shape ``(*batch, K)``; None only with ``beta`` = 0.
        prior: Prior :math:`p_0`, usually without batch shape.
        beta: How many times each target counts, :math:`\hat\beta \ge 0`.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``.

    Example:
        >>> prior = NormalWishart.from_excess(torch.zeros(1), torch.eye(1), 0.01, 0.01)
        >>> reverse_kl(prior.expand((2,)), None, prior, beta=0.0)
        tensor([0., 0.])
    """
    check_not_negative("beta", beta)
    to_prior = kl_divergence(nw, _prior_for(nw, prior))
    if beta == 0:
        if mask is not None:
            check_mask(mask, nw.batch_shape)
        return masked(to_prior, mask)
    if y is None:
        raise ValueError("`y` is needed unless `beta` is 0 (out-of-domain inputs have no target).")
    y = prepare_target(nw, nw.loc, y, mask)
    return masked(to_prior - beta * nw.expected_log_prob(y), mask)


def forward_kl(
    nw: Explicit, y: Tensor, prior: Explicit, beta: float, mask: Tensor | None = None
) -> Tensor:
    r"""Forward KL from the tempered posterior, :math:`KL[p_0(\cdot\mid y,\beta) \| q]`.

    Kept for the comparison that shows why the paper reverses it: averaged over noisy targets this
    one asks for a belief wide enough to cover every single-target posterior, so that data
    uncertainty leaks into knowledge uncertainty. Arguments as in :func:`reverse_kl`.
    """
    check_not_negative("beta", beta)
    y = prepare_target(nw, nw.loc, y, mask)
    target = _prior_for(nw, prior).posterior(y, beta)
    return masked(kl_divergence(target, nw), mask)


class MultiTaskLoss(NamedTuple):
    """A total to minimise and its detached parts, for logging."""

    total: Tensor
    terms: dict[str, Tensor]


def multi_task(in_domain: Tensor, out_domain: Tensor, gamma: float) -> MultiTaskLoss:
    r"""Weighted sum of the mean in-domain and out-of-domain losses, Eq. (8).

    .. math:: E[\mathcal L_{in}] + \gamma\,E[\mathcal L_{out}]

    Args:
        in_domain: Losses on training inputs, any shape.
        out_domain: Losses on out-of-domain inputs, any shape.
        gamma: Weight of the out-of-domain part.

    Example:
        >>> multi_task(torch.tensor([1.0, 3.0]), torch.tensor([4.0]), gamma=0.5).total
        tensor(4.)
    """
    check_not_negative("gamma", gamma)
    inside, outside = in_domain.mean(), out_domain.mean()
    terms = {"in_domain": inside.detach(), "out_domain": outside.detach()}
    return MultiTaskLoss(inside + gamma * outside, terms)
