"""The synthetic experiment on a terminal: one run of a preset under a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from priornet_paper.synthetic.run import Tick

__all__ = ["run_synthetic"]


def run_synthetic(preset: str, seed: int | None) -> dict[str, Any]:
    """Results of a preset, with another seed where one is given."""
    from dataclasses import replace

    from priornet_paper.synthetic.run import PRESETS, run

    config = PRESETS[preset]
    with _progress_bar() as report:
        return run(config if seed is None else replace(config, seed=seed), report)


@contextmanager
def _progress_bar() -> Generator[Callable[[Tick], None]]:
    """A bar on stderr over the whole run: the method at work, its loss, the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<13}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  loss {task.fields[loss]:>7}  time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("Starting", total=1.0, loss="-")

        def report(tick: Tick) -> None:
            bar.update(task, completed=tick.done, description=tick.method, loss=f"{tick.loss:.3f}")

        yield report
        bar.update(task, description="synthetic")
