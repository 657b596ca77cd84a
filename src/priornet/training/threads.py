"""Settings of the processor for a while: the number of threads, and denormal numbers."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import torch


def available_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def at_most(n_threads: int) -> Generator[None]:
    """Limit torch to some threads for a while.

    On arrays that fit a cache a second thread costs time, on a busy machine much. The limit holds
    for the whole process, so it is put back.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def flushed() -> Generator[None]:
    """Round numbers below full precision (1e-38 in float32) to zero for a while.

    Processors are slow at such numbers. Weights of units that no row reaches decay to nothing, and
    Adam's averages with them: a few per cent of such numbers slow its step several times. The
    setting holds for the thread, so it is put back.
    """
    before = torch.tensor(1e-40, dtype=torch.float32, device="cpu").item() == 0
    torch.set_flush_denormal(True)  # does nothing on processors that cannot
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
