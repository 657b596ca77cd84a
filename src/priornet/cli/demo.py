"""``priornet demo``: what the methods know, on a curve whose noise is known and on a real table."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from priornet.cli.inputs import LARGEST_SEED, AsJson, Overwrite
from priornet.cli.outputs import FIGURE, REPORT, RESULTS, check_outputs, make_folder
from priornet.cli.terminal import coloured, method_table, print_lines

if TYPE_CHECKING:
    from rich.table import Table

    from priornet.demo import Study


_FILES = {
    "synthetic.json": RESULTS,
    "diabetes.json": RESULTS,
    "synthetic.png": FIGURE,
    "report.html": REPORT,
    "diabetes-endd.html": REPORT,
}


class Preset(StrEnum):
    """Presets of the demo, named here so that the help need not import it."""

    DEMO = "demo"
    PAPER = "paper"
    SMOKE = "smoke"


_Out = Annotated[Path, typer.Option(help="Folder for the report, figure and results.")]
_Preset = Annotated[
    Preset,
    typer.Option(
        help="demo: under two minutes. paper: the synthetic set as long as in the paper, some "
        "minutes. smoke: seconds, too short to learn."
    ),
]
_Seed = Annotated[
    int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of data and training.")
]
_DEFAULT = Path("priornet-demo")


def demo(
    out: _Out = _DEFAULT,
    preset: _Preset = Preset.DEMO,
    seed: _Seed = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show the methods side by side on two data sets, and write a report.

    On the paper's synthetic curve an ensemble of ten networks, one network distilled from it (EnD2)
    and one prior network (NWPN): where there was data, data uncertainty should match the noise;
    where there was none, knowledge uncertainty should grow. Then the same, deep evidential
    regression (DER) and a single network on a table of 442 patients, a fifth of them held out.
    """
    check_outputs(((out / name, kind) for name, kind in _FILES.items()), overwrite=overwrite)
    make_folder(out)

    from rich.console import Console

    from priornet.demo import run

    found = run(out, preset.value, seed=seed, verbose=True)
    paths = {"report": found.report, "endd_report": found.student_report, "figure": found.figure}
    if as_json:
        studies = {"synthetic": found.curve.results, "diabetes": found.table.results}
        typer.echo(json.dumps({**studies, **{name: str(path) for name, path in paths.items()}}))
        return
    console = Console()
    console.print(_curve_table(found.curve))
    console.print(_patient_table(found.table))
    places = (f"EnD2 on the table: {found.student_report}", f"Report: {found.report}")
    print_lines([f"{found.seconds:.0f} s. Figure: {found.figure}", *places])


def _curve_table(study: Study) -> Table:
    """Show accuracy, data uncertainty against the known noise, and knowledge in and out."""
    low, high = study.results["config"]["test_out_range"]
    inside = f"|x| < {study.results['config']['train_edge']:g}"
    spread = (f"knowledge sd\n{inside}", f"knowledge sd\n{low:g} < |x| < {high:g}")
    headers = ("RMSE", "NLL", "data sd\noff by", *spread, "AUROC\nin / out")
    table = method_table("The paper's synthetic set", headers)
    truth = study.results["truth"]
    table.add_row("Truth", *(f"{truth[name]['mean']:.3f}" for name in ("rmse", "nll")), "0%")
    for name, line in study.lines.items():
        scores = (f"{line.rmse:.3f}", f"{line.nll:.3f}", f"{line.share:.0%}")
        knowledge = (f"{line.inside:.3f}", f"{line.outside:.1f}", f"{line.auc:.3f}")
        table.add_row(coloured(name), *scores, *knowledge)
    return table


def _patient_table(study: Study) -> Table:
    """Show accuracy, intervals, and knowledge of held-out rows before and after one is moved."""
    results = study.results
    moved = f"moved {results['config']['shift']:g} sd"
    spread = ("knowledge sd\nas they are", f"knowledge sd\n{moved}")
    table = method_table(
        f"Diabetes: {results['n_train']} patients to learn from, {results['n_test']} held out",
        ("RMSE", "NLL", "90% interval\nholds", *spread, "AUROC\nin / out"),
    )
    for name, line in study.lines.items():
        knowledge = ("-", "-", "-")  # a single Gaussian has none
        if line.inside > 0:
            knowledge = (f"{line.inside:.1f}", f"{line.outside:.1f}", f"{line.auc:.3f}")
        scores = (f"{line.rmse:.1f}", f"{line.nll:.3f}", f"{line.share:.0%}")
        table.add_row(coloured(name), *scores, *knowledge)
    return table
