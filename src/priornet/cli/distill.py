"""``priornet distill``: from an ensemble of any kind to one small network."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from priornet.cli.errors import InputError, blamed_on, called, one_line
from priornet.cli.inputs import check_stdin, model_columns
from priornet.cli.options import LARGEST_SEED, AsJson, Quiet
from priornet.cli.output import print_lines, say_columns
from priornet.cli.outputs import check_model_folder
from priornet.messages import counted
from priornet.methods import METHODS
from priornet.methods import Objective as Student

if TYPE_CHECKING:
    import pandas as pd

    from priornet.distill import Faithfulness
    from priornet.tables.column_summaries import ColumnSummary
    from priornet.tables.encoding import RawColumn
    from priornet.tables.preprocessing import TablePreprocessor

__all__ = ["Request", "distil", "distill"]

_FEWEST = 20  # held-out rows; with fewer the comparison is made on all
_SHOWN = 12  # columns that a sentence names


class Objective(StrEnum):
    """What the student predicts."""

    _ignore_ = "method"
    for method in METHODS.values():
        if method.objective is not None:
            vars()[method.key] = method.objective


_DEFAULT = Objective("endd")


@dataclass(frozen=True)
class Request:
    """What to distil, and where to put it."""

    teacher: str
    out: Path
    data: str | None = None
    targets: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unlabelled: str | None = None
    objective: Objective = _DEFAULT
    holdout: float = 0.15
    seed: int = 0
    epochs: int | None = None


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
    ] = Request.data,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column of known targets, to score both against; may repeat."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column to leave out, such as an id; may repeat.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="More inputs, around which the teacher is asked too.")
    ] = Request.unlabelled,
    objective: Annotated[
        Objective,
        typer.Option(
            help="endd: a prior network, which keeps total, data and knowledge uncertainty. "
            "end: one Gaussian. md-end: a Gaussian per member."
        ),
    ] = Request.objective,
    holdout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of rows kept for the comparison; 0: none.")
    ] = Request.holdout,
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the split and of the training.")
    ] = Request.seed,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows; by default as many as pay.")
    ] = Request.epochs,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Distil an ensemble into one small network, without targets, and compare the two.

    The student is asked and compared on rows and beyond them. It says where it is not faithful.
    Its folder works with `priornet predict` and `evaluate`; the teacher is not needed any more.
    """
    request = Request(
        teacher,
        out,
        data,
        tuple(target or ()),
        tuple(ignore or ()),
        unlabelled,
        objective,
        holdout,
        seed,
        epochs,
    )
    results, found = distil(request, verbose=not quiet)
    if not quiet:
        typer.echo(f"{called(data or teacher)}: {counted(results['n_rows_read'])} read.", err=True)
    if as_json:
        typer.echo(json.dumps(results))
        return
    _print_comparison(found)
    print_lines([*results["notes"], f"Student: {results['student']}"])


def distil(request: Request, *, verbose: bool) -> tuple[dict[str, Any], Faithfulness]:
    """Find the teacher, read, train, compare, and only then write.

    Returns:
        What ``--json`` prints, and the comparison.
    """
    check_stdin(request.data, request.unlabelled)
    inputs = (request.teacher, request.data, request.unlabelled)
    check_model_folder(request.out, inputs, quiet=not verbose)
    from priornet.distill.faithfulness import FaithfulnessWarning
    from priornet.tables.column_summaries import ColumnWarning
    from priornet.tables.labelled import index_left_out, rows_without_target

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        start = time.perf_counter()
        rows = _read(request)
        path = called(rows.path)
        say_columns(path, rows.summaries if verbose else (), rows.notes)
        student = _make(request, rows.teacher, verbose=verbose)
        with _blamed(request, path, rows.train_index):
            student.fit(rows.training, rows.y, unlabelled=rows.unlabelled)
        seconds = time.perf_counter() - start
        with _blamed(request, path, rows.held_index):
            found = student.faithfulness(rows.held, rows.held_y, seed=request.seed)
    student.save(request.out)
    own = (FaithfulnessWarning, ColumnWarning)  # columns were looked at before
    heard = [one_line(str(w.message)) for w in caught if not issubclass(w.category, own)]
    heard = list(dict.fromkeys(heard))
    say_columns(path, (), heard)
    said = [f"the student is not faithful: {problem}." for problem in found.problems]
    for text in said:
        typer.echo(f"Warning: {text}", err=True)
    return {
        "student": str(request.out),
        "teacher": request.teacher,
        "objective": str(request.objective),
        "seed": request.seed,
        "features": list(rows.training.columns),
        "targets": list(student.fitted_.targets.names),
        "n_rows_read": rows.n_read,
        "n_training_rows": len(rows.training),
        "n_compared_rows": found.inside.n_rows,
        "n_rows_without_target": rows.n_left_out,
        "seconds": round(seconds, 3),
        "faithfulness": found.to_json(),
        "warnings": [*rows.notes, *heard, *said],
        "notes": [
            *rows_without_target(rows.n_left_out),
            *index_left_out(rows.index),
            *_seen(rows),
            *_taken(rows),
        ],
    }, found


