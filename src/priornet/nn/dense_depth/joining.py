"""The start of each decoder block: a map at twice its resolution, joined with another map.

Doubling is bilinear between pixel centres. Along a line, a new pixel is three quarters of the pixel
it lies in and a quarter of that pixel's nearest neighbour; at the ends, without a neighbour, the
pixel itself. The weights are exact in half precision too.

On a CPU torch interpolates and joins. On a GPU with Triton one kernel reads both maps and writes
the result, and another computes the gradient without atomics; torch's operations would write and
read maps in between. On a GPU without Triton two matrix products double.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import conv2d, interpolate, pad

from priornet.checks import is_fusing, lifted, values_visible
from priornet.messages import warn_user

_HAS_TRITON = find_spec("triton") is not None


def doubled_with(x: Tensor, skip: Tensor) -> Tensor:
    """Double the map ``x`` ``(B, C, H, W)`` and append ``skip`` ``(B, S, 2H, 2W)``."""
    if _HAS_TRITON and x.is_cuda and x.dtype == skip.dtype and _kernels_run(x, skip):
        return joined_by_kernel(x, skip)
    return torch.cat([doubled(x), skip], 1)


def _kernels_run(x: Tensor, skip: Tensor) -> bool:
    if x.dtype == torch.float64:  # they compute in float32
        return False
    if is_fusing():  # by Triton as well
        return True
    return values_visible(x, skip) and _has_kernels(x.device)


@functools.cache
def _has_kernels(device: torch.device) -> bool:
    """Check if Triton compiles float32 and half precisions for a GPU on this machine."""
    return torch.cuda.get_device_capability(device) >= (8, 0) and _compiles(device)


def _compiles(device: torch.device) -> bool:
    """Check if a kernel can be launched: Triton needs a C compiler, which slim images lack."""
    pixel = torch.ones(1, 1, 1, 1, device=device)
    try:
        with torch.no_grad():
            joined_by_kernel(pixel, pixel.repeat(1, 1, 2, 2))
    except Exception as error:  # whatever fails, torch's own operations work
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warn_user(
            "depth networks join their maps by torch's own operations, which are slower: Triton "
            f"cannot compile here ({reason})."
        )
        return False
    return True


def doubled(x: Tensor) -> Tensor:
    """Upsample by two, bilinearly: ``(B, C, H, W)`` to ``(B, C, 2H, 2W)``."""
    if x.is_cuda:
        return doubled_by_products(x)
    # In float32 as under autocast, then narrowed: else the join would widen the encoder's maps too.
    return interpolate(lifted(x), scale_factor=2, mode="bilinear").to(x.dtype)


# -- by kernels -----------------------------------------------------------------------------------


def joined_by_kernel(x: Tensor, skip: Tensor) -> Tensor:
    """Compute :func:`doubled_with` with one kernel; the result is stored channels last."""
    x, skip = _channels_last(x), _channels_last(skip)
    if torch.compiler.is_dynamo_compiling():  # the compiler sets the device
        return _Joined.apply(x, skip)  # pyright: ignore[reportReturnType] (torch leaves it untyped)
    with torch.cuda.device_of(x):  # Triton launches on the current one
        return _Joined.apply(x, skip)  # pyright: ignore[reportReturnType]


class _Joined(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, skip: Tensor) -> Tensor:
        from priornet.nn.dense_depth.joining_kernels import join

        ctx.n_skip = skip.shape[1]
        return join(x, skip)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride] (torch's is untyped)
        from priornet.nn.dense_depth.joining_kernels import gather

        n_skip = ctx.n_skip
        is_plain = values_visible(grad) and not torch.is_grad_enabled()
        if not (is_plain or torch.compiler.is_dynamo_compiling()):
            return _gathered(grad[:, :-n_skip]), grad[:, -n_skip:]
        grad = _channels_last(grad)
        return gather(grad, grad.shape[1] - n_skip), grad[:, -n_skip:]


def _gathered(grad: Tensor) -> Tensor:
    """Compute the kernel's result by operations that have gradients themselves.

    A pixel gave three quarters to two new pixels and a quarter to one on either side; at the ends
    that quarter stayed with the outermost pixel.
    """
    channels = grad.shape[1]
    taps = torch.tensor([0.25, 0.75, 0.75, 0.25], dtype=grad.dtype, device=grad.device)
    weight = (taps[:, None] * taps).expand(channels, 1, 4, 4)
    return conv2d(pad(grad, (1, 1, 1, 1), mode="replicate"), weight, stride=2, groups=channels)


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


# -- by products ----------------------------------------------------------------------------------


def doubled_by_products(x: Tensor) -> Tensor:
    """Compute :func:`doubled` by two matrix products over channels-last storage.

    A GPU's matrix units run them and their backward pass, which is deterministic; the backward pass
    of torch's ``interpolate`` adds with atomics.
    """
    batch, channels, height, width = x.shape
    rows = x.permute(0, 2, 3, 1).reshape(batch, height, width * channels)
    rows = _doubling(height, x).expand(batch, -1, -1) @ rows
    columns = rows.reshape(batch * 2 * height, width, channels)
    columns = _doubling(width, x).expand(columns.shape[0], -1, -1) @ columns
    return columns.reshape(batch, 2 * height, 2 * width, channels).permute(0, 3, 1, 2)


def _doubling(size: int, like: Tensor) -> Tensor:
    """Make the matrix ``(2 size, size)`` that doubles a line."""
    at = (torch.arange(2 * size, device=like.device) + 0.5) / 2 - 0.5
    distance = (at.clamp(0, size - 1).unsqueeze(-1) - torch.arange(size, device=like.device)).abs()
    return (1 - distance).clamp_min(0).to(like.dtype)
