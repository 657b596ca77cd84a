"""Elementwise functions whose derivatives are known better than autograd would find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["elementwise"]


def elementwise(
    value: Callable[..., Tensor], *slopes: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """A differentiable function from its value and its partial derivatives.

    The slopes are called as ordinary differentiable functions, so any order of derivative,
    ``vmap``, forward mode and ``torch.compile`` follow.

    Args:
        value: Function of tensors of one shape, followed by plain numbers.
        slopes: One per tensor: its partial derivative, a function of the same arguments.
    """
    n_tensors = len(slopes)

    class Reverse(torch.autograd.Function):
        generate_vmap_rule = True
        forward = staticmethod(value)  # itself: the compiler goes by its signature

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.save_for_backward(*inputs[:n_tensors])
            ctx.numbers = inputs[n_tensors:]

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            saved, needed = (*ctx.saved_tensors, *ctx.numbers), ctx.needs_input_grad
            grads = (grad * s(*saved) if n else None for s, n in zip(slopes, needed, strict=False))
            return *grads, *(None for _ in ctx.numbers)

    class Forward(Reverse):
        """The same with forward mode, which the compiler does not trace."""

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            Reverse.setup_context(ctx, inputs, output)
            ctx.save_for_forward(*inputs[:n_tensors])

        @staticmethod
        def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
            saved = (*ctx.saved_tensors, *ctx.numbers)
            parts = [t * s(*saved) for s, t in zip(slopes, tangents, strict=False) if t is not None]
            return torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]

    def function(*inputs: Any) -> Tensor:
        kind = Reverse if torch.compiler.is_compiling() else Forward
        return kind.apply(*inputs)

    return function