@contextmanager
def _blamed(request: Request, path: str, index: pd.Index) -> Generator[None]:
    """Let an error be about the teacher, or about rows of the file."""
    from priornet.distill import TeacherError
    from priornet.tables.read import located

    with blamed_on(path, index), located(path, index):
        try:
            yield
        except (TeacherError, TypeError) as error:
            message = one_line(error)
            raise InputError(f'--teacher "{request.teacher}": {message}') from error


@dataclass(frozen=True)
class _Rows:
    """Who to ask, and about what; ``is_seen`` where the held-out rows are those of the training."""

    teacher: Any
    path: str
    training: pd.DataFrame
    y: Any
    held: pd.DataFrame
    held_y: Any
    is_seen: bool
    unlabelled: pd.DataFrame | None
    n_read: int
    n_left_out: int
    index: tuple[str, ...]
    takes_all: bool
    """Every column is an input, for nobody said which are."""
    train_index: pd.Index
    """Rows of the file, counted from 1."""
    held_index: pd.Index
    summaries: Sequence[ColumnSummary]
    """How each column is read, where nobody had learnt that before."""
    notes: list[str]
    """Columns that may be meant otherwise, in rows of the file."""


def _seen(rows: _Rows) -> list[str]:
    """A sentence where the comparison knows the rows already, or none."""
    if not rows.is_seen:
        return []
    return [f"Compared on the rows of the training: fewer than {_FEWEST} would be held out."]


def _taken(rows: _Rows) -> list[str]:
    """A sentence where a target may have been taken for an input, or none."""
    if not rows.takes_all:
        return []
    names = ", ".join(map(str, rows.training.columns[:_SHOWN]))
    more = len(rows.training.columns) - _SHOWN
    others = f" and {more} more" if more > 0 else ""
    return [
        f"Inputs are all columns: {names}{others}. Name targets with --target, leave others out "
        "with --ignore."
    ]


def _read(request: Request) -> _Rows:
    from priornet.cli.teachers import find_teacher
    from priornet.distill import StoredTeacher
    from priornet.tables.labelled import read_features, read_labelled
    from priornet.tables.read import located

    teacher = find_teacher(request.teacher, request.targets, request.ignore)
    path = request.data
    if path is None:
        if not isinstance(teacher, StoredTeacher):
            raise InputError("--data is missing: name a table of inputs to ask the teacher about.")
        path = request.teacher
    names, known = _features(teacher), _known(teacher)
    n_left_out, targets = 0, None
    index = teacher.index if isinstance(teacher, StoredTeacher) and request.data is None else ()
    if request.targets:
        labelled = read_labelled(path, request.targets, names, request.ignore, known)
        features, n_left_out = labelled.features, labelled.n_left_out
        index = index or labelled.index
        targets = labelled.y.reset_index(drop=True)
    elif names is not None:
        features = read_features(path, names, known)
    else:
        features, index = _all_columns(path, request.ignore)
    if len(features) < 2:
        raise InputError(f"{called(path)}: one row is not enough to learn from.")
    numbers = features.index
    # A teacher may join what it computes to the rows: they are counted from 0 for it.
    features = features.reset_index(drop=True)
    numbers = numbers if request.targets else features.index + 1
    prep, summaries, notes = _checked(path, features, numbers, teacher)
    more = None
    if request.unlabelled is not None:
        more = read_features(request.unlabelled, list(features.columns), prep.columns_)
        with blamed_on(request.unlabelled), located(called(request.unlabelled)):
            prep.transform(more)
    train, held = _split(len(features), request.holdout, request.seed)
    return _Rows(
        teacher,
        path,
        features.iloc[train].reset_index(drop=True),
        None if targets is None else targets.iloc[train].reset_index(drop=True),
        features.iloc[held].reset_index(drop=True),
        None if targets is None else targets.iloc[held].reset_index(drop=True),
        len(train) == len(features),
        more,
        len(features) + n_left_out,
        n_left_out,
        index,
        not request.targets and names is None,
        numbers[train],
        numbers[held],
        summaries,
        notes,
    )


