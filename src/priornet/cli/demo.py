"""``priornet demo``: the paper's synthetic experiment."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from priornet.experiments.synthetic import Tick

__all__ = ["SyntheticPreset", "demo"]


class SyntheticPreset(StrEnum):
    """Presets of the synthetic experiment, named here so that the help need not import it."""

    DEMO = "demo"
    PAPER = "paper"
    SMOKE = "smoke"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the results.")] = Path(
        "priornet-demo"
    ),
    preset: Annotated[
        SyntheticPreset,
        typer.Option(help="Under a minute, the paper's (some minutes), a few seconds."),
    ] = SyntheticPreset.DEMO,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of data and training.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's synthetic experiment, print its numbers, draw its figure.

    An ensemble of ten networks, one network distilled from it (EnD2) and
    one prior network (NWPN) learn the same noisy curve. Where there was data,
    data uncertainty should match the noise; where there was none, knowledge
    uncertainty should grow.
    """
    _make_folder(out)  # now, not after the training

    import json
    from dataclasses import replace

    from priornet.experiments.results import write_results
    from priornet.experiments.synthetic import PRESETS, run
    from priornet.report.synthetic import draw

    config = PRESETS[preset] if seed is None else replace(PRESETS[preset], seed=seed)
    with _progress_bar() as report:
        results = run(config, report)
    write_results(out / "synthetic.json", results)
    draw(results).savefig(out / "synthetic.png", dpi=150)
    if as_json:
        typer.echo(json.dumps(results))
    else:
        _print_synthetic(results, out)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {path}: {error.strerror}.", param_hint="'--out'"
        ) from error


@contextmanager
def _progress_bar() -> Generator[Callable[[Tick], None]]:
    """A bar on stderr over the whole run: the method at work, its loss, the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  loss {task.fields[loss]:>7}  time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("Starting", total=1.0, loss="-")

        def report(tick: Tick) -> None:
            bar.update(task, completed=tick.done, description=tick.method, loss=f"{tick.loss:.3f}")

        yield report
        bar.update(task, description="Done")


def _print_synthetic(results: dict[str, Any], out: Path) -> None:
    from rich.console import Console

    console = Console()
    console.print(_synthetic_table(results))
    console.print(
        f"{results['seconds']:.0f} s. Figure: {out / 'synthetic.png'}, "
        f"results: {out / 'synthetic.json'}",
        highlight=False,
        soft_wrap=True,
    )


def _synthetic_table(results: dict[str, Any]) -> Table:
    """Accuracy, data uncertainty against the known noise, knowledge inside and outside."""
    from rich import box
    from rich.table import Table

    from priornet.report.palette import COLOURS

    low, high = results["config"]["test_out_range"]
    edge = results["config"]["train_edge"]
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    inside, outside = f"|x| < {edge:g}", f"{low:g} < |x| < {high:g}"
    for header in ("RMSE", "NLL", "data sd\noff by"):
        table.add_column(header, justify="right")
    for header in (f"knowledge sd\n{inside}", f"knowledge sd\n{outside}", "AUROC\nin / out"):
        table.add_column(header, justify="right")
    truth = results["truth"]
    table.add_row("Truth", *(f"{truth[name]['mean']:.3f}" for name in ("rmse", "nll")), "0%")
    for name, method in results["methods"].items():
        measure = "variance_of_mean"
        table.add_row(
            f"[bold {COLOURS[name]}]{name}[/]",
            f"{method['rmse']['mean']:.3f}",
            f"{method['nll']['mean']:.3f}",
            f"{method['data_std_error']['mean']:.0%}",
            f"{method['in_domain'][measure]['mean'] ** 0.5:.3f}",
            f"{method['out_of_domain'][measure]['mean'] ** 0.5:.1f}",
            f"{method['ood_auc'][measure]['mean']:.3f}",
        )
    return table
