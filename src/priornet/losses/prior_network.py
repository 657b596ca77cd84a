"""Training a prior network from targets: KL towards the tempered posterior, and the OOD sum."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.distributions import kl_divergence

from priornet.checks import (
    broadcast_batch,
    check_mask,
    check_not_negative,
    check_same_kind,
    check_weight,
    masked,
    prepare_target,
)
from priornet.distributions import NormalWishart, ProductNormalWishart
from priornet.losses import _kernels
from priornet.losses._closed_form import closed_form, columns

Explicit = NormalWishart | ProductNormalWishart


def _check_prior(nw: Explicit, prior: Explicit) -> None:
    """Check that the prior broadcasts to the prediction's batch, never the other way round."""
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
    batch = prior.batch_shape
    if batch and broadcast_batch(prediction=nw.batch_shape, prior=batch) != nw.batch_shape:
        raise ValueError(
            f"`prior` must have no batch shape, or the prediction's {tuple(nw.batch_shape)}; got "
            f"batch {tuple(prior.batch_shape)}."
        )
    check_same_kind("prior", prior.belief, "the prediction", nw.belief)


def divergence(nw: NormalWishart, prior: NormalWishart) -> Tensor:
    """Compute the KL from one belief to another, Eqs. (27) and (28)."""
    if nw.loc.shape[-1] != 1 or prior.loc.shape != nw.loc.shape:
        return kl_divergence(nw, prior)
    check_same_kind("teacher", prior.belief, "the prediction", nw.belief)
    return _reverse_kl(nw, prior, None, 0.0)


def _reverse_kl(nw: Explicit, prior: Explicit, y: Tensor | None, beta: Tensor | float) -> Tensor:
    """Compute Eq. (11), or the KL alone without a target; in closed form where possible."""

    def formula(nw: Explicit) -> Tensor:
        to_prior = kl_divergence(nw, prior)
        return to_prior if y is None else to_prior - beta * nw.expected_log_prob(y)

    if not isinstance(nw, NormalWishart) or not isinstance(prior, NormalWishart):
        return formula(nw)
    if nw.loc.shape[-1] != 1:
        return formula(nw)
    target = () if y is None else (y.squeeze(-1), beta)
    return closed_form(_kernels.reverse_kl, nw, (*columns(prior), *target), formula)


def reverse_kl(
    nw: Explicit,
    y: Tensor | None,
    prior: Explicit,
    beta: Tensor | float,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Compute the reverse KL to a prior's tempered posterior, Eq. (11), arXiv:2006.11590v2.

    .. math:: \beta\,E_{q}[-\ln p(y\mid\mu,\Lambda)] + KL[q \| p_0]
        \;=\; KL[q \| p_0(\cdot\mid y,\beta)] - Z

    Z does not depend on the network and is left out. ``beta`` = 0 gives the out-of-domain term.

    Args:
        nw: Prediction q with batch shape ``(*batch,)``.
        y: Targets, shape ``(*batch, K)``; may be None with ``beta`` = 0.
        prior: Prior :math:`p_0`, of a batch shape that broadcasts to the prediction's; mostly none.
        beta: How many times each target counts, :math:`\hat\beta \ge 0`. A number, or a tensor that
            broadcasts with the batch: one per network of a stack.
        mask: True where the target counts, shape ``(*batch,)``.

    Returns:
        Loss per element, shape ``(*batch,)``.

    Example:
        >>> prior = NormalWishart.from_excess(torch.zeros(1), torch.eye(1), 0.01, 0.01)
        >>> reverse_kl(prior.expand((2,)), None, prior, beta=0.0)
        tensor([0., 0.])
    """
    _check_prior(nw, prior)
    check_weight("beta", beta, nw.batch_shape, nw.loc)
    if not isinstance(beta, Tensor) and beta == 0:
        check_mask(mask, nw.batch_shape)
        y = None
    elif y is None:
        raise ValueError("`y` is needed unless `beta` is 0 (out-of-domain inputs have no target).")
    else:
        y = prepare_target(nw, nw.loc, y, mask)
    return masked(_reverse_kl(nw, prior, y, beta), mask)


def forward_kl(
    nw: Explicit, y: Tensor, prior: Explicit, beta: float, mask: Tensor | None = None
) -> Tensor:
    r"""Compute the forward KL from the tempered posterior, :math:`KL[p_0(\cdot\mid y,\beta) \| q]`.

    Kept to show why the paper reverses it: averaged over noisy targets it asks for a belief as wide
    as all single-target posteriors, and data uncertainty leaks into knowledge uncertainty.
    Arguments as in :func:`reverse_kl`.
    """
    check_not_negative("beta", beta)
    _check_prior(nw, prior)
    y = prepare_target(nw, nw.loc, y, mask)
    target = prior.expand(nw.batch_shape).posterior(y, beta)
    return masked(kl_divergence(target, nw), mask)


class MultiTaskLoss(NamedTuple):
    """A total to minimise and its detached parts, for logging."""

    total: Tensor
    terms: dict[str, Tensor]


def multi_task(in_domain: Tensor, out_domain: Tensor, gamma: Tensor | float) -> MultiTaskLoss:
    r"""Add the mean losses in domain and, weighted, out of domain, Eq. (8).

    .. math:: E[\mathcal L_{in}] + \gamma\,E[\mathcal L_{out}]

    Args:
        in_domain: Losses on training inputs, any shape.
        out_domain: Losses on out-of-domain inputs, any shape.
        gamma: Weight of the out-of-domain part: a number, or a tensor that broadcasts with
            ``out_domain``, one per network of a stack.

    Example:
        >>> multi_task(torch.tensor([1.0, 3.0]), torch.tensor([4.0]), gamma=0.5).total
        tensor(4.)
    """
    check_weight("gamma", gamma, out_domain.shape, out_domain)
    inside, outside = in_domain.mean(), out_domain.mean()
    terms = {"in_domain": inside.detach(), "out_domain": outside.detach()}
    weighted = (gamma * out_domain).mean() if isinstance(gamma, Tensor) else gamma * outside
    return MultiTaskLoss(inside + weighted, terms)
