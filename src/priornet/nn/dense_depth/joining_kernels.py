"""Triton kernels of :mod:`priornet.nn.dense_depth.joining`; imported only where Triton is.

All maps are stored channels last: pixel by pixel, the channels of a pixel side by side. Numbers are
float32 between loading and storing.
"""
# ruff: noqa: ANN001, ANN202 (Triton reads annotations of kernels as types of its own)
# pyright: basic, reportIndexIssue=false

from __future__ import annotations

import triton  # pyright: ignore[reportMissingImports] (comes with torch for GPUs)
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

# Of a program; the quickest of those tried on an H200.
_PIXELS = 8  # neighbours in a row
_CHANNELS = 128


def join(x: Tensor, skip: Tensor) -> Tensor:
    """Double the map ``x`` ``(B, C, H, W)`` and append ``skip`` ``(B, S, 2H, 2W)``."""
    batch, channels, height, width = x.shape
    n_skip = skip.shape[1]
    # Allocated in storage order: a compiler would copy a permuted tensor.
    out = x.new_empty((batch, 2 * height, 2 * width, channels + n_skip))
    n_blocks = triton.cdiv(channels, _CHANNELS) + triton.cdiv(n_skip, _CHANNELS)
    grid = (batch * height, triton.cdiv(width, _PIXELS), n_blocks)
    _join[grid](x, skip, out, height, width, channels, n_skip, _PIXELS, _CHANNELS)
    return out.permute(0, 3, 1, 2)


def gather(grad: Tensor, channels: int) -> Tensor:
    """Compute the gradient of ``x`` from the gradient of the result of :func:`join`."""
    batch, n_all = grad.shape[:2]
    height, width = grad.shape[2] // 2, grad.shape[3] // 2
    out = grad.new_empty((batch, height, width, channels))
    grid = (batch * height, triton.cdiv(width, _PIXELS), triton.cdiv(channels, _CHANNELS))
    _gather[grid](grad, out, height, width, channels, n_all, _PIXELS, _CHANNELS)
    return out.permute(0, 3, 1, 2)


@triton.jit
def _doubled_row(line, left, own, right, channel, n_channels, mask):
    """Compute the two new pixels of each old one along a row, left (even) and right (odd)."""
    a = tl.load(line + left[:, None] * n_channels + channel, mask=mask).to(tl.float32)
    b = tl.load(line + own[:, None] * n_channels + channel, mask=mask).to(tl.float32)
    c = tl.load(line + right[:, None] * n_channels + channel, mask=mask).to(tl.float32)
    return 0.75 * b + 0.25 * a, 0.75 * b + 0.25 * c


@triton.jit
def _join(
    x,
    skip,
    out,
    height,
    width,
    n_own: tl.constexpr,
    n_skip: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Make two rows of new pixels from one row of old ones, in some of the channels."""
    place, block = tl.program_id(0).to(tl.int64), tl.program_id(2)
    image, row = place // height, place % height
    column = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    n_all, n_blocks = n_own + n_skip, tl.cdiv(n_own, CHANNELS)
    even = out + (2 * place * 2 * width + 2 * column[:, None]) * n_all
    odd = even + 2 * width * n_all
    if block < n_blocks:
        channel = (block * CHANNELS + tl.arange(0, CHANNELS))[None, :]
        mask = (column < width)[:, None] & (channel < n_own)
        left, right = tl.maximum(column - 1, 0), tl.minimum(column + 1, width - 1)
        above, below = tl.maximum(row - 1, 0), tl.minimum(row + 1, height - 1)
        first = x + image * height * width * n_own
        line = width * n_own
        up0, up1 = _doubled_row(first + above * line, left, column, right, channel, n_own, mask)
        on0, on1 = _doubled_row(first + row * line, left, column, right, channel, n_own, mask)
        down0, down1 = _doubled_row(first + below * line, left, column, right, channel, n_own, mask)
        kind = out.dtype.element_ty
        tl.store(even + channel, (0.75 * on0 + 0.25 * up0).to(kind), mask=mask)
        tl.store(even + n_all + channel, (0.75 * on1 + 0.25 * up1).to(kind), mask=mask)
        tl.store(odd + channel, (0.75 * on0 + 0.25 * down0).to(kind), mask=mask)
        tl.store(odd + n_all + channel, (0.75 * on1 + 0.25 * down1).to(kind), mask=mask)
    else:
        channel = ((block - n_blocks) * CHANNELS + tl.arange(0, CHANNELS))[None, :]
        mask = (column < width)[:, None] & (channel < n_skip)
        source = skip + (2 * place * 2 * width + 2 * column[:, None]) * n_skip + channel
        below_it = source + 2 * width * n_skip
        behind = n_own + channel
        tl.store(even + behind, tl.load(source, mask=mask), mask=mask)
        tl.store(even + n_all + behind, tl.load(source + n_skip, mask=mask), mask=mask)
        tl.store(odd + behind, tl.load(below_it, mask=mask), mask=mask)
        tl.store(odd + n_all + behind, tl.load(below_it + n_skip, mask=mask), mask=mask)


@triton.jit
def _gathered_row(line, column, width, channel, n_all, mask):
    """Sum what the new pixels of a row give back to old ones: two inside, one on either side.

    At the ends the outermost pixel counts twice, for the missing neighbour's weight went to it.
    """
    before = tl.maximum(2 * column - 1, 0)[:, None] * n_all + channel
    own = (2 * column)[:, None] * n_all + channel
    behind = tl.minimum(2 * column + 2, 2 * width - 1)[:, None] * n_all + channel
    a = tl.load(line + before, mask=mask).to(tl.float32)
    b = tl.load(line + own, mask=mask).to(tl.float32)
    c = tl.load(line + own + n_all, mask=mask).to(tl.float32)
    d = tl.load(line + behind, mask=mask).to(tl.float32)
    return 0.75 * (b + c) + 0.25 * (a + d)


@triton.jit
def _gather(
    grad,
    out,
    height,
    width,
    n_own: tl.constexpr,
    n_all: tl.constexpr,
    PIXELS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Compute the gradients of a row of old pixels, in some of the channels."""
    place = tl.program_id(0).to(tl.int64)
    image, row = place // height, place % height
    column = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    channel = (tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS))[None, :]
    mask = (column < width)[:, None] & (channel < n_own)
    first = grad + image * 4 * height * width * n_all
    line = 2 * width * n_all
    above, below = tl.maximum(2 * row - 1, 0), tl.minimum(2 * row + 2, 2 * height - 1)
    a = _gathered_row(first + above * line, column, width, channel, n_all, mask)
    b = _gathered_row(first + 2 * row * line, column, width, channel, n_all, mask)
    c = _gathered_row(first + (2 * row + 1) * line, column, width, channel, n_all, mask)
    d = _gathered_row(first + below * line, column, width, channel, n_all, mask)
    found = 0.75 * (b + c) + 0.25 * (a + d)
    target = out + (place * width + column[:, None]) * n_own + channel
    tl.store(target, found.to(out.dtype.element_ty), mask=mask)
