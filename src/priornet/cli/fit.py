"""``priornet fit``: from a table to a model folder and a report."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from priornet.cli.errors import InputError, blamed_on, called, one_line
from priornet.cli.inputs import Labelled, read_labelled
from priornet.cli.kinds import REPORT
from priornet.cli.options import LARGEST_SEED, AsJson, Method, Overwrite, Quiet
from priornet.cli.output import (
    counted,
    index_left_out,
    print_evaluation,
    print_lines,
    rows_without_target,
    say_columns,
    write_report,
)
from priornet.cli.outputs import check_model_folder, check_outputs, still_written

if TYPE_CHECKING:
    from priornet.evaluation.evaluate_model import Evaluation
    from priornet.tables.column_summaries import ColumnSummary

__all__ = ["Request", "fit", "train"]

_DEFAULT = Method("endd")
_FEWEST = 5  # held-out rows; fewer say nothing


@dataclass(frozen=True)
class Request:
    """What to fit, and where to put it."""

    data: str
    targets: tuple[str, ...]
    out: Path
    method: Method = _DEFAULT
    ignore: tuple[str, ...] = ()
    report: Path | None = None
    holdout: float = 0.15
    coverage: float = 0.9
    seed: int = 0
    epochs: int | None = None
    calibration: float | None = None
    overwrite: bool = False

    @property
    def report_path(self) -> Path | None:
        """Where a report goes, if there are rows to report on."""
        if self.holdout == 0:
            return None
        folder = self.out if self.out.name else self.out.resolve()
        return self.report or folder.with_name(f"{folder.name}-report.html")


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
    ] = Request.method,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as an id; may repeat.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="HTML report; by default beside the model, its name with -report.html behind."
        ),
    ] = Request.report,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of rows kept for the evaluation; 0: none.")
    ] = Request.holdout,
    coverage: Annotated[
        float, typer.Option(help="Coverage of the intervals that the evaluation shows.")
    ] = Request.coverage,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the split and of the training.")
    ] = Request.seed,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default as many as pay.")
    ] = Request.epochs,
    calibration: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            help="Share of the training rows kept for conformal intervals; by default a tenth, at "
            "most 1000 rows, none of fewer than 100.",
        ),
    ] = Request.calibration,
    overwrite: Overwrite = Request.overwrite,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a table, evaluate it on held-out rows, save it.

    Says on standard error how each column is read, and warns of those that may be meant otherwise.
    Numbers, text, categories, dates and holes are handled; rows without target are left out.
    Messages count rows from 1, without the header.
    """
    request = Request(
        data,
        tuple(target),
        out,
        method,
        tuple(ignore or ()),
        report=report,
        holdout=holdout,
        coverage=coverage,
        seed=seed,
        epochs=epochs,
        calibration=calibration,
        overwrite=overwrite,
    )
    results, evaluation = train(request, verbose=not quiet)
    if not quiet:
        typer.echo(f"{called(data)}: {counted(results['n_rows_read'])} read.", err=True)
    if as_json:
        typer.echo(json.dumps(results))
        return
    if evaluation is not None:
        print_evaluation(evaluation)
    places = [f"Model: {results['model']}"]
    if results["report"] is not None:
        places.append(f"Report: {results['report']}")
    print_lines([*results["notes"], *places])


