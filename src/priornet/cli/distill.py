"""``priornet distill``: from an ensemble of any kind to one small network."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from priornet.cli.inputs import (
    AsJson,
    Epochs,
    Holdout,
    Ignore,
    Quiet,
    Seed,
    check_stdin,
    load_model,
)
from priornet.cli.outputs import check_model_folder
from priornet.cli.terminal import print_lines, print_table, say_columns, score
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

_Teacher = Annotated[
    str,
    typer.Option(
        help="Folder of an ensemble that `priornet fit` wrote; module:object, a fitted model, "
        "a function of a table, or a function without arguments that makes one; or a Parquet "
        "or CSV file of inputs with columns mean_0, variance_0, mean_1, ..."
    ),
]
_Out = Annotated[Path, typer.Option(help="Folder for the student.")]
_Data = Annotated[
    str | None,
    typer.Option(help="CSV or Parquet file of inputs; a file of answers has its own."),
]
_Targets = Annotated[
    list[str] | None,
    typer.Option(help="Column of known targets, to score both against; may repeat."),
]
_Unlabelled = Annotated[
    str | None, typer.Option(help="More inputs, around which the teacher is asked too.")
]
_Objective = Annotated[
    Objective,
    typer.Option(
        help="endd: a prior network, which keeps total, data and knowledge uncertainty. "
        "end: one Gaussian. md-end: a Gaussian per member."
    ),
]


def distill(
    teacher: _Teacher,
    out: _Out,
    data: _Data = None,
    target: _Targets = None,
    ignore: Ignore = None,
    unlabelled: _Unlabelled = None,
    objective: _Objective = _DEFAULT,
    holdout: Holdout = 0.15,
    seed: Seed = 0,
    epochs: Epochs = None,
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
    source, kind = data or teacher, cast(Student, objective.value)
    settings: Any = {"student_epochs": epochs or "auto", "random_state": seed, "verbose": not quiet}
    student = DistilledRegressor(found_teacher, kind, **settings)
    rows: Any = {"ignore": ignore or (), "unlabelled": unlabelled, "holdout": holdout, "seed": seed}
    tell = partial(say_columns, called(source), quiet=quiet)
    try:
        found = distil_file(student, source, target or (), out, **rows, tell=tell)
    except TeacherError as error:
        raise InputError(f'--teacher "{teacher}": {one_line(error)}') from error
    for problem in found.problems:
        typer.echo(f"Warning: {problem}", err=True)
    if not quiet:
        typer.echo(f"{called(source)}: {counted(found.rows.labelled.n_read)} read.", err=True)
    if as_json:
        given = {"student": str(out), "teacher": teacher, "objective": str(objective)}
        typer.echo(json.dumps({**given, "seed": seed, **found.to_json()}))
        return
    compared = found.faithfulness
    title = f"The student on {compared.inside.n_rows} rows"
    title += "" if compared.outside is None else ", and on as many out-of-domain rows"
    print_table(title, ("student", "teacher", "meaning"), _comparison_rows(compared))
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


def _comparison_rows(found: Faithfulness) -> Iterator[tuple[str, str, str, str]]:
    inside, everywhere = found.inside, found.everywhere
    yield "R2", score(inside.r2), "1", "of the student's mean, against the teacher's"
    yield "rank, total", score(everywhere.rank_total), "1", "correlation of total uncertainty"
    yield "rank, knowledge", score(everywhere.rank_knowledge), "1", "of knowledge uncertainty"
    yield "NLL", score(inside.nll), score(inside.nll_teacher), "on targets drawn from the teacher"
    if found.truth is not None:
        own, other = found.truth["student"], found.truth["teacher"]
        for name, words in (("rmse", "error in target units"), ("nll", "on the true targets")):
            yield f"true {name.upper()}", score(own[name]), score(other[name]), words
    size = "-" if found.bytes_teacher is None else score(found.bytes_teacher / 1000)
    yield "kB", score(found.bytes_student / 1000), size, _size(found.times_smaller)
    speeds = (found.rows_per_second_student, found.rows_per_second_teacher)
    faster = f"here; {found.times_faster:.3g} times the teacher's"
    yield "rows per second", score(speeds[0]), score(speeds[1]), faster


def _size(smaller: float | None) -> str:
    if smaller is None:
        return "size"
    part = f"1/{smaller:.3g} of" if smaller > 1 else f"{1 / smaller:.3g} times"
    return f"size; {part} the teacher's"
