"""Long elementwise chains over large tensors, one cache-sized piece at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch

__all__ = ["cache_pieces"]

_PER_THREAD = 32768  # torch splits elementwise work among threads from this many elements on


def cache_pieces(n: int, device: torch.device) -> Iterator[slice]:
    """Slices of n elements that stay in cache.

    One slice on an accelerator, which has no such cache, and under ``torch.compile``, which fuses.
    """
    step = max(n, 1)
    if device.type == "cpu" and not torch.compiler.is_compiling():
        step = _PER_THREAD * torch.get_num_threads()
    return (slice(start, min(start + step, n)) for start in range(0, max(n, 1), step))
