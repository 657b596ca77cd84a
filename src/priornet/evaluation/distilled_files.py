"""Table files whose rows a teacher can answer: distil the teacher around them, and compare."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from priornet.distill import (
    Faithfulness,
    FaithfulnessWarning,
    StoredTeacher,
    Teacher,
    TeacherError,
)
from priornet.estimators import DistilledRegressor
from priornet.estimators.distilled import checked_teacher
from priornet.evaluation.labelled_files import Tell, say_nothing
from priornet.evaluation.scored_files import named_columns
from priornet.messages import InputError, blamed_on, called, one_line
from priornet.tables.column_summaries import ColumnSummary, ColumnWarning, column_notes
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import unnamed_indices
from priornet.tables.read import (
    Labelled,
    check_present,
    located,
    read_features,
    read_frame,
    read_labelled,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from priornet.tables.encoding import RawColumn


_FEWEST = 20  # held-out rows; with fewer the comparison is made on all
_SHOWN = 12  # columns that a sentence names


@dataclass(frozen=True)
class TeacherRows:
    """Rows of a file, around which a teacher is asked."""

    path: str
    labelled: Labelled
    """The rows; their targets have no columns if none are known."""
    takes_all: bool
    """True if all columns are inputs, because nothing named them."""
    preprocessor: TablePreprocessor
    """The teacher's, or one fitted to the rows."""
    columns: Sequence[ColumnSummary]
    """Each column as it is read; empty if the teacher had learnt that."""
    messages: list[str]
    """Columns that may be meant otherwise, in rows of the file."""

    def take(self, rows: NDArray[np.int64]) -> tuple[Any, Any]:
        """Take inputs and known targets of some rows.

        They are numbered from 0: a teacher may join its answers to the rows.
        """
        taken = self.labelled.take(rows)
        y = taken.y.reset_index(drop=True) if taken.targets.shape[1] else None
        return taken.features.reset_index(drop=True), y

    @contextmanager
    def located(self, taken: NDArray[np.int64]) -> Generator[None]:
        """Raise errors about the teacher as they are, and others with the rows of the file."""
        failed: TeacherError | None = None
        index = self.labelled.features.index[taken]
        with blamed_on(self.path, index), located(self.path, index):
            try:
                yield
            except TeacherError as error:
                failed = error
            except TypeError as error:
                failed = TeacherError(str(error))
        if failed is not None:
            raise failed


@dataclass(frozen=True)
class FileDistillation:
    """A student distilled around the rows of a file, beside its teacher."""

    student: DistilledRegressor
    faithfulness: Faithfulness
    """Comparison of the two on held-out rows, or on all if they are few."""
    rows: TeacherRows
    n_training: int
    """Number of rows around which the teacher was asked."""
    seconds: float
    """Duration of reading and training."""
    warnings: tuple[str, ...]
    """Messages about columns and training."""

    @property
    def problems(self) -> list[str]:
        """List sentences about faithfulness."""
        return [f"the student is not faithful: {one}." for one in self.faithfulness.problems]

    @property
    def notes(self) -> list[str]:
        """List sentences about rows and columns."""
        rows = self.rows.labelled
        notes = rows.notes
        if self.n_training == len(rows.features):
            few = f"fewer than {_FEWEST} would be held out"
            notes.append(f"Compared on the rows of the training: {few}.")
        if self.rows.takes_all:
            names = list(map(str, rows.features.columns))
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            notes.append(
                f"Inputs are all columns: {', '.join(names[:_SHOWN])}{more}. Name those that are "
                "targets, and those to ignore."
            )
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return counts, messages and the comparison, ready for JSON."""
        return {
            "features": list(self.rows.labelled.features.columns),
            "targets": list(self.student.fitted_.targets.names),
            "n_rows_read": self.rows.labelled.n_read,
            "n_training_rows": self.n_training,
            "n_compared_rows": self.faithfulness.inside.n_rows,
            "n_rows_without_target": self.rows.labelled.n_left_out,
            "seconds": round(self.seconds, 3),
            "faithfulness": self.faithfulness.to_json(),
            "warnings": [*self.warnings, *self.problems],
            "notes": self.notes,
        }


def distil_file(
    student: DistilledRegressor,
    source: str | Path,
    targets: Sequence[str] = (),
    out: str | Path | None = None,
    *,
    ignore: Sequence[str] = (),
    unlabelled: str | Path | None = None,
    holdout: float = 0.15,
    seed: int = 0,
    tell: Tell = say_nothing,
) -> FileDistillation:
    """Distil a student's teacher around the rows of a table file, and compare the two.

    Errors about the teacher are :class:`~priornet.distill.TeacherError`.

    Args:
        student: An estimator with a fitted teacher; it is fitted in place.
        source: CSV or Parquet file of inputs; ``-`` for CSV on standard input.
        targets: Columns of known targets, to score student and teacher.
        out: Folder for the student.
        ignore: Columns to leave out.
        unlabelled: File of more inputs, around which the teacher is asked too.
        holdout: Share of the rows to hold out; with fewer than 20 all rows are compared.
        seed: Seed of the split and of the comparison.
        tell: Called before the training with how columns are read and messages about them, and
            after it with further messages.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        start = time.perf_counter()
        rows = _read(student.teacher, str(source), targets, ignore)
        more = None if unlabelled is None else _read_more(rows, str(unlabelled))
        tell(rows.columns, rows.messages)
        train, held = _split(len(rows.labelled.features), holdout, seed)
        with rows.located(train):
            student.fit(*rows.take(train), unlabelled=more)
        seconds = time.perf_counter() - start
        with rows.located(held):
            found = student.faithfulness(*rows.take(held), seed=seed)
    known = (FaithfulnessWarning, ColumnWarning)
    texts = [one_line(str(w.message)) for w in caught if not issubclass(w.category, known)]
    heard = list(dict.fromkeys(texts))
    tell((), heard)
    if out is not None:
        student.save(out)
    return FileDistillation(student, found, rows, len(train), seconds, (*rows.messages, *heard))


