"""Long elementwise chains over large tensors, one cache-sized piece at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch

__all__ = ["cache_pieces"]

_PER_THREAD = 2**17  # numbers that one operation touches: a few such tensors fit a core's cache


def cache_pieces(n: int, rows: int, device: torch.device) -> Iterator[slice]:
    """Slices of n elements, for operations on ``rows`` numbers each, that stay in cache.

    One slice on an accelerator, which has no such cache, and under ``torch.compile``, which fuses.
    """
    if device.type != "cpu" or torch.compiler.is_compiling():
        return iter((slice(None),))  # without a look at n: a traced size may vary
    step = max(_PER_THREAD * torch.get_num_threads() // rows, 1)
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))
