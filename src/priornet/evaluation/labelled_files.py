"""Table files whose targets are known: fit a model to one, or score a model on one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from priornet.estimators import BaseRegressor
from priornet.evaluation.evaluate_model import Evaluation, evaluate
from priornet.evaluation.scored_files import named_columns
from priornet.messages import InputError, blamed_on, called, counted, one_line
from priornet.tables.column_summaries import ColumnSummary, ColumnWarning, column_notes
from priornet.tables.learning import target_notes
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.read import Labelled, located, read_features, read_labelled

_FEWEST = 5  # held-out rows; scores of fewer mean nothing

Tell = Callable[[Sequence[ColumnSummary], Sequence[str]], object]
"""Called with how columns are read, and with messages about them."""


def say_nothing(columns: Sequence[ColumnSummary], messages: Sequence[str]) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class FileEvaluation:
    """Scores of a model on the rows of a file."""

    evaluation: Evaluation
    rows: Labelled
    """The rows of the file that have targets."""

    @property
    def notes(self) -> list[str]:
        """List sentences about rows that were left out."""
        return self.rows.notes

    def to_json(self) -> dict[str, Any]:
        """Return counts and scores, ready for JSON."""
        found = self.evaluation
        return {**_counts(self.rows), "scores": found.metrics, "interval": found.interval}


@dataclass(frozen=True)
class FileFit:
    """A model fitted to a file, and its scores on rows that it has not seen."""

    model: BaseRegressor
    evaluation: Evaluation | None
    """Scores on the held-out rows; None with too few of them."""
    rows: Labelled
    """The rows of the file that have targets."""
    n_training: int
    """Number of them that the model learnt from."""
    columns: tuple[ColumnSummary, ...]
    """Each column as it was read."""
    warnings: tuple[str, ...]
    """Messages about columns and training."""
    notes: tuple[str, ...]
    """Sentences about rows and columns that were left out."""

    def to_json(self) -> dict[str, Any]:
        """Return counts, columns, messages and scores, ready for JSON."""
        found = self.evaluation
        return {
            "targets": list(self.rows.targets.columns),
            "features": list(self.rows.features.columns),
            **_counts(self.rows),
            "n_training_rows": self.n_training,
            "n_holdout_rows": 0 if found is None else len(found.y),
            "columns": [summary.to_json() for summary in self.columns],
            "warnings": list(self.warnings),
            "holdout": None if found is None else found.metrics,
            "interval": None if found is None else found.interval,
            "notes": list(self.notes),
        }


def _counts(rows: Labelled) -> dict[str, int]:
    return {"n_rows_read": rows.n_read, "n_rows_without_target": rows.n_left_out}


def fit_file(
    model: BaseRegressor,
    source: str | Path,
    targets: Sequence[str],
    *,
    ignore: Sequence[str] = (),
    holdout: float = 0.15,
    coverage: float = 0.9,
    seed: int = 0,
    tell: Tell = say_nothing,
) -> FileFit:
    """Fit an estimator to a table file, and evaluate it on rows held out.

    Args:
        model: An estimator; it is fitted in place.
        source: CSV or Parquet file; ``-`` for CSV on standard input.
        targets: Columns to predict.
        ignore: Columns to leave out.
        holdout: Share of the rows to hold out; of fewer than 5 there is no evaluation.
        coverage: Coverage of the intervals to check.
        seed: Seed of the split.
        tell: Called before the training with how columns are read and messages about them, and
            after it with further messages.
    """
    rows = read_labelled(str(source), targets, None, ignore)
    columns, heard = _read_columns(called(source), rows, model)
    tell(columns, heard)
    ids = [str(one.column) for one in columns if one.kind == "id"]
    rows = replace(rows, features=rows.features.drop(columns=ids))
    training, held = _split(rows, holdout, seed)
    with blamed_on(source):
        more = _fit(model, training)
    known = model.fitted_.preprocessor  # more columns may be ids among fewer rows
    more += [note for one in known.summaries_ if one.kind == "id" for note in one.notes()]
    known.left_out_ = (*ids, *known.left_out_)
    tell((), more)
    evaluation = None
    notes = rows.notes
    if held is not None:
        with blamed_on(source, held.features.index):
            evaluation = evaluate(model, held.features, held.y, coverage=coverage)
    elif holdout > 0:
        few = counted(len(rows.targets))  # two or more
        notes.append(f"{few} are too few to hold some out: no evaluation.")
    messages, n_training = (*heard, *more), len(training.targets)
    return FileFit(model, evaluation, rows, n_training, columns, messages, tuple(notes))


def evaluate_file(
    model: BaseRegressor,
    source: str | Path,
    ood: str | Path | None = None,
    *,
    coverage: float = 0.9,
) -> FileEvaluation:
    """Score a fitted estimator on a table file with targets.

    Args:
        model: A fitted estimator whose columns have names.
        source: CSV or Parquet file; ``-`` for CSV on standard input.
        ood: File of out-of-domain rows, which uncertainty should tell apart.
        coverage: Coverage of the intervals to check.
    """
    path, known, names = called(source), model.fitted_.preprocessor.columns_, named_columns(model)
    rows = read_labelled(str(source), model.fitted_.targets.names, names, known=known)
    if len(rows.targets) < 2:
        raise InputError(f"{path}: one row with a target is not enough for an evaluation.")
    others = None
    if ood is not None:
        others = read_features(str(ood), names, known)
        with blamed_on(ood), located(called(ood)):  # its values, before those of the first table
            model.predict(others)
    index = rows.features.index
    with blamed_on(source, index), located(path, index):
        evaluation = evaluate(model, rows.features, rows.y, others, coverage=coverage)
    return FileEvaluation(evaluation, rows)


def _read_columns(
    path: str, rows: Labelled, model: BaseRegressor
) -> tuple[tuple[ColumnSummary, ...], list[str]]:
    """Refuse rows that an estimator would refuse too, in row numbers of the file.

    Returns:
        Each column as it is read; messages on columns and targets that may be meant otherwise.
    """
    if len(rows.targets) < 2:
        raise InputError(f"{path}: one row with a target is not enough to learn from.")
    for name in rows.targets.columns:
        values = rows.targets[name].to_numpy()
        if (values == values[0]).all():
            raise InputError(
                f'{path}: the target "{name}" is constant, {values[0]:g} in every row; '
                "there is nothing to learn."
            )
    index = rows.features.index
    with blamed_on(path), located(path, index):
        known = TablePreprocessor(max_labels=model.max_labels, leave_out_ids=True)
        columns = known.fit(rows.features).summaries_
    names = tuple(map(str, rows.targets.columns))
    notes = target_notes(rows.targets.to_numpy(), names, index.__getitem__)
    return columns, [*notes, *column_notes(columns, index.__getitem__)]


def _fit(model: BaseRegressor, training: Labelled) -> list[str]:
    """Train, and return the estimator's warnings but those about columns, which are known."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(training.features, training.y)
    return [one_line(str(w.message)) for w in caught if not issubclass(w.category, ColumnWarning)]


def _split(rows: Labelled, holdout: float, seed: int) -> tuple[Labelled, Labelled | None]:
    n_rows = len(rows.targets)
    n_held = round(holdout * n_rows)
    if n_held < _FEWEST or n_rows - n_held < 2:
        return rows, None
    order = np.random.default_rng(seed).permutation(n_rows)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    return rows.take(kept), rows.take(held)
