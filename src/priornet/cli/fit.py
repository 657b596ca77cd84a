"""``priornet fit``: a model folder and a report from a table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.inputs import LARGEST_SEED, AsJson, Method, Overwrite, Quiet, check_coverage
from priornet.cli.outputs import REPORT, check_model_folder, check_outputs, still_written
from priornet.cli.terminal import print_evaluation, print_lines, say_columns
from priornet.messages import InputError, called, counted
from priornet.methods import method_named

if TYPE_CHECKING:
    from priornet.estimators import BaseRegressor


_DEFAULT = Method("endd")


def fit(
    data: Annotated[str, typer.Argument(help='CSV or Parquet file; "-" reads CSV from stdin.')],
    target: Annotated[list[str], typer.Option(help="Column to predict; repeat for several.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    method: Annotated[
        Method,
        typer.Option(
            help="endd: an ensemble distilled into one prior network. end, md-end: into Gaussians. "
            "ensemble: the ensemble itself. rkl: a prior network. der: evidential regression. "
            "single: one Gaussian network, without knowledge uncertainty."
        ),
    ] = _DEFAULT,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as an id; may repeat.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML report; by default beside the model, its name with -report.html behind."
        ),
    ] = None,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of rows kept for the evaluation; 0: none.")
    ] = 0.15,
    coverage: Annotated[
        float, typer.Option(help="Coverage of the intervals that the evaluation shows.")
    ] = 0.9,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the split and of the training.")
    ] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default as many as pay.")
    ] = None,
    calibration: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            help="Share of the training rows kept for conformal intervals; by default a tenth, at "
            "most 1000 rows, none of fewer than 100.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a table, evaluate it on held-out rows, save it.

    Says on standard error how each column is read, and warns of those that may be meant otherwise.
    Numbers, text, categories, dates and holes are handled; rows without target are left out.
    Messages count rows from 1, without the header.
    """
    check_coverage(coverage)
    if report is not None and holdout == 0:
        raise InputError("--report needs held-out rows; give --holdout a share above 0.")
    if report is not None and report.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{report}: it lies in the model's folder; name a file beside it.")
    written = None if holdout == 0 else report or _beside(out)
    check_outputs([(written, REPORT)], [data], overwrite=overwrite, quiet=quiet)
    check_model_folder(out, [data], quiet=quiet)

    from priornet.evaluation import fit_file
    from priornet.report import write_report

    found = fit_file(
        _estimator(method, epochs, calibration, random_state=seed, verbose=not quiet),
        data,
        target,
        out,
        ignore=ignore or (),
        holdout=holdout,
        coverage=coverage,
        seed=seed,
        tell=partial(say_columns, called(data), quiet=quiet),
    )
    if found.evaluation is None:
        written = None
    elif written is not None:
        with still_written(out):
            write_report(found.evaluation, written)
    if not quiet:
        typer.echo(f"{called(data)}: {counted(found.rows.n_read)} read.", err=True)
    if as_json:
        named = {"model": str(out), "report": written and str(written), "method": method.value}
        typer.echo(json.dumps({**named, "seed": seed, **found.to_json()}))
        return
    if found.evaluation is not None:
        print_evaluation(found.evaluation)
    places = [f"Model: {out}", *([] if written is None else [f"Report: {written}"])]
    print_lines([*found.notes, *places])


def _estimator(
    method: Method, epochs: int | None, calibration: float | None, **settings: Any
) -> BaseRegressor:
    """Make an estimator with the defaults of its class, but for what is given."""
    from priornet.estimators import make_estimator

    chosen = method_named(method)
    if epochs is not None:
        settings["epochs"] = epochs
        if chosen.needs_teacher:
            settings["student_epochs"] = epochs
    if calibration is not None:
        settings["calibration_fraction"] = calibration
    return make_estimator(chosen.key, **settings)


def _beside(out: Path) -> Path:
    """Return the default path of the report."""
    folder = out if out.name else out.resolve()
    return folder.with_name(f"{folder.name}-report.html")
