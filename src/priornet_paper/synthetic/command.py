"""``priornet reproduce synthetic`` and ``behaviours``: the paper's figures on synthetic data."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli import (
    LARGEST_SEED,
    RESULTS,
    AsJson,
    Overwrite,
    check_outputs,
    coloured,
    figure_paths,
    make_folder,
    method_table,
    print_lines,
)

if TYPE_CHECKING:
    from rich.table import Table

    from priornet_paper.synthetic.run import Tick


Out = Annotated[Path, typer.Option(help="Folder for the results file.")]
Figures = Annotated[
    Path | None, typer.Option(help="Folder for the figures, if not that of the results.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of data and training.")
]


class Preset(StrEnum):
    """Presets, named here so that the help need not import the experiment."""

    PAPER = "paper"
    SMOKE = "smoke"


def synthetic(
    preset: Annotated[
        Preset,
        typer.Option(help="paper: its settings, some minutes. smoke: seconds, too short to learn."),
    ] = Preset.PAPER,
    seed: Seed = None,
    out: Out = Path("results"),
    figures: Figures = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train on the paper's synthetic curve, and draw its figure.

    An ensemble of ten networks, one distilled from it (EnD2) and one prior
    network (NWPN), three times over with data of their own. Beside them
    variants: the paper's prior to the letter, what mends its settings where
    they miss, and the forward KL. Writes synthetic.json, synthetic-panels.png
    and .svg.
    """
    import json

    from priornet.evaluation import write_results
    from priornet.report import write_figure
    from priornet_paper.synthetic.panels_figure import draw_panels

    written = [(out / "synthetic.json", RESULTS), *figure_paths(figures or out, "synthetic-panels")]
    check_outputs(written, overwrite=overwrite)
    for folder in (out, figures or out):
        make_folder(folder)
    results = run_synthetic(preset, seed)
    write_results(out / "synthetic.json", results)
    paths = write_figure(draw_panels(results), figures or out, "synthetic-panels")
    if as_json:
        typer.echo(json.dumps(results))
    else:
        _print(results, out / "synthetic.json", paths)


def behaviours(
    out: Out = Path("results"),
    figures: Figures = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw what a Normal-Wishart can say: low, data and knowledge uncertainty.

    Nothing is trained. Writes behaviours.json, behaviours.png and .svg.
    """
    import json

    from priornet.evaluation import write_results
    from priornet.report import write_figure
    from priornet_paper.synthetic.behaviours import draw, run

    written = [(out / "behaviours.json", RESULTS), *figure_paths(figures or out, "behaviours")]
    check_outputs(written, overwrite=overwrite)
    for folder in (out, figures or out):
        make_folder(folder)
    results = run()
    write_results(out / "behaviours.json", results)
    paths = write_figure(draw(results), figures or out, "behaviours")
    if as_json:
        typer.echo(json.dumps(results))
    else:
        print_lines([f"Figure: {paths['png']}", f"Results: {out / 'behaviours.json'}"])


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


def _print(results: dict[str, Any], written: Path, paths: dict[str, Path]) -> None:
    from rich.console import Console

    Console().print(_table(results))
    print_lines(
        [
            "off by: median over x inside. knowledge grows: median V[mu] outside / inside.",
            "data var, total var: over the ensemble's, median over x, inside and outside.",
            f"{results['seconds']:.0f} s. Figure: {paths['png']}",
            f"Results: {written}",
        ]
    )


def _table(results: dict[str, Any]) -> Table:
    """What the paper claims of its figure, in numbers: means over the repetitions."""
    headers = (
        "RMSE",
        "NLL",
        "data sd\noff by",
        "knowledge\ngrows",
        "data var\n/ ENSM",
        "total var\n/ ENSM",
    )
    n_runs = results["config"]["n_runs"]
    title = f"The paper's synthetic set, mean of {n_runs} repetition{'s' if n_runs > 1 else ''}"
    table = method_table(title, headers)
    for name, found in {**results["methods"], **results["variants"]}.items():
        table.add_row(
            coloured(name),
            f"{found['rmse']['mean']:.3f}",
            f"{found['nll']['mean']:.3f}",
            f"{found['data_std_error_median']['mean']:.0%}",
            _times(found["knowledge_growth"]["mean"]),
            *_ratios(found.get("against_ensemble")),
        )
    return table


def _times(factor: float) -> str:
    return f"x {factor:,.0f}" if factor < 1e5 else f"x {factor:.0e}"


def _ratios(against: dict[str, Any] | None) -> tuple[str, str]:
    if against is None:
        return ("", "")
    inside, outside = (
        [against[region][part]["median"]["mean"] for part in ("data_variance", "total_variance")]
        for region in ("in_domain", "out_of_domain")
    )
    data, total = (f"{a:.2f} {b:.2g}" for a, b in zip(inside, outside, strict=True))
    return data, total
