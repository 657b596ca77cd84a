"""Batches scored side by side, one core each, and handed on in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["in_parallel"]

Result = TypeVar("Result")

_MOST_WORKERS = 4  # each holds a batch in memory


def in_parallel(
    score: Callable[[Any, int], Result], batches: Iterable[Any]
) -> Generator[Result, None, None]:
    """Apply a function to every batch and the number of rows before it.

    One batch per core, each on a single thread of torch: arrays of a batch fit the cache, where
    threads that share an operation mostly wait for each other. Few batches are in memory at once.

    Args:
        score: What to do with a batch.
        batches: Arrow batches.
    """
    import torch

    from priornet.training.threads import at_most, available_cores

    n_workers = min(available_cores(), _MOST_WORKERS)
    waiting: deque[Future[Result]] = deque()
    # The limit belongs to a thread and to what it starts, so that each worker sets its own.
    with (
        at_most(1),
        ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        first_row = 0
        for batch in batches:
            waiting.append(pool.submit(score, batch, first_row))
            first_row += batch.num_rows
            if len(waiting) > n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
