"""``priornet evaluate``: scores of a model on rows whose targets are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from priornet.cli.inputs import (
    AsJson,
    Coverage,
    ModelPath,
    Overwrite,
    check_coverage,
    check_stdin,
    load_model,
)
from priornet.cli.outputs import REPORT, check_outputs
from priornet.cli.terminal import print_evaluation, print_lines
from priornet.messages import called, counted


def evaluate(
    model: ModelPath,
    data: Annotated[str, typer.Argument(help='CSV or Parquet with targets; "-" reads stdin.')],
    ood: Annotated[
        str | None, typer.Option(help="Out-of-domain rows, which uncertainty should tell apart.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report there.")] = None,
    coverage: Coverage = 0.9,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Score a saved model on a table with known targets."""
    check_coverage(coverage)
    check_stdin(data, ood)
    check_outputs([(report, REPORT)], (model, data, ood), overwrite=overwrite)
    fitted = load_model(model)

    from priornet.evaluation import evaluate_file
    from priornet.report import write_report

    found = evaluate_file(fitted, data, ood, coverage=coverage)
    if report is not None:
        write_report(found.evaluation, report)
    typer.echo(f"{called(data)}: {counted(found.rows.n_read)} read.", err=True)
    if as_json:
        named = {"model": str(model), "data": data, "ood": ood, "report": report and str(report)}
        typer.echo(json.dumps({**named, **found.to_json()}))
        return
    print_evaluation(found.evaluation)
    print_lines([*found.notes, *([] if report is None else [f"Report: {report}"])])