def train(request: Request, *, verbose: bool) -> tuple[dict[str, Any], Evaluation | None]:
    """Read, split, train, evaluate, and only then write.

    Returns:
        What ``--json`` prints; and the evaluation, None where there are too few rows for one.
    """
    _check(request, quiet=not verbose)
    rows = read_labelled(request.data, request.targets, None, request.ignore)
    summaries = _check_rows(called(request.data), rows)
    heard = _column_notes(rows, summaries)
    say_columns(called(request.data), summaries if verbose else (), heard)
    training, held = _split(rows, request.holdout, request.seed)

    from priornet.cli.methods import estimator_for
    from priornet.evaluation.evaluate_model import evaluate

    model = estimator_for(
        request.method,
        request.seed,
        epochs=request.epochs,
        calibration=request.calibration,
        verbose=verbose,
    )
    evaluation = None
    with blamed_on(request.data):
        more = _fit(model, training)
        say_columns(called(request.data), (), more)
    if held is not None:
        with blamed_on(request.data, held.features.index):
            evaluation = evaluate(model, held.features, held.y, coverage=request.coverage)
    model.save(request.out)
    report = request.report_path
    if evaluation is not None and report is not None:
        with still_written(request.out):
            write_report(report, evaluation)
    return {
        "model": str(request.out),
        "report": None if evaluation is None else str(report),
        "method": str(request.method),
        "seed": request.seed,
        "targets": list(request.targets),
        "features": list(rows.features.columns),
        "n_rows_read": rows.n_read,
        "n_training_rows": len(training.targets),
        "n_holdout_rows": 0 if held is None else len(held.targets),
        "n_rows_without_target": rows.n_left_out,
        "columns": [summary.to_json() for summary in summaries],
        "warnings": [*heard, *more],
        "holdout": None if evaluation is None else evaluation.metrics,
        "interval": None if evaluation is None else evaluation.interval,
        "notes": _notes(request, rows, held),
    }, evaluation


def _check(request: Request, *, quiet: bool) -> None:
    """Everything that can be known before the table is read."""
    if not 0 < request.coverage < 1:
        raise InputError(f"--coverage must lie between 0 and 1; got {request.coverage:g}.")
    if request.report is not None and request.holdout == 0:
        raise InputError("--report needs held-out rows; give --holdout a share above 0.")
    if request.report is not None and request.report.resolve().is_relative_to(
        request.out.resolve()
    ):
        raise InputError(f"{request.report}: it lies in the model's folder; name a file beside it.")
    check_outputs(
        [(request.report_path, REPORT)],
        [request.data],
        overwrite=request.overwrite,
        quiet=quiet,
    )
    check_model_folder(request.out, [request.data], quiet=quiet)


def _check_rows(path: str, rows: Labelled) -> tuple[ColumnSummary, ...]:
    """What an estimator would find too, said in rows of the file rather than of the split.

    Returns:
        How each column is read.
    """
    from priornet.tables.preprocessing import TablePreprocessor
    from priornet.tables.read import located

    if len(rows.targets) < 2:
        raise InputError(f"{path}: one row with a target is not enough to learn from.")
    for name in rows.targets.columns:
        values = rows.targets[name].to_numpy()
        if (values == values[0]).all():
            raise InputError(
                f'{path}: the target "{name}" is constant, {values[0]:g} in every row; '
                "there is nothing to learn."
            )
    with blamed_on(path), located(path, rows.features.index):
        return TablePreprocessor().fit(rows.features).summaries_


def _column_notes(rows: Labelled, summaries: Sequence[ColumnSummary]) -> list[str]:
    """Columns and targets that may be meant otherwise, in rows of the file."""
    from priornet.tables.column_summaries import column_notes
    from priornet.tables.target_columns import target_notes

    def row(place: int) -> object:
        return rows.features.index[place]

    names = tuple(map(str, rows.targets.columns))
    notes = target_notes(rows.targets.to_numpy(), names, row)
    return [*notes, *column_notes(summaries, row)]


def _fit(model: Any, training: Labelled) -> list[str]:
    """Train, and return what the estimator warns of but columns, which were looked at before."""
    from priornet.tables.column_summaries import ColumnWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(training.features, training.y)
    return [one_line(str(w.message)) for w in caught if not issubclass(w.category, ColumnWarning)]


def _split(rows: Labelled, holdout: float, seed: int) -> tuple[Labelled, Labelled | None]:
    import numpy as np

    n_rows = len(rows.targets)
    n_held = round(holdout * n_rows)
    if n_held < _FEWEST or n_rows - n_held < 2:
        return rows, None
    order = np.random.default_rng(seed).permutation(n_rows)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    return rows.take(kept), rows.take(held)


def _notes(request: Request, rows: Labelled, held: Labelled | None) -> list[str]:
    notes = rows_without_target(rows.n_left_out)
    notes += index_left_out(rows.index)
    if held is None and request.holdout > 0:
        few = counted(len(rows.targets))  # two or more
        notes.append(f"{few} are too few to hold some out: no evaluation.")
    return notes
