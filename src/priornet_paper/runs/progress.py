"""The progress bars of the experiments."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any


class Bars:
    """Bars on standard error, one for each thing that is under way.

    Args:
        progress: Rich's display.
        names: Things that have a bar from the start, and keep it at the end.
    """

    def __init__(self, progress: Any, names: Sequence[str]) -> None:
        self._progress, self._names = progress, names
        self._tasks = {name: self._add(name) for name in names}

    def update(self, name: str, share: float, note: str = "") -> None:
        """Show how far something is, with a note beside its bar."""
        if name not in self._tasks:
            self._tasks[name] = self._add(name)
        self._progress.update(self._tasks[name], completed=share, note=note)
        if share >= 1 and name not in self._names:
            self._progress.remove_task(self._tasks.pop(name))

    def message(self, text: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def _add(self, name: str) -> Any:
        return self._progress.add_task(name, total=1.0, note="")


@contextmanager
def progress_bars(names: Sequence[str] = (), *, quiet: bool = False) -> Generator[Bars]:
    """Show progress bars while something runs; messages are printed even if quiet."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[note]:<26}time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as progress:
        bars = Bars(progress, names)
        yield bars
        for name in names:
            bars.update(name, 1.0)
