"""How many cores there are, and how many threads a computation on small arrays should have."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["at_most", "available_cores"]


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def at_most(n_threads: int) -> Generator[None]:
    """Limit torch to some threads for a while.

    On arrays that fit a cache a second thread costs more than it brings, on a busy machine ten
    times more. The limit is the process's, so it is put back.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)
