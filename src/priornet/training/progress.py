"""A progress bar for training: its name, its best loss so far, the time left."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from priornet.training.loop import Tick

Report = Callable[[Tick], None]


@contextmanager
def progress_bar(what: str, shown: bool = True) -> Generator[Report | None]:
    """Show a bar on standard error, or nothing.

    Args:
        what: Name of the training.
        shown: False shows nothing.

    Returns:
        The ``progress`` argument of :func:`priornet.training.fit`.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("epoch {task.completed:>4.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[loss]:<18}"),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1, loss="")

        def report(tick: Tick) -> None:
            bar.update(task, total=tick.n_epochs, completed=tick.epoch, loss=_loss(tick))

        yield report
        bar.update(task, total=bar.tasks[task].completed)  # early stopping: no epochs are left


def _loss(tick: Tick) -> str:
    """Format the loss of the weights kept so far, which are not those of the last epoch."""
    return f"loss {tick.loss:.4f}" if tick.best is None else f"best loss {tick.best:.4f}"