def _read(teacher: Any, source: str, targets: Sequence[str], ignore: Sequence[str]) -> TeacherRows:
    """Read the inputs of a teacher, and targets if there are any."""
    try:
        teacher = checked_teacher(teacher)
    except TypeError as error:
        raise TeacherError(str(error)) from error
    model, known = None, None
    if isinstance(teacher, Teacher):
        names = teacher.feature_names
    else:
        model = teacher.fitted_.preprocessor
        names, known = named_columns(teacher), model.columns_
    if targets:
        rows = read_labelled(source, targets, names, ignore, known)
    else:
        rows = _read_unlabelled(source, names, ignore, known)
    if isinstance(teacher, StoredTeacher) and source == teacher.path:
        rows = replace(rows, index=teacher.index)
    path, numbers, messages = called(source), rows.features.index, list[str]()
    if len(numbers) < 2:
        raise InputError(f"{path}: one row is not enough to learn from.")
    columns: Sequence[ColumnSummary] = ()
    with blamed_on(path), located(path, numbers):
        if model is None:
            model = TablePreprocessor().fit(rows.features)
            columns = model.summaries_
            messages = column_notes(columns, lambda row: numbers[row])
        else:
            model.transform(rows.features)
    return TeacherRows(path, rows, not targets and names is None, model, columns, messages)


def _read_unlabelled(
    source: str,
    names: Sequence[str] | None,
    ignore: Sequence[str],
    known: Sequence[RawColumn] | None,
) -> Labelled:
    """Read named columns, or all but those to ignore and an unnamed index."""
    index: tuple[str, ...] = ()
    if names is not None:
        frame = read_features(source, names, known)
    else:
        frame = read_frame(source)
        for name in ignore:
            check_present(called(source), name, list(frame.columns), "column to ignore")
        index = tuple(name for name in unnamed_indices(frame) if name not in ignore)
        frame = frame.drop(columns=[*ignore, *index])
    frame.index = frame.index + 1  # rows of the file
    return Labelled(frame, frame.filter([]), 0, len(frame), index)


def _read_more(rows: TeacherRows, path: str) -> pd.DataFrame:
    """Read more inputs with the same columns."""
    more = read_features(path, list(rows.labelled.features.columns), rows.preprocessor.columns_)
    with blamed_on(path), located(called(path)):
        rows.preprocessor.transform(more)
    return more


def _split(n_rows: int, holdout: float, seed: int) -> tuple[Any, Any]:
    """Split into rows to train on and rows to compare on; few rows are both."""
    n_held = round(holdout * n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    if n_held < _FEWEST:
        return np.sort(order), np.sort(order)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
