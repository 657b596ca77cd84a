"""The loss of each method, for tables and for images.

A loss takes a prediction, a batch and the share of the epochs done, and returns one number per
row. What a student learns of its teacher is packed by :mod:`priornet.distill.targets`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from priornet import losses
from priornet.distributions import NormalWishart
from priornet.training.batches import Batch
from priornet.training.loop import Loss

Share = TypeVar("Share", float, Tensor)


def _clipped(value: Share) -> Share:
    """Clip to [0, 1]."""
    if isinstance(value, Tensor):
        return torch.clamp(value, 0.0, 1.0)
    return min(max(value, 0.0), 1.0)


def linear_ramp(share: Share, until: float) -> Share | float:
    """Compute the factor of the out-of-domain weight: from 0 to 1 until a share, then 1.

    Example:
        >>> linear_ramp(0.1, until=0.2), linear_ramp(0.5, until=0.2)
        (0.5, 1.0)
    """
    return _clipped(share / until) if until > 0 else 1.0


def temperature(
    share: Share, start: float | Tensor, hold: float = 0.2, decay: float = 0.6
) -> Share | Tensor:
    """Compute the temperature of a distillation: ``start`` for 20 %, to 1 over 60 %, then 1.

    Paper: the monocular depth experiments, arXiv:2006.11590v2.

    Example:
        >>> temperature(0.1, 10.0), temperature(0.5, 10.0), temperature(0.9, 10.0)
        (10.0, 5.5, 1.0)
    """
    return start + (1.0 - start) * _clipped((share - hold) / decay)


def likelihood(prediction: Any, batch: Batch, _: Any = None) -> Tensor:
    """Compute the loss of a single network, and of each member of an ensemble."""
    return losses.gaussian_nll(prediction, batch.targets, batch.mask)


def members(prediction: Any, batch: Batch, _: Any = None) -> Tensor:
    """Compute the loss of the members of a shared network, which see the same rows."""
    targets = batch.targets.expand(*prediction.batch_shape, -1)
    return losses.gaussian_nll(prediction, targets, batch.mask)


def evidential(coefficient: float | Tensor) -> Loss:
    """Make the loss of Deep Evidential Regression.

    Args:
        coefficient: Weight of the penalty on evidence; one number, or one per network ``(S, 1)``.
    """

    def loss(nw: Any, batch: Batch, _: Any = None) -> Tensor:
        return losses.evidential(nw, batch.targets, coefficient, batch.mask)

    return loss


def prior_network(
    prior: NormalWishart,
    beta: float | Tensor,
    gamma: float | Tensor,
    *,
    ramp: float = 0.0,
    warm_up: float = 0.0,
    pooled: NormalWishart | None = None,
    divergence: Callable[[Any, Tensor, NormalWishart, Tensor], Tensor] = losses.reverse_kl,
    per_target: bool = True,
) -> Loss:
    r"""Make the loss of a Prior Network: to the posterior inside, to the prior outside, Eq. (8).

    The last column of a batch's targets is 1 for rows with a target and 0 for out-of-domain rows.

    Args:
        prior: One for all networks, or one per network with batch shape ``(S, 1)``.
        beta: How often each target counts, :math:`\hat\beta`; a number, or one per network.
        gamma: Weight of out-of-domain rows; a number, or one per network.
        ramp: Share of the epochs over which ``gamma`` rises from zero.
        warm_up: Share of the epochs in which no row learns its own target, but ``pooled``.
        pooled: Posterior of all training targets together, of no batch shape; for ``warm_up``.
        divergence: From the posterior, given prediction, target, prior and count of the target; the
            reverse KL, Eq. (11).
        per_target: Divide by ``beta``, so that an in-domain row weighs as much as under the
            likelihood.
    """

    def loss(nw: Any, batch: Batch, share: Any) -> Tensor:
        y, has_target = batch.targets[..., :-1], batch.targets[..., -1]
        goal, count = prior, beta * has_target
        is_warming = pooled is not None and share < warm_up
        if pooled is not None and is_warming is not False:  # True, or a tensor of a CUDA graph
            waiting = (has_target > 0) & is_warming
            goal, count = _either(waiting, pooled, prior), count * ~waiting
        weight = gamma * linear_ramp(share, ramp) if ramp > 0 else gamma
        per_row = divergence(nw, y, goal, count) * (has_target + weight * (1 - has_target))
        return per_row / beta if per_target else per_row

    return loss


def _either(is_first: Tensor, first: NormalWishart, second: NormalWishart) -> NormalWishart:
    """Choose per element between two Normal-Wisharts, the first of no batch shape."""
    chosen: dict[str, Tensor] = {}
    for name in ("loc", "precision_tril", "belief", "excess"):
        a, b = getattr(first, name), getattr(second, name)
        chosen[name] = torch.where(is_first[(..., *[None] * a.dim())], a, b)
    return NormalWishart.from_excess(**chosen, validate_args=False)


class Answers(Protocol):
    """A teacher's answers, packed into columns: see :class:`priornet.distill.Targets`."""

    def loss(self, prediction: Any, columns: Tensor, temperature: Any = 1.0) -> Tensor:
        """Compute the loss per element of a prediction."""
        ...


def student(answers: Answers, start: float | Tensor = 1.0) -> Loss:
    """Make the loss of a student: the distance to its teacher's answers.

    Args:
        answers: Unpacks the columns of a batch's targets.
        start: Temperature at the start, annealed to 1; a number, or one per network ``(S, 1)``.
    """
    highest = float(start.max()) if isinstance(start, Tensor) else start

    def loss(prediction: Any, batch: Batch, share: Any) -> Tensor:
        is_over = isinstance(share, float) and temperature(share, highest) == 1
        now = 1.0 if is_over else temperature(share, start)
        return answers.loss(prediction, batch.targets, now)

    return loss