def _all_columns(path: str, ignored: tuple[str, ...]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """All columns of a table but those to ignore and an unnamed index; and that index."""
    from priornet.tables.raw import unnamed_indices
    from priornet.tables.read import read_frame

    frame = read_frame(path)
    for name in ignored:
        if name not in frame.columns:
            raise InputError(f'{called(path)}: the column to ignore "{name}" is not in the table.')
    index = tuple(name for name in unnamed_indices(frame) if name not in ignored)
    return frame.drop(columns=[*ignored, *index]), index


def _checked(
    path: str, features: pd.DataFrame, index: pd.Index, teacher: Any
) -> tuple[TablePreprocessor, Sequence[ColumnSummary], list[str]]:
    """What the columns mean, by the teacher or by themselves; wrong values in rows of the file.

    Returns:
        It, how each column is read, and the notes on them; none where the teacher knew them.
    """
    from priornet.distill import Teacher
    from priornet.tables.column_summaries import column_notes
    from priornet.tables.preprocessing import TablePreprocessor
    from priornet.tables.read import located

    with blamed_on(path), located(called(path), index):
        if not isinstance(teacher, Teacher):
            prep: TablePreprocessor = teacher.fitted_.preprocessor
            prep.transform(features)
            return prep, (), []
        prep = TablePreprocessor().fit(features)
    notes = column_notes(prep.summaries_, lambda row: index[row])
    return prep, prep.summaries_, notes


def _known(teacher: Any) -> Sequence[RawColumn] | None:
    """What the teacher learnt about its columns, if it is a model of ours."""
    from priornet.distill import Teacher

    return None if isinstance(teacher, Teacher) else teacher.fitted_.preprocessor.columns_


def _features(teacher: Any) -> list[str] | None:
    """Columns that the teacher wants; None where it does not say."""
    from priornet.distill import Teacher

    if not isinstance(teacher, Teacher):
        return model_columns(teacher)
    return None if teacher.feature_names is None else list(teacher.feature_names)


def _make(request: Request, teacher: Any, *, verbose: bool) -> Any:
    from priornet.estimators import DistilledRegressor

    settings: dict[str, Any] = {} if request.epochs is None else {"student_epochs": request.epochs}
    return DistilledRegressor(
        teacher,
        objective=cast(Student, request.objective.value),
        random_state=request.seed,
        verbose=verbose,
        **settings,
    )


def _split(n_rows: int, holdout: float, seed: int) -> tuple[Any, Any]:
    """Rows to train on and to compare on: the same where there are few."""
    import numpy as np

    n_held = round(holdout * n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    if n_held < _FEWEST:
        return np.sort(order), np.sort(order)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def _print_comparison(found: Faithfulness) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    title = f"The student on {found.inside.n_rows} rows, and on as many beyond them"
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
        ("R2", _number(inside.r2), "1", "of the student's mean as that of the teacher"),
        ("rank, total", _number(everywhere.rank_total), "1", "correlation of total uncertainty"),
        ("rank, knowledge", _number(everywhere.rank_knowledge), "1", "of knowledge uncertainty"),
        ("NLL", _number(inside.nll), _number(inside.nll_teacher), "of the teacher's own targets"),
    ]
    if found.truth is not None:
        ours, theirs = found.truth["student"], found.truth["teacher"]
        for name, words in (("rmse", "error in target units"), ("nll", "of the true targets")):
            title = f"true {name.upper()}"
            rows.append((title, _number(ours[name]), _number(theirs[name]), words))
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
