"""How many threads a computation on small arrays should have."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["at_most"]


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
