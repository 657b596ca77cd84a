"""Arithmetic without denormal numbers, which processors are slow at."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["flushed"]


@contextmanager
def flushed() -> Generator[None]:
    """Take numbers too small for full precision (1e-38 in float32) for zero, for a while.

    Weights of units that no row reaches decay to nothing, and Adam's averages with them: a few in a
    hundred such numbers make its step take several times as long. The setting is the thread's, so
    it is put back.
    """
    before = torch.tensor(1e-40, dtype=torch.float32, device="cpu").item() == 0
    torch.set_flush_denormal(True)  # does nothing on processors that cannot
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
