"""Pieces of work in several processes: each begins when what it needs is there.

With one worker the pieces run in this process, in their order. The numbers are the same either way,
but for the rounding of another number of threads: a piece is given all that it works on, and shares
nothing but the machine, of whose cores every process computes with an equal part.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from threading import Thread
from typing import Any, NamedTuple, Protocol

import torch

from priornet.training.threads import available_cores

__all__ = ["Piece", "Tick", "Work", "in_order"]

Tick = Callable[[], object]
"""Called by a piece when it is a step further."""


class Work(Protocol):
    """What a piece does; it has to go through pickle, and so does what it returns."""

    def __call__(self, needed: Mapping[str, Any], tick: Tick) -> Any:
        """Do it, with what the needed pieces returned by their names."""
        ...


class Piece(NamedTuple):
    """Something to do."""

    name: str
    work: Work
    needs: tuple[str, ...] = ()
    """Names of pieces that come first."""
    group: int = 0
    """Whose steps it counts."""


def in_order(
    pieces: Sequence[Piece],
    workers: int = 1,
    *,
    progress: Callable[[Sequence[int]], object] = lambda _: None,
    done: Callable[[Piece, Any], object] = lambda _piece, _made: None,
    start: Callable[[], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Do every piece after those that it needs; of those that are ready, the first one first.

    Args:
        pieces: Each after what it needs.
        workers: Processes.
        progress: Told the steps of every group so far, again and again.
        done: Given each piece and what it returned, as soon as it is there.
        start: Called first by every process that works; it has to go through pickle.
        stop: Asked whether to begin nothing more.

    Raises:
        ChildProcessError: A process was lost: killed, or out of memory.
    """
    n_groups = 1 + max((piece.group for piece in pieces), default=0)
    workers = min(workers, len(pieces))
    if workers <= 1:
        if start is not None:
            start()
        _here(pieces, [0] * n_groups, progress, done, stop)
        return
    context = multiprocessing.get_context("spawn")  # a forked process hangs, or has no GPU
    counts = context.Array("i", n_groups)
    n_threads = max(1, available_cores() // workers)
    begin = (counts, n_threads, start)
    with ProcessPoolExecutor(workers, context, _start_worker, begin) as pool:
        try:
            _there(pool, workers, pieces, lambda: progress(counts[:]), done, stop)
        except BaseException:
            # Its own way to end them comes with Python 3.14.
            processes = list((pool._processes or {}).values())  # pyright: ignore[reportPrivateUsage]
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise


def _here(
    pieces: Sequence[Piece],
    counts: list[int],
    progress: Callable[[Sequence[int]], object],
    done: Callable[[Piece, Any], object],
    stop: Callable[[], bool],
) -> None:
    made: dict[str, Any] = {}
    for piece in pieces:
        if stop():
            return

        def tick(group: int = piece.group) -> None:
            counts[group] += 1
            progress(counts)

        made[piece.name] = piece.work({name: made[name] for name in piece.needs}, tick)
        done(piece, made[piece.name])


def _there(
    pool: ProcessPoolExecutor,
    workers: int,
    pieces: Sequence[Piece],
    progress: Callable[[], object],
    done: Callable[[Piece, Any], object],
    stop: Callable[[], bool],
) -> None:
    made: dict[str, Any] = {}
    waiting = list(pieces)
    running: dict[Future[Any], Piece] = {}
    while waiting or running:
        if stop():
            waiting.clear()
        ready = [piece for piece in waiting if all(name in made for name in piece.needs)]
        for piece in ready[: workers - len(running)]:
            waiting.remove(piece)
            needed = {name: made[name] for name in piece.needs}
            running[_submitted(pool, piece, needed)] = piece
        ended, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        progress()
        for future in ended:
            try:
                result = future.result()
            except BrokenProcessPool as error:
                raise _lost(running.values()) from error
            piece = running.pop(future)
            made[piece.name] = result
            done(piece, result)
    progress()


def _submitted(pool: ProcessPoolExecutor, piece: Piece, needed: dict[str, Any]) -> Future[Any]:
    try:
        return pool.submit(_do_in_worker, piece, needed)
    except BrokenProcessPool as error:
        raise _lost([piece]) from error


def _lost(pieces: Any) -> ChildProcessError:
    names = ", ".join(piece.name for piece in pieces)
    return ChildProcessError(
        f"a worker process was lost (killed, or out of memory) during: {names}. Run it again: what "
        "was finished and kept is not done again."
    )


def _start_worker(counts: Any, n_threads: int, start: Callable[[], object] | None) -> None:
    global _counts
    _counts = counts
    # Threads that outnumber the cores wait for each other, not for work: four processes of two
    # threads each took four times as long to their first epoch on two cores.
    torch.set_num_threads(min(n_threads, torch.get_num_threads()))
    Thread(target=_end_with_parent, daemon=True).start()
    if start is not None:
        start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would work on, beside the run that takes its place."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _do_in_worker(piece: Piece, needed: dict[str, Any]) -> Any:
    def tick() -> None:
        with _counts.get_lock():
            _counts[piece.group] += 1

    return piece.work(needed, tick)


_counts: Any = None
