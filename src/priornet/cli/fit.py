"""``priornet fit``: a model folder and a report from a table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.inputs import (
    AsJson,
    Coverage,
    Epochs,
    Holdout,
    Ignore,
    Method,
    Overwrite,
    Quiet,
    Seed,
    Transform,
    check_coverage,
)
from priornet.cli.outputs import REPORT, check_model_folder, check_outputs, still_written
from priornet.cli.terminal import print_evaluation, print_lines, say_columns
from priornet.messages import InputError, called, counted
from priornet.methods import method_named

if TYPE_CHECKING:
    from priornet.estimators import BaseRegressor

_DEFAULT = Method("endd")

_Data = Annotated[str, typer.Argument(help='CSV or Parquet file; "-" reads CSV from stdin.')]
_Targets = Annotated[list[str], typer.Option(help="Column to predict; repeat for several.")]
_Out = Annotated[Path, typer.Option(help="Folder for the model.")]
_Method = Annotated[
    Method,
    typer.Option(
        help="endd: an ensemble distilled into one prior network. end, md-end: into Gaussians. "
        "ensemble: the ensemble itself. shared: members with one body, with boosted trees as a "
        "witness. rkl: a prior network. der: evidential regression. "
        "single: one Gaussian network, without knowledge uncertainty."
    ),
]
_Report = Annotated[
    Path | None,
    typer.Option(
        help="HTML report; by default beside the model, its name with -report.html behind."
    ),
]
_Calibration = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.9,
        help="Share of the training rows kept for conformal intervals; by default a tenth, at "
        "most 1000 rows, none of fewer than 100.",
    ),
]

_MaxLabels = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Inputs of a column of text at most, one for each label, the rarer ones sharing one; "
        "by default one for each label of three rows or more.",
    ),
]
_TargetTransform = Annotated[
    Transform | None,
    typer.Option(
        help="Scale on which targets are learnt: log for positive ones, or asinh, yeo-johnson or "
        "quantile for skewed ones; auto takes the one of the highest held-out likelihood."
    ),
]
_Trees = Annotated[
    bool | None,
    typer.Option(
        help="Boosted trees as a witness, for --method shared; by default held-out rows decide if "
        "they stay."
    ),
]


def fit(
    data: _Data,
    target: _Targets,
    out: _Out,
    method: _Method = _DEFAULT,
    ignore: Ignore = None,
    report: _Report = None,
    holdout: Holdout = 0.15,
    coverage: Coverage = 0.9,
    seed: Seed = 0,
    epochs: Epochs = None,
    calibration: _Calibration = None,
    max_labels: _MaxLabels = None,
    target_transform: _TargetTransform = None,
    trees: _Trees = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a table, evaluate it on held-out rows, save it.

    Says on standard error how each column is read, and warns of those that may be meant otherwise.
    Numbers, text, categories, dates and missing values are handled; rows without target are left
    out. Messages count rows from 1, without the header.
    """
    check_coverage(coverage)
    written = _report_path(report, out, holdout)
    check_outputs([(written, REPORT)], [data], overwrite=overwrite, quiet=quiet)
    check_model_folder(out, [data], quiet=quiet)

    from priornet.evaluation import fit_file
    from priornet.report import write_report

    tell = partial(say_columns, called(data), quiet=quiet)
    if trees is not None and method_named(method).estimator != "SharedPriorRegressor":
        raise typer.BadParameter("--trees and --no-trees are for --method shared.")
    given: dict[str, Any] = {
        "calibration_fraction": calibration,
        "max_labels": max_labels,
        "trees": trees,
    }
    if target_transform is not None:
        given["target_transform"] = target_transform.value
    model = _estimator(method, epochs, given, random_state=seed, verbose=not quiet)
    rows: Any = {"ignore": ignore or (), "holdout": holdout, "seed": seed}
    found = fit_file(model, data, target, **rows, coverage=coverage, tell=tell)
    found.model.save(out)
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
    method: Method, epochs: int | None, given: dict[str, Any], **settings: Any
) -> BaseRegressor:
    """Make an estimator with the defaults of its class, but for what is given."""
    from priornet.estimators import make_estimator

    chosen = method_named(method)
    if epochs is not None:
        settings["epochs"] = epochs
        if chosen.needs_teacher:
            settings["student_epochs"] = epochs
    settings |= {name: value for name, value in given.items() if value is not None}
    return make_estimator(chosen.key, **settings)


def _report_path(report: Path | None, out: Path, holdout: float) -> Path | None:
    """Return the path of the report: beside the model unless it is given, never in its folder."""
    if report is None:
        folder = out if out.name else out.resolve()
        return folder.with_name(f"{folder.name}-report.html") if holdout > 0 else None
    if holdout == 0:
        raise InputError("--report needs held-out rows; give --holdout a share above 0.")
    if report.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{report}: it lies in the model's folder; name a file beside it.")
    return report
