"""EnD2 for one-dimensional targets, with its gradient in closed form.

Eager autograd would write some sixty image-sized tensors for one loss; here value and gradient come
out of one pass over cache-sized pieces. Used where it pays: eager mode, K = 1 (every depth map).
Under ``torch.compile`` and ``torch.func`` the composed formula is used, which they fuse or batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from priornet.special.gamma import scalar_gaps
from priornet.special.phi import phi_value
from priornet.special.pieces import cache_pieces

__all__ = ["scalar_endd"]


class _ScalarEndd(torch.autograd.Function):
    """Loss per element of flat parameters and averages; see :func:`scalar_endd`."""

    @staticmethod
    def forward(
        ctx: Any,
        composed: Callable[..., Tensor],
        averages: tuple[Tensor, ...],
        *parameters: Tensor,
    ) -> Tensor:
        loss = torch.empty_like(parameters[0])
        grads = [torch.empty_like(loss) for _ in parameters]
        for at in cache_pieces(len(loss), 1, loss.device):
            _one_piece(
                [p[at] for p in parameters],
                [a[at] for a in averages],
                loss[at],
                [g[at] for g in grads],
            )
        ctx.save_for_backward(*grads, *parameters, *averages)
        ctx.composed = composed
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: differentiate the formula
            wanted = [
                p for p, needed in zip(saved[4:8], ctx.needs_input_grad[2:], strict=True) if needed
            ]
            found = iter(
                torch.autograd.grad(ctx.composed(*saved[4:]), wanted, grad, create_graph=True)
            )
            grads = (next(found) if needed else None for needed in ctx.needs_input_grad[2:])
            return None, None, *grads
        return None, None, *(grad * g for g in saved[:4])


def _one_piece(
    parameters: list[Tensor], averages: list[Tensor], loss: Tensor, grads: list[Tensor]
) -> None:
    """Write the loss, and its gradient in the four parameters, for one piece."""
    loc, tril, belief, excess = parameters
    anchor, shift, mean_tril, spread, gap = averages
    df = excess + 2
    digamma, stirling = scalar_gaps(excess)

    mean_precision = mean_tril * mean_tril
    to_teacher = (anchor - loc).add_(shift)
    pull = mean_precision * to_teacher
    square = torch.addcmul(spread, pull, to_teacher)
    torch.mul(pull, belief, out=grads[0]).neg_()

    # t - 1 - ln t at t = mean precision / P = (1 + x)^2; slope -2 (t - 1) / root P in root P.
    x = (mean_tril - tril).div_(tril)
    from_mean = phi_value(x, mean_tril / tril).mul_(2).addcmul_(x, x).add_(gap)
    torch.mul(x, x + 2, out=grads[1]).mul_(df).div_(tril).neg_()

    inverse_belief = belief.reciprocal()
    torch.sub(square, inverse_belief, out=grads[2]).mul_(0.5)
    torch.add(from_mean, digamma, out=grads[3]).mul_(0.5)

    # 1/2 [kappa (S + off) + nu (phi + gap) + ln(mean precision / kappa) - gap + ln 2 pi] - R
    total = square.mul_(belief).addcmul_(df, from_mean)
    total.add_(inverse_belief.mul_(mean_precision).log_()).sub_(gap)
    torch.sub(total.mul_(0.5), stirling, out=loss).add_(0.5 * math.log(2 * math.pi))


def scalar_endd(
    composed: Callable[..., Tensor], parameters: tuple[Tensor, ...], averages: tuple[Tensor, ...]
) -> Tensor:
    """EnD2 loss of K = 1 parameters, all flat and of one length.

    Args:
        composed: The same loss as a differentiable formula, for second derivatives.
        parameters: Mean, root of the expected precision, belief and excess of the student.
        averages: Anchor, shift, root of the mean precision, spread and gap of the teacher.
    """
    return _ScalarEndd.apply(composed, averages, *parameters)
