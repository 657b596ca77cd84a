"""``priornet distill``: from an ensemble of any kind to one small network."""

from __future__ import annotations

import inspect
import json
import os
import sys
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from priornet.cli.inputs import LARGEST_SEED, AsJson, Quiet, check_stdin, load_model
from priornet.cli.outputs import check_model_folder
from priornet.cli.terminal import print_lines, say_columns
from priornet.messages import InputError, blamed_on, called, counted, one_line
from priornet.methods import METHODS
from priornet.methods import Objective as Student

if TYPE_CHECKING:
    from priornet.distill import Faithfulness


_ANSWERS = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


class Objective(StrEnum):
    """Objective of a student, as spelled on the command line."""

    _ignore_ = "method"
    for method in METHODS.values():
        if method.objective is not None:
            vars()[method.key] = method.objective


_DEFAULT = Objective("endd")


def distill(
    teacher: Annotated[
        str,
        typer.Option(
            help="Folder of an ensemble that `priornet fit` wrote; module:object, a fitted model, "
            "a function of a table, or a function without arguments that makes one; or a Parquet "
            "or CSV file of inputs with columns mean_0, variance_0, mean_1, ..."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the student.")],
    data: Annotated[
        str | None,
        typer.Option(help="CSV or Parquet file of inputs; a file of answers has its own."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column of known targets, to score both against; may repeat."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as an id; may repeat.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="More inputs, around which the teacher is asked too.")
    ] = None,
    objective: Annotated[
        Objective,
        typer.Option(
            help="endd: a prior network, which keeps total, data and knowledge uncertainty. "
            "end: one Gaussian. md-end: a Gaussian per member."
        ),
    ] = _DEFAULT,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of rows kept for the comparison; 0: none.")
    ] = 0.15,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the split and of the training.")
    ] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default as many as pay.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Distil an ensemble into one small network, without targets, and compare the two.

    The comparison uses rows of the table and out-of-domain rows, and names what is not faithful.
    The student's folder works with `priornet predict` and `evaluate`, without the teacher.
    """
    check_stdin(data, unlabelled)
    check_model_folder(out, (teacher, data, unlabelled), quiet=quiet)
    from priornet.distill import StoredTeacher, TeacherError
    from priornet.estimators import DistilledRegressor
    from priornet.evaluation import distil_file

    found_teacher = _find_teacher(teacher, {*(target or ()), *(ignore or ())})
    if data is None and not isinstance(found_teacher, StoredTeacher):
        raise InputError("--data is missing: name a table of inputs to ask the teacher about.")
    source = called(data or teacher)
    student = DistilledRegressor(
        found_teacher,
        cast(Student, objective.value),
        student_epochs=epochs or "auto",
        random_state=seed,
        verbose=not quiet,
    )
    try:
        found = distil_file(
            student,
            data or teacher,
            target or (),
            out,
            ignore=ignore or (),
            unlabelled=unlabelled,
            holdout=holdout,
            seed=seed,
            tell=partial(say_columns, source, quiet=quiet),
        )
    except TeacherError as error:
        raise InputError(f'--teacher "{teacher}": {one_line(error)}') from error
    for problem in found.problems:
        typer.echo(f"Warning: {problem}", err=True)
    if not quiet:
        typer.echo(f"{source}: {counted(found.rows.labelled.n_read)} read.", err=True)
    if as_json:
        given = {"student": str(out), "teacher": teacher, "objective": str(objective)}
        typer.echo(json.dumps({**given, "seed": seed, **found.to_json()}))
        return
    _print_comparison(found.faithfulness)
    print_lines([*found.notes, f"Student: {out}"])


def _find_teacher(name: str, others: set[str]) -> Any:
    """Load a model's folder, read a file of answers, or import an object of a module.

    Args:
        name: As given to ``--teacher``.
        others: Columns of a file of answers that are no inputs.
    """
    if name.endswith(_ANSWERS):
        from priornet.distill import StoredTeacher

        with blamed_on(name):
            teacher = StoredTeacher(name)
            own = tuple(column for column in teacher.feature_names if column not in others)
            return teacher if own == teacher.feature_names else StoredTeacher(name, columns=own)
    if ":" in name and not Path(name).exists():
        return _import_teacher(name)
    return load_model(Path(name))


def _import_teacher(name: str) -> Any:
    """Import an object of a module, such as one in the working directory.

    A function without arguments makes the teacher; any other function is a teacher.
    """
    from priornet.distill import as_teacher

    module_name, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
        if inspect.isfunction(found) and not inspect.signature(found).parameters:
            found = found()
        return as_teacher(found) if not hasattr(found, "predict_belief") else found
    except Exception as error:  # the user's own code may raise anything
        kind = type(error).__name__
        raise InputError(f'--teacher "{name}": {kind}: {one_line(error)}') from error
    finally:
        sys.path.remove(os.getcwd())


def _print_comparison(found: Faithfulness) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = f"The student on {found.inside.n_rows} rows, and on as many out-of-domain rows"
    if found.outside is None:
        title = f"The student on {found.inside.n_rows} rows"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for header in ("", "student", "teacher", "meaning"):
        table.add_column(header, justify="left" if header in ("", "meaning") else "right")
    for row in _comparison_rows(found):
        table.add_row(*row)
    Console().print(table)


def _comparison_rows(found: Faithfulness) -> list[tuple[str, str, str, str]]:
    inside, everywhere = found.inside, found.everywhere
    rows = [
        ("R2", _number(inside.r2), "1", "of the student's mean, against the teacher's"),
        ("rank, total", _number(everywhere.rank_total), "1", "correlation of total uncertainty"),
        ("rank, knowledge", _number(everywhere.rank_knowledge), "1", "of knowledge uncertainty"),
        (
            "NLL",
            _number(inside.nll),
            _number(inside.nll_teacher),
            "on targets drawn from the teacher",
        ),
    ]
    if found.truth is not None:
        own, other = found.truth["student"], found.truth["teacher"]
        for name, words in (("rmse", "error in target units"), ("nll", "on the true targets")):
            title = f"true {name.upper()}"
            rows.append((title, _number(own[name]), _number(other[name]), words))
    size = "-" if found.bytes_teacher is None else _number(found.bytes_teacher / 1000)
    rows.append(("kB", _number(found.bytes_student / 1000), size, _size(found.times_smaller)))
    speeds = (found.rows_per_second_student, found.rows_per_second_teacher)
    faster = f"here; {found.times_faster:.3g} times the teacher's"
    rows.append(("rows per second", _number(speeds[0]), _number(speeds[1]), faster))
    return rows


def _size(smaller: float | None) -> str:
    if smaller is None:
        return "size"
    part = f"1/{smaller:.3g} of" if smaller > 1 else f"{1 / smaller:.3g} times"
    return f"size; {part} the teacher's"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
