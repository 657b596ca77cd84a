"""Losses whose value and gradient come out of one pass, for one-dimensional targets.

Eager autograd issues some hundred operations per loss: on images each is a trip to memory, on small
batches each costs more than its arithmetic. A *kernel* writes loss and gradient together instead.
Under ``torch.compile``, ``torch.func`` and forward mode, for second derivatives, and where a target
or a prior wants a gradient too, the formula itself is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from priornet.checks import values_visible
from priornet.distributions import Gaussian, NormalWishart
from priornet.distributions.factors import Factor
from priornet.special.elementwise import cache_pieces

Constants = tuple[Any, ...]
Kernel = Callable[[Sequence[Tensor], Sequence[Any], Tensor, Sequence[Tensor]], None]
"""Writes the loss and its gradients: (parameters, constants, loss, gradients) -> None."""
Prediction = TypeVar("Prediction", NormalWishart, Gaussian)

_ALIVE = 4  # a kernel keeps more tensors alive than one operation does: its pieces are smaller


class _ClosedForm(torch.autograd.Function):
    """Loss per element; see :func:`closed_form`."""

    @staticmethod
    def forward(
        ctx: Any,
        kernel: Kernel,
        formula: Callable[[Any], Tensor],
        prediction: NormalWishart | Gaussian,
        tensors: Constants,
        numbers: Constants,
        *parameters: Tensor,
    ) -> Tensor:
        loss, ctx.gradients = _evaluate(kernel, parameters, tensors, numbers)
        ctx.save_for_backward(*parameters, *tensors)
        ctx.kernel, ctx.formula, ctx.count = kernel, formula, len(parameters)
        ctx.prediction, ctx.numbers = prediction, numbers
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad[5:]
        parameters = saved[: ctx.count]
        if torch.is_grad_enabled():  # a second derivative is wanted: differentiate the formula
            wanted = [p for p, n in zip(parameters, needed, strict=True) if n]
            loss = ctx.formula(_rebuilt(ctx.prediction, *parameters))
            found = iter(torch.autograd.grad(loss, wanted, grad, create_graph=True))
            return *[None] * 5, *(next(found) if n else None for n in needed)
        # The gradients are scaled where they lie and given away; a retained graph asks again.
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            _, gradients = _evaluate(ctx.kernel, parameters, saved[ctx.count :], ctx.numbers)
        scaled = (g if n else None for g, n in zip(gradients.mul_(grad), needed, strict=True))
        return *[None] * 5, *scaled


def columns(prediction: NormalWishart | Gaussian) -> tuple[Tensor, ...]:
    """Return loc, root of the (mean) precision, belief and excess, K = 1: views ``(*batch,)``."""
    first = prediction.loc.squeeze(-1), prediction.precision_tril.squeeze((-2, -1))
    if isinstance(prediction, Gaussian):
        return first
    return *first, prediction.belief, prediction.excess


def _rebuilt(
    like: NormalWishart | Gaussian, loc: Tensor, root: Tensor, *others: Tensor
) -> NormalWishart | Gaussian:
    """Build a prediction of the same kind from its columns."""
    loc, tril = loc.unsqueeze(-1), root[..., None, None]
    if isinstance(like, Gaussian):
        return Gaussian.from_factor(loc, Factor(tril, of_precision=True))
    belief, excess = others
    return NormalWishart.unchecked(loc=loc, precision_tril=tril, belief=belief, excess=excess)


def _evaluate(
    kernel: Kernel, parameters: Sequence[Tensor], tensors: Constants, numbers: Constants
) -> tuple[Tensor, Tensor]:
    """Compute a loss and its gradients ``(n, *batch)``, one cache-sized piece after the other."""
    first = parameters[0]
    loss = torch.empty_like(first, memory_format=torch.contiguous_format)
    gradients = loss.new_empty((len(parameters), *loss.shape))
    pieces = list(cache_pieces(first.numel(), _ALIVE, first.device))
    if len(pieces) == 1:
        kernel(parameters, (*tensors, *numbers), loss, gradients.unbind())
        return loss, gradients
    flat = [p.reshape(-1) for p in parameters]
    rows = [_flat(c, first) for c in tensors]
    flat_loss, flat_gradients = loss.reshape(-1), gradients.flatten(1)
    for at in pieces:
        kernel(
            [p[at] for p in flat],
            [*(r if r.dim() == 0 else r[..., at] for r in rows), *numbers],
            flat_loss[at],
            flat_gradients[:, at].unbind(),
        )
    return loss, gradients


def _flat(constant: Tensor, like: Tensor) -> Tensor:
    """Reshape a constant ``(*lead, *batch)`` to ``(*lead, n)``; one number stays one."""
    lead = constant.shape[: max(constant.dim() - like.dim(), 0)]
    if constant.numel() == 1 and not lead:
        return constant.reshape(())
    return constant.expand(lead + like.shape).reshape((*lead, -1))


def closed_form(
    kernel: Kernel,
    prediction: Prediction,
    constants: Constants,
    formula: Callable[[Prediction], Tensor],
) -> Tensor:
    """Compute a loss per element by a kernel where possible, else by its formula.

    Args:
        kernel: Writes value and gradients, see :data:`Kernel`.
        prediction: What the loss judges, K = 1; its parameters may want a gradient.
        constants: Tensors that broadcast with the batch, after leading axes of their own; then at
            most one number.
        formula: The same loss as a differentiable function of the prediction.
    """
    parameters, n = columns(prediction), len(constants) - (not isinstance(constants[-1], Tensor))
    tensors, numbers = constants[:n], constants[n:]
    if not values_visible(*parameters, *tensors) or (
        torch.is_grad_enabled() and any(c.requires_grad for c in tensors)
    ):
        return formula(prediction)
    return _ClosedForm.apply(kernel, formula, prediction, tensors, numbers, *parameters)  # pyright: ignore[reportReturnType] (untyped in torch)


def kernel_gradient(loss: Tensor, prediction: Distribution) -> Tensor | None:
    """Give away a loss's gradient in the parameters of its prediction, once, if a kernel wrote it.

    Returns:
        A column per parameter of the kernel, ``(*batch, n)``; None where anything has been done to
        the loss or to the prediction that only autograd knows of.
    """
    node: Any = loss.grad_fn
    if getattr(node, "prediction", None) is not prediction or node.gradients is None:
        return None
    gradients, node.gradients = node.gradients, None
    return gradients.movedim(0, -1)


class Leaf(NamedTuple):
    """A prediction in training, with the parameters it is made of.

    If a head knows the derivatives of its maps, the graph of a loss begins behind them, and a loss
    from a kernel needs no graph at all: on small batches autograd's engine takes longer than the
    arithmetic.
    """

    prediction: Any
    parameters: Tensor
    """``(*batch, n)``, a leaf of the graph: the outputs, or the parameters made from them."""
    slope: Tensor | None = None
    """Derivative of all parameters but the first, the mean; None if they are the outputs."""

    def gradient(self, loss: Tensor, weight: Tensor) -> Tensor:
        """Compute the gradient in the outputs, ``(*batch, n)``, of a loss that is weighted."""
        known = None if self.slope is None else kernel_gradient(loss, self.prediction)
        if known is not None:
            gradient = known.mul_(weight.unsqueeze(-1))
        else:
            torch.autograd.backward(loss, weight.expand_as(loss))
            gradient = self.parameters.grad
            assert gradient is not None
        if self.slope is not None:
            gradient[..., 1:].mul_(self.slope)
        return gradient
