"""``priornet demo``: what the methods know, on the paper's synthetic set and on a real table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.kinds import FIGURE, REPORT, RESULTS
from priornet.cli.options import LARGEST_SEED, AsJson, Overwrite
from priornet.cli.output import coloured, method_table
from priornet.cli.outputs import check_outputs, make_folder
from priornet_paper.synthetic.command import run_synthetic

if TYPE_CHECKING:
    from rich.table import Table

    from priornet.demo import Study

__all__ = ["Preset", "demo"]

_KNOWLEDGE = "variance_of_mean"
_FILES = {
    "synthetic.json": RESULTS,
    "diabetes.json": RESULTS,
    "synthetic.png": FIGURE,
    "report.html": REPORT,
    "diabetes-endd.html": REPORT,
}


class Preset(StrEnum):
    """Presets of the demo, named here so that the help need not import the experiments."""

    DEMO = "demo"
    PAPER = "paper"
    SMOKE = "smoke"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, figure and results.")] = Path(
        "priornet-demo"
    ),
    preset: Annotated[
        Preset,
        typer.Option(
            help="demo: under two minutes. paper: the synthetic set as long as in the paper, some "
            "minutes. smoke: seconds, too short to learn."
        ),
    ] = Preset.DEMO,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of data and training.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show the methods side by side on two data sets, and write a report.

    On the paper's synthetic curve an ensemble of ten networks, one network
    distilled from it (EnD2) and one prior network (NWPN): where there was
    data, data uncertainty should match the noise; where there was none,
    knowledge uncertainty should grow. Then the same, deep evidential
    regression (DER) and a single network on a table of 442 patients, a fifth
    of them held out.
    """
    check_outputs(((out / name, kind) for name, kind in _FILES.items()), overwrite=overwrite)
    make_folder(out)

    import json

    from priornet.evaluation.results import write_results

    synthetic = run_synthetic(preset, seed)
    write_results(out / "synthetic.json", synthetic)
    diabetes = _run_diabetes(preset, seed)
    write_results(out / "diabetes.json", diabetes.results)
    paths = _write_pages(out, synthetic, diabetes)
    if as_json:
        found = {"synthetic": synthetic, "diabetes": diabetes.results}
        typer.echo(json.dumps({**found, **{name: str(path) for name, path in paths.items()}}))
    else:
        _print(synthetic, diabetes.results, paths)


def _run_diabetes(preset: Preset, seed: int | None) -> Study:
    """The paper has no such table: its preset is the demo's here."""
    from dataclasses import replace

    from priornet.demo import PRESETS, study

    config = PRESETS[Preset.DEMO if preset is Preset.PAPER else preset]
    return study(config if seed is None else replace(config, seed=seed), verbose=True)


def _write_pages(out: Path, synthetic: dict[str, Any], diabetes: Study) -> dict[str, Path]:
    """The figure, the page that compares the methods, and the full report of one of them."""
    from priornet.report import write_comparison, write_report
    from priornet.report.comparison import Figure
    from priornet.report.figure_files import figure_bytes
    from priornet.report.synthetic import draw
    from priornet.writing import write_bytes

    figure = out / "synthetic.png"
    write_bytes(figure, figure_bytes(draw(synthetic), "png"))
    counts = diabetes.results
    report = write_comparison(
        list(diabetes.evaluations.values()),
        out / "report.html",
        title="What the models know",
        lede=f"Progression of diabetes, learnt from {counts['n_train']} patients and predicted for "
        f"{counts['n_test']} others. Out of domain are the same {counts['n_test']} with one "
        f"measurement each moved by {counts['config']['shift']:g} standard deviations.",
        figures=[
            Figure(
                figure.read_bytes(),
                "The paper's synthetic set",
                "The noise is largest at x = 0; training inputs lie in the shaded region. Data "
                "uncertainty should follow the dashed truth, knowledge uncertainty should take "
                "over outside.",
            )
        ],
    )
    full = write_report(diabetes.evaluations["EnD2"], out / "diabetes-endd.html")
    return {"report": report, "endd_report": full, "figure": figure}


def _print(synthetic: dict[str, Any], diabetes: dict[str, Any], paths: dict[str, Path]) -> None:
    from rich.console import Console

    console = Console()
    console.print(_synthetic_table(synthetic))
    console.print(_diabetes_table(diabetes))
    seconds = synthetic["seconds"] + diabetes["seconds"]
    for line in (
        f"{seconds:.0f} s. Figure: {paths['figure']}",
        f"EnD2 on the table: {paths['endd_report']}",
        f"Report: {paths['report']}",
    ):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _synthetic_table(results: dict[str, Any]) -> Table:
    """Accuracy, data uncertainty against the known noise, knowledge inside and outside."""
    low, high = results["config"]["test_out_range"]
    edge = results["config"]["train_edge"]
    inside, outside = f"|x| < {edge:g}", f"{low:g} < |x| < {high:g}"
    knowledge = (f"knowledge sd\n{inside}", f"knowledge sd\n{outside}")
    headers = ("RMSE", "NLL", "data sd\noff by", *knowledge, "AUROC\nin / out")
    table = method_table("The paper's synthetic set", headers)
    truth = results["truth"]
    table.add_row("Truth", *(f"{truth[name]['mean']:.3f}" for name in ("rmse", "nll")), "0%")
    for name, method in results["methods"].items():
        table.add_row(
            coloured(name),
            f"{method['rmse']['mean']:.3f}",
            f"{method['nll']['mean']:.3f}",
            f"{method['data_std_error']['mean']:.0%}",
            f"{method['in_domain'][_KNOWLEDGE]['mean'] ** 0.5:.3f}",
            f"{method['out_of_domain'][_KNOWLEDGE]['mean'] ** 0.5:.1f}",
            f"{method['ood_auc'][_KNOWLEDGE]['mean']:.3f}",
        )
    return table


def _diabetes_table(results: dict[str, Any]) -> Table:
    """Accuracy, intervals, and knowledge of held-out rows as they are and with an error in them."""
    moved = f"moved {results['config']['shift']:g} sd"
    spread = ("knowledge sd\nas they are", f"knowledge sd\n{moved}")
    table = method_table(
        f"Diabetes: {results['n_train']} patients to learn from, {results['n_test']} held out",
        ("RMSE", "NLL", "90% interval\nholds", *spread, "AUROC\nin / out"),
    )
    for name, method in results["methods"].items():
        inside, outside = method["in_domain"][_KNOWLEDGE], method["out_of_domain"][_KNOWLEDGE]
        knowledge = ("-", "-", "-")  # a single Gaussian has none
        if inside["mean"] > 0:
            auc = method["ood_auc"][_KNOWLEDGE]["mean"]
            spread = (f"{part['mean'] ** 0.5:.1f}" for part in (inside, outside))
            knowledge = (*spread, f"{auc:.3f}")
        table.add_row(
            coloured(name),
            f"{method['rmse']['mean']:.1f}",
            f"{method['nll']['mean']:.3f}",
            f"{method['coverage']['0.9']['mean']:.0%}",
            *knowledge,
        )
    return table
