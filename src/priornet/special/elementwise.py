"""Stable elementwise functions, each with derivatives that do not cancel."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Tensor]


def elementwise(*slopes: Function) -> Callable[[Function], Function]:
    """Make a function differentiable, to any order and in any mode, by its partial derivatives.

    Args:
        slopes: One per tensor that the function takes: its partial derivative. All of them take the
            arguments of the function: tensors of one shape, then plain numbers.
    """

    def differentiable(value: Function) -> Function:
        reverse, forward = _autograd_functions(value, slopes)
        signature = inspect.signature(value)

        @functools.wraps(value)
        def function(*inputs: Any, **named: Any) -> Tensor:
            if named:  # autograd's functions know places only
                inputs = signature.bind(*inputs, **named).args
            return (reverse if torch.compiler.is_compiling() else forward).apply(*inputs)

        return function

    return differentiable


def _autograd_functions(value: Function, slopes: tuple[Function, ...]) -> tuple[Any, Any]:
    """Build the function with its slopes: for the compiler, and for eager mode."""
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

    return Reverse, Forward


def horner(z: Tensor, coefficients: tuple[float, ...], terms: int | None = None) -> Tensor:
    """Evaluate c_1 + c_2 z + c_3 z^2 + ..., over the first ``terms`` coefficients or all."""
    *first, last = coefficients[:terms]
    total = torch.full_like(z, last)
    for c in reversed(first):
        total = total * z + c
    return total


def phi_value(delta: Tensor, ratio: Tensor) -> Tensor:
    """Compute delta - ln(ratio), where ratio = 1 + delta, without cancellation.

    No derivative of its own: for use inside closed-form backwards.
    """
    # Near 0: with s = delta / (2 + delta), log1p(delta) = 2 artanh(s) and delta - 2s = delta s.
    near = delta.clamp(-2 / 5, 2 / 3)
    s = near / (near + 2)
    z = s * s
    # The rest of both, exactly 0 while nothing was clamped. No `where`: it would cost
    # more than everything else here.
    rest = torch.log(ratio / ratio.clamp(3 / 5, 5 / 3))
    return torch.addcmul(delta - near, s, _minus_artanh(near, z)) - rest


def _minus_artanh(near: Tensor, z: Tensor) -> Tensor:
    """Compute near - 2 z (c_0 + c_1 z + ...), the series of (artanh s - s) / s^3 in z = s^2."""
    if z.dtype == torch.float32:
        c0, c1, c2, c3 = 0.333333321, 0.20000622, 0.142365723, 0.123379536  # minimax, |s| < 1/4
        square = z * z
        total = torch.add(near, z, alpha=-2 * c0).add_(square, alpha=-2 * c1)
        return total.addcmul_(square, torch.add(z, square, alpha=c3 / c2), value=-2 * c2)
    total, power = near, z
    for k in range(3, 29, 2):
        total = torch.add(total, power, alpha=-2 / k)
        power = power * z
    return total


@elementwise(lambda a, b: (a - b) / b / a, lambda a, b: (b - a) / b / b)
def phi(a: Tensor, b: Tensor) -> Tensor:
    r"""Compute the kernel :math:`\varphi(t) = t - 1 - \ln t \ge 0` at :math:`t = a/b`.

    Exact to rounding also where a and b nearly agree. Both are positive and of the same shape.
    """
    return phi_value((a - b) / b, a / b)


def plain_phi(a: Tensor, b: Tensor) -> Tensor:
    """Compute the kernel straight from its definition: relative error of eps over t - 1."""
    ratio = a / b
    return (ratio - 1) - torch.log(ratio)


def _tail_slope(square: Tensor, df: Tensor, k_dim: int) -> Tensor:
    """Compute the slope in df, of order 1/df^2; the product rule would leave two terms of 1/df."""
    share = square / (df + square)
    return 0.5 * (phi_value(-share, df / (df + square)) - k_dim * share / df)


@elementwise(lambda q, df, k: 0.5 * (df + k) / (df + q), _tail_slope)
def log_tail(square: Tensor, df: Tensor, k_dim: int) -> Tensor:
    r"""Compute the tail of a Student-T, :math:`\frac{df + K}{2} \ln(1 + q/df)`, both of one shape.

    Its slope in df is :math:`\frac12[\varphi(df/(df+q)) - K q/(df(df+q))]`.
    """
    return 0.5 * (df + k_dim) * torch.log1p(square / df)


def normal_cdf(z: Tensor) -> Tensor:
    r"""Compute :math:`\Phi(z)` with full relative precision for negative z, unlike torch's own."""
    return 0.5 * torch.erfc(-math.sqrt(0.5) * z)


_PER_THREAD = 2**17  # numbers that one operation touches: a few such tensors fit a core's cache


def cache_pieces(n: int, rows: int, device: torch.device) -> Iterator[slice]:
    """Slices of n elements, for operations on ``rows`` numbers each, that stay in cache.

    One slice on an accelerator, which has no such cache, and under ``torch.compile``, which fuses.
    """
    if device.type != "cpu" or torch.compiler.is_compiling():
        return iter((slice(None),))  # without a look at n: a traced size may vary
    step = max(_PER_THREAD * torch.get_num_threads() // rows, 1)
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))
