"""Lossless compression of depth codes: predict each pixel from its neighbours, compress the errors.

Pixels come in steps, from a coarse grid to a fine one: first the middle of four known corners, then
the pixels between four known sides. The two middle values of the four neighbours give a guess, and
their spread tells how good it is. Errors are sorted by that spread, so that similar errors stand
together for the compressor, first those that are nearly always 0. Each step is a few whole-array
operations.
"""

from __future__ import annotations

import lzma
import struct
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("<BHHH")  # bytes of a code, height, width, common divisor of all codes
_SHAPE = struct.Struct("<HH")
_FILTERS: list[dict[str, int]] = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "dict_size": 1 << 20,
        "lc": 0,
        "lp": 0,
        "pb": 0,
    }
]
Ints = NDArray[np.int32]


class _Step(NamedTuple):
    """Pixels that are guessed together, by their positions in the flat image."""

    targets: NDArray[np.intp]  # (n,)
    neighbours: NDArray[np.intp]  # (4, n)


def compress_codes(codes: NDArray[Any]) -> bytes:
    """Compress codes ``(H, W)`` of 8 or 16 bits for :func:`decompress_codes`."""
    size = codes.dtype.itemsize
    unit = max(1, int(np.gcd.reduce(codes, axis=None)))
    flat = codes.ravel().astype(np.int32) // unit
    errors = [flat[:1]]
    for targets, neighbours in _steps(*codes.shape):
        guess, order = _guess(flat.take(neighbours))
        errors.append((flat.take(targets) - guess)[order])
    folded = _fold(np.concatenate(errors), 8 * size)
    return _HEADER.pack(size, *codes.shape, unit) + _packed(folded.astype(f"<u{size}"))


def decompress_codes(data: bytes) -> NDArray[Any]:
    """Return the array that was compressed."""
    size, height, width, unit = _HEADER.unpack_from(data)
    errors = _unfold(_unpacked(data[_HEADER.size :], f"<u{size}").astype(np.int32))
    if len(errors) != height * width:
        raise ValueError(f"expected {height} x {width} codes, found {len(errors)}")
    flat, start, mask = np.zeros(len(errors), np.int32), 1, (1 << 8 * size) - 1
    flat[0] = errors[0] & mask
    for targets, neighbours in _steps(height, width):
        guess, order = _guess(flat.take(neighbours))
        error = np.empty_like(guess)
        error[order] = errors[start : start + len(order)]
        flat[targets] = (guess + error) & mask
        start += len(order)
    return (flat * unit).astype(f"u{size}").reshape(height, width)


def compress_metres(depth: NDArray[np.float32]) -> bytes:
    """Compress metres, which are no codes."""
    return _SHAPE.pack(*depth.shape) + _packed(np.ascontiguousarray(depth, "<f4"))


def decompress_metres(data: bytes) -> NDArray[np.float32]:
    """Return the array that was compressed."""
    return _unpacked(data[_SHAPE.size :], "<f4").reshape(_SHAPE.unpack_from(data))


def _packed(values: NDArray[Any]) -> bytes:
    """Compress numbers: first all lowest bytes, last all highest."""
    planes = values.view(np.uint8).reshape(-1, values.itemsize).T
    return lzma.compress(planes.tobytes(), format=lzma.FORMAT_RAW, filters=_FILTERS)


def _unpacked(data: bytes, kind: str) -> NDArray[Any]:
    """Return the numbers ``(n,)`` that were compressed."""
    planes = np.frombuffer(lzma.decompress(data, lzma.FORMAT_RAW, filters=_FILTERS), np.uint8)
    return planes.reshape(np.dtype(kind).itemsize, -1).T.copy().view(kind).ravel()


def _guess(neighbours: Ints) -> tuple[Ints, NDArray[np.intp]]:
    """Guess each pixel from its neighbours ``(4, n)``; return also the order of reliability."""
    first, second, third, fourth = neighbours
    low, high = np.minimum(first, second), np.maximum(first, second)
    other_low, other_high = np.minimum(third, fourth), np.maximum(third, fourth)
    second_low, second_high = np.maximum(low, other_low), np.minimum(high, other_high)
    lowest, highest = np.minimum(low, other_low), np.maximum(high, other_high)
    lower, upper = np.minimum(second_low, second_high), np.maximum(second_low, second_high)
    guess = (lower + upper) >> 1

    classes = _classes()
    below, above = classes.take(lower - lowest), classes.take(highest - upper)
    middle = classes.take(upper - lower)
    outer, inner = np.maximum(below, above), np.minimum(below, above)
    key = ((middle * 10 + outer) * 10 + inner) * 2 + (below > above)
    return guess, np.argsort(key, kind="stable")


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint16]:
    """Return the class, of ten, of each distance between codes."""
    return np.digitize(np.arange(1 << 16), [1, 2, 3, 5, 9, 17, 33, 65, 257]).astype(np.uint16)


def _fold(errors: Ints, bits: int) -> Ints:
    """Map errors modulo 2**bits to counts: 0, -1, 1, -2, ... -> 0, 1, 2, 3, ..."""
    half = 1 << (bits - 1)
    signed = (errors + half & 2 * half - 1) - half
    return np.where(signed >= 0, 2 * signed, -2 * signed - 1)


def _unfold(folded: Ints) -> Ints:
    return (folded >> 1) ^ -(folded & 1)


@lru_cache(maxsize=4)
def _steps(height: int, width: int) -> tuple[_Step, ...]:
    """Return the steps of an image, from coarse to fine; pixel 0 is known before them."""
    found: list[_Step] = []
    stride = 1 << max(0, (max(height, width) - 1).bit_length() - 1)
    while stride:
        rows = np.arange(0, height, 2 * stride), np.arange(stride, height, 2 * stride)
        columns = np.arange(0, width, 2 * stride), np.arange(stride, width, 2 * stride)
        corners = [(-1, -1), (1, 1), (-1, 1), (1, -1)]
        found.append(_step([(rows[1], columns[1])], corners, stride, (height, width)))
        sides = [(0, -1), (0, 1), (-1, 0), (1, 0)]
        between = [(rows[0], columns[1]), (rows[1], columns[0])]
        found.append(_step(between, sides, stride, (height, width)))
        stride //= 2
    return tuple(step for step in found if len(step.targets))


def _step(
    grids: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    offsets: list[tuple[int, int]],
    stride: int,
    shape: tuple[int, int],
) -> _Step:
    """Build a step from the pixels of some grids.

    A neighbour outside the image is replaced by the opposite one; if that is outside too, by the
    one to the left or above, which every pixel of a grid has.
    """
    height, width = shape

    def places(down: int, right: int) -> NDArray[np.intp]:
        moved = (
            (_inside(rows, down * stride, height), _inside(columns, right * stride, width))
            for rows, columns in grids
        )
        return np.concatenate([(y[:, None] * width + x).ravel() for y, x in moved])

    targets = places(0, 0)
    neighbours = np.stack([places(*offset) for offset in offsets])
    unmoved = neighbours == targets
    return _Step(targets, np.where(unmoved, neighbours.min(0), neighbours))


def _inside(places: NDArray[np.intp], offset: int, end: int) -> NDArray[np.intp]:
    """Move places by an offset, or the other way, or not at all: the first that stays inside."""
    moved, opposite = places + offset, places - offset
    moved = np.where((moved < 0) | (moved >= end), opposite, moved)
    return np.where((moved < 0) | (moved >= end), places, moved)
