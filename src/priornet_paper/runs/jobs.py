"""Run a graph of jobs in processes: each job begins when the results that it needs are there.

With one worker the jobs run in this process, in their order. The numbers are the same either way,
except for the rounding of another number of threads: a job receives everything that it works on,
and every process computes with an equal part of the machine's cores.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import connection
from threading import Thread
from typing import Any, NamedTuple, Protocol

import torch

from priornet.training import available_cores

_START_METHOD = "spawn"  # a forked process hangs, or has no GPU

Report = Callable[[Any], object]
"""Sends an event of a job, such as a finished epoch, to the process that started the jobs."""


class Work(Protocol):
    """The work of a job. It must go through pickle, and so must its result and its events."""

    def __call__(self, needed: Mapping[str, Any], report: Report) -> Any:
        """Do the work, given the results of the needed jobs by their names."""
        ...


class Job(NamedTuple):
    """A named piece of work."""

    name: str
    work: Work
    needs: tuple[str, ...] = ()
    """Names of jobs that come first."""


@dataclass(frozen=True)
class Watch:
    """Callbacks of :func:`run_jobs`."""

    event: Callable[[Job, Any], object] = field(default=lambda _job, _event: None)
    """Called with every event that a job reports."""
    done: Callable[[Job, Any], object] = field(default=lambda _job, _result: None)
    """Called with each job and its result, as soon as it is there."""
    start: Callable[[], object] | None = None
    """Called first by every process that works; it must go through pickle."""
    stop: Callable[[], bool] = field(default=lambda: False)
    """Called before each job; once it returns True, no further job begins."""


def run_jobs(jobs: Sequence[Job], workers: int = 1, watch: Watch | None = None) -> None:
    """Run every job after those that it needs; of several jobs that are ready, the first first.

    Args:
        jobs: Each after the jobs that it needs.
        workers: Processes.
        watch: Callbacks.

    Raises:
        ChildProcessError: A process was lost: killed, or out of memory.
    """
    watch = watch or Watch()
    workers = min(workers, len(jobs))
    if workers <= 1:
        _run_here(jobs, watch)
        return
    context = multiprocessing.get_context(_START_METHOD)
    events = context.SimpleQueue()
    begin = (events, max(1, available_cores() // workers), watch.start)
    with ProcessPoolExecutor(workers, context, _start_worker, begin) as pool:
        try:
            _run_in(pool, workers, jobs, events, watch)
        except BaseException:
            # Its own way to end them comes with Python 3.14.
            processes = list((pool._processes or {}).values())  # pyright: ignore[reportPrivateUsage]
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            raise


def _run_here(jobs: Sequence[Job], watch: Watch) -> None:
    results: dict[str, Any] = {}
    if watch.start is not None:
        watch.start()
    for job in jobs:
        if watch.stop():
            return

        def report(event: Any, job: Job = job) -> None:
            watch.event(job, event)

        results[job.name] = job.work({name: results[name] for name in job.needs}, report)
        watch.done(job, results[job.name])


def _run_in(
    pool: ProcessPoolExecutor, workers: int, jobs: Sequence[Job], events: Any, watch: Watch
) -> None:
    results: dict[str, Any] = {}
    by_name = {job.name: job for job in jobs}
    waiting = list(jobs)
    running: dict[Future[Any], Job] = {}
    while waiting or running:
        if watch.stop():
            waiting.clear()
        ready = [job for job in waiting if all(name in results for name in job.needs)]
        for job in ready[: workers - len(running)]:
            waiting.remove(job)
            needed = {name: results[name] for name in job.needs}
            running[_submitted(pool, job, needed)] = job
        ended, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        while not events.empty():
            name, event = events.get()
            watch.event(by_name[name], event)
        for future in ended:
            try:
                result = future.result()
            except BrokenProcessPool as error:
                raise _lost(running.values()) from error
            job = running.pop(future)
            results[job.name] = result
            watch.done(job, result)


def _submitted(pool: ProcessPoolExecutor, job: Job, needed: dict[str, Any]) -> Future[Any]:
    try:
        return pool.submit(_do_in_worker, job, needed)
    except BrokenProcessPool as error:
        raise _lost([job]) from error


def _lost(jobs: Iterable[Job]) -> ChildProcessError:
    names = ", ".join(job.name for job in jobs)
    return ChildProcessError(
        f"a worker process was lost (killed, or out of memory) during: {names}. Run it again: "
        "finished work is kept."
    )


def _start_worker(events: Any, n_threads: int, start: Callable[[], object] | None) -> None:
    global _events
    _events = events
    # Threads that outnumber the cores wait for each other, not for work: four processes of two
    # threads each took four times as long to their first epoch on two cores.
    torch.set_num_threads(min(n_threads, torch.get_num_threads()))
    Thread(target=_end_with_parent, daemon=True).start()
    if start is not None:
        start()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would work on beside the next run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _do_in_worker(job: Job, needed: dict[str, Any]) -> Any:
    # The pipe takes an event before the result is sent, so that none is lost at the end.
    return job.work(needed, lambda event: _events.put((job.name, event)))


_events: Any = None
