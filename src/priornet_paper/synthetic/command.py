"""``priornet reproduce synthetic`` and ``behaviours``: the paper's figures on synthetic data."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    from matplotlib.figure import Figure

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


Presets = Annotated[
    Preset,
    typer.Option(help="paper: its settings, some minutes. smoke: seconds, too short to learn."),
]


def synthetic(
    preset: Presets = Preset.PAPER,
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
    write = _writer(out / "synthetic.json", figures or out, "synthetic-panels", overwrite)

    from dataclasses import replace

    from priornet_paper.runs.progress import progress_bars
    from priornet_paper.synthetic.config import PRESETS
    from priornet_paper.synthetic.figures import draw_panels
    from priornet_paper.synthetic.run import Tick, run

    config = PRESETS[preset] if seed is None else replace(PRESETS[preset], seed=seed)
    with progress_bars(["synthetic"]) as bars:

        def report(tick: Tick) -> None:
            bars.update("synthetic", tick.done, f"{tick.method}, loss {tick.loss:.3f}")

        results = run(config, report)
    paths = write(results, draw_panels(results))
    if as_json:
        typer.echo(json.dumps(results))
        return
    _print_table(results)
    about = "off by: median over x inside. knowledge grows: median V[mu] outside / inside."
    ratios = "data var, total var: over the ensemble's, median over x, inside and outside."
    print_lines([about, ratios, f"{results['seconds']:.0f} s. {paths[0]}", *paths[1:]])


def behaviours(
    out: Out = Path("results"),
    figures: Figures = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Draw what a Normal-Wishart can say: low, data and knowledge uncertainty.

    Nothing is trained. Writes behaviours.json, behaviours.png and .svg.
    """
    write = _writer(out / "behaviours.json", figures or out, "behaviours", overwrite)

    from priornet_paper.synthetic.behaviours import run
    from priornet_paper.synthetic.figures import draw_beliefs

    results = run()
    paths = write(results, draw_beliefs(results))
    if as_json:
        typer.echo(json.dumps(results))
    else:
        print_lines(paths)


def _writer(
    path: Path, folder: Path, figure: str, overwrite: bool
) -> Callable[[dict[str, Any], Figure], list[str]]:
    """Check that results and figure can be written; return what writes them and names the files."""
    check_outputs([(path, RESULTS), *figure_paths(folder, figure)], overwrite=overwrite)
    for one in (path.parent, folder):
        make_folder(one)

    def write(results: dict[str, Any], drawn: Figure) -> list[str]:
        from priornet.evaluation import write_results
        from priornet.report import write_figure

        write_results(path, results)
        return [f"Figure: {write_figure(drawn, folder, figure)['png']}", f"Results: {path}"]

    return write


def _print_table(results: dict[str, Any]) -> None:
    """Print in numbers what the paper claims of its figure: means over the repetitions."""
    from rich.console import Console

    headers = ("RMSE", "NLL", "data sd\noff by", "knowledge\ngrows")
    headers += ("data var\n/ ENSM", "total var\n/ ENSM")
    n_runs = results["config"]["n_runs"]
    title = f"The paper's synthetic set, mean of {n_runs} repetition{'s' if n_runs > 1 else ''}"
    table = method_table(title, headers)
    for name, found in {**results["methods"], **results["variants"]}.items():
        growth = found["knowledge_growth"]["mean"]
        table.add_row(
            coloured(name),
            f"{found['rmse']['mean']:.3f}",
            f"{found['nll']['mean']:.3f}",
            f"{found['data_std_error_median']['mean']:.0%}",
            f"x {growth:,.0f}" if growth < 1e5 else f"x {growth:.0e}",
            *_ratios(found.get("against_ensemble")),
        )
    Console().print(table)


def _ratios(against: dict[str, Any] | None) -> tuple[str, str]:
    """Format data and total variance over the ensemble's, each inside and outside."""
    if against is None:
        return ("", "")
    data, total = (
        [against[region][part]["median"]["mean"] for region in ("in_domain", "out_of_domain")]
        for part in ("data_variance", "total_variance")
    )
    return f"{data[0]:.2f} {data[1]:.2g}", f"{total[0]:.2f} {total[1]:.2g}"
