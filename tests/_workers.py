"""A worker process that is killed from outside, as a system short of memory does it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread


@contextmanager
def worker_killed_after(pattern: str, folder: Path) -> Iterator[list[Path]]:
    """Kill one of this process's children by SIGKILL when the first file of a pattern is there.

    Yields:
        The files that there were then, once it has happened.
    """
    found: list[Path] = []
    is_over = Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            children = multiprocessing.active_children()
            if children and any(folder.glob(pattern)):
                found.extend(folder.glob(pattern))
                children[0].kill()
                return

    thread = Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()
