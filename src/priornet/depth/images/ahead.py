"""Decoding ahead: one thread reads in order, several decode, and the results come in order."""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["decoded", "in_order", "n_workers"]

_MOST = 16
Encoded = TypeVar("Encoded")
Decoded = TypeVar("Decoded")


def n_workers(workers: int | None = None) -> int:
    """How many threads decode: as many as asked for, else as there are processors for us."""
    if workers is not None:
        try:
            operator.index(workers)
        except TypeError as error:
            raise TypeError(
                f"`workers` must be a number of threads; got {workers!r}. `DepthImages.batches` "
                "also takes a concurrent.futures.Executor."
            ) from error
        if workers < 1:
            raise ValueError(f"`workers` must be at least 1; got {workers}.")
        return workers
    has_affinity = hasattr(os, "sched_getaffinity")  # not on every system
    return min(_MOST, len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


def decoded(
    encoded: Iterable[Encoded], decode: Callable[[Encoded], Decoded], *, workers: int, ahead: int
) -> Generator[Decoded]:
    """Decode things in their order.

    Args:
        encoded: What to decode; taken from the calling thread, in order.
        decode: Called from many threads.
        workers: Number of threads; with 1, everything happens in the calling thread, when asked.
        ahead: How many results may wait to be asked for.
    """
    if workers == 1:
        yield from map(decode, encoded)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="decode") as pool:
        yield from in_order(pool, encoded, decode, ahead=ahead)


def in_order(
    pool: Executor,
    encoded: Iterable[Encoded],
    decode: Callable[[Encoded], Decoded],
    *,
    ahead: int,
    late: Callable[[Future[Decoded]], object] | None = None,
) -> Generator[Decoded]:
    """Decode things in their order, by workers that somebody else looks after.

    Args:
        pool: The workers.
        encoded: What to decode; taken from the calling thread, in order.
        decode: Called by the workers.
        ahead: How many results may wait to be asked for.
        late: Given what is done when nobody asks for it any more. What no worker has begun by then
            is not decoded.
    """
    waiting: deque[Future[Decoded]] = deque()
    try:
        for thing in encoded:
            waiting.append(pool.submit(decode, thing))
            if len(waiting) > ahead:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:  # also when nobody asks for the rest
        for future in waiting:
            if not future.cancel() and late is not None:
                future.add_done_callback(late)


def _first(waiting: deque[Future[Decoded]]) -> Decoded:
    """The first result; one that was not waited for to its end stays among the others."""
    result = waiting[0].result()
    waiting.popleft()
    return result
