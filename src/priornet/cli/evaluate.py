"""``priornet evaluate``: how good a model is on rows whose targets are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on, called
from priornet.cli.inputs import check_stdin, load_model, model_columns, read_features, read_labelled
from priornet.cli.kinds import REPORT
from priornet.cli.options import AsJson, ModelPath, Overwrite
from priornet.cli.output import (
    counted,
    print_evaluation,
    print_lines,
    rows_without_target,
    write_report,
)
from priornet.cli.outputs import check_outputs

if TYPE_CHECKING:
    from priornet.evaluation.evaluate_model import Evaluation

__all__ = ["evaluate", "evaluate_file"]


def evaluate(
    model: ModelPath,
    data: Annotated[str, typer.Argument(help='CSV or Parquet with targets; "-" reads stdin.')],
    ood: Annotated[
        str | None, typer.Option(help="Rows from elsewhere, which uncertainty should tell apart.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report there.")] = None,
    coverage: Annotated[float, typer.Option(help="Coverage of the intervals shown.")] = 0.9,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Score a saved model on a table with known targets."""
    results, evaluation = evaluate_file(model, data, ood, report, coverage, overwrite=overwrite)
    typer.echo(f"{called(data)}: {counted(results['n_rows_read'])} read.", err=True)
    if as_json:
        typer.echo(json.dumps(results))
        return
    print_evaluation(evaluation)
    print_lines(rows_without_target(results["n_rows_without_target"]))
    print_lines([f"Report: {report}"] if report is not None else [])


def evaluate_file(
    path: Path,
    data: str,
    ood: str | None,
    report: Path | None,
    coverage: float,
    *,
    overwrite: bool = False,
) -> tuple[dict[str, Any], Evaluation]:
    """Load, read, evaluate, write the report.

    Returns:
        What ``--json`` prints, and the evaluation.
    """
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {coverage:g}.")
    check_stdin(data, ood)
    check_outputs([(report, REPORT)], (path, data, ood), overwrite=overwrite)
    model = load_model(path)
    columns = model_columns(model)
    known = model.fitted_.preprocessor.columns_
    rows = read_labelled(data, model.fitted_.targets.names, columns, known=known)
    if len(rows.targets) < 2:
        raise InputError(f"{called(data)}: one row with a target is not enough for an evaluation.")
    others = None if ood is None else read_features(ood, columns, known)

    from priornet.evaluation.evaluate_model import evaluate
    from priornet.tables.read import located

    if others is not None and ood is not None:
        with blamed_on(ood), located(called(ood)):  # its values, before those of the first table
            model.predict(others)
    index = rows.features.index
    with blamed_on(data, index), located(called(data), index):
        evaluation = evaluate(model, rows.features, rows.y, others, coverage=coverage)
    if report is not None:
        write_report(report, evaluation)
    return {
        "model": str(path),
        "data": data,
        "ood": ood,
        "report": None if report is None else str(report),
        "n_rows_read": rows.n_read,
        "n_rows_without_target": rows.n_left_out,
        "scores": evaluation.metrics,
        "interval": evaluation.interval,
    }, evaluation
