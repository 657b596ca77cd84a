"""A table and someone to ask about it: in a teacher's own units, or in units of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from priornet.distill import Questions, Teacher, ask_all
from priornet.estimators.asking import (
    Asked,
    OutsideTeacher,
    OwnTeacher,
    teacher_scaling,
)
from priornet.estimators.base import BaseRegressor
from priornet.estimators.inputs import (
    check_inputs,
    check_targets,
    check_weight,
    known_columns,
    row_names,
)
from priornet.estimators.plan import Split, split_rows
from priornet.estimators.prepared import Prepared, fit_preprocessor, standardised
from priornet.tables.column_summaries import column_notes, warn_of_columns
from priornet.tables.containers import unmasked
from priornet.tables.raw import join_tables, num_rows, take_rows
from priornet.tables.target_columns import FloatArray, TargetColumns

__all__ = ["Posed", "pose_outside", "pose_own", "prepare_for"]


@dataclass
class Posed(Prepared):
    """A table, and someone to ask about inputs around its rows."""

    asked: Asked
    centres: Tensor
    """Standardised training inputs, and unlabelled ones behind them."""
    table: Any = None
    """Raw, for teachers from elsewhere."""
    y: Any = None


def pose_own(
    student: BaseRegressor, teacher: BaseRegressor, prepared: Prepared, unlabelled: Any
) -> Posed:
    """A prepared table, and an ensemble that shares its units."""
    centres = prepared.inputs[prepared.split.train]
    if unlabelled is not None:
        table = check_inputs(student, unlabelled, known=prepared.preprocessor)
        more = prepared.preprocessor.transform(table)
        centres = torch.cat([centres, torch.as_tensor(more).to(centres)])
    return Posed(**vars(prepared), asked=OwnTeacher(teacher), centres=centres)


def prepare_for(
    student: BaseRegressor, teacher: BaseRegressor, X: Any, y: Any, sample_weight: Any
) -> Prepared:
    """The table in the teacher's own units."""
    fitted = teacher.fitted_
    table = check_inputs(student, known_columns(X, fitted.preprocessor))
    rng = check_random_state(student.random_state)
    values, columns, split = _targets(student, y, table, fitted.targets, rng)
    weight = check_weight(sample_weight, values)
    weight = np.ones(num_rows(table)) if weight is None else weight / weight.mean()
    prep = fitted.preprocessor
    return standardised(prep, columns, table, values, weight, split, rng, student.device)


def pose_outside(
    student: BaseRegressor, teacher: Teacher, X: Any, y: Any, sample_weight: Any, unlabelled: Any
) -> Posed:
    """The table in units of its own: what the teacher expects has mean 0 and variance 1."""
    table = check_inputs(student, X)
    rng, n_rows = check_random_state(student.random_state), num_rows(table)
    scaling = teacher_scaling(ask_all(teacher, table))
    k_dim = len(scaling.shift)
    names = ("y",) if k_dim == 1 else tuple(f"y{k}" for k in range(k_dim))
    unnamed = TargetColumns(names, k_dim == 1, scaling)
    values, columns, split = _targets(student, y, table, unnamed, rng)
    if len(columns.names) != k_dim:
        raise ValueError(
            f"`y` has {len(columns.names)} columns; the teacher predicts {k_dim} targets."
        )
    given = check_weight(sample_weight, values)
    train = split.train.numpy()
    weight = np.ones(n_rows) if given is None else given / given[train].mean()
    around = take_rows(table, train)
    prep = fit_preprocessor(table, given, train)
    warn_of_columns(column_notes(prep.summaries_, row_names(table, np.arange(n_rows))))
    prepared = standardised(prep, columns, table, values, weight, split, rng, student.device)
    if unlabelled is not None:
        around = join_tables(around, unmasked(unlabelled), ("X", "unlabelled"))
    questions = Questions(around, prep, teacher.label_columns)
    centres = torch.as_tensor(questions.inputs).to(prepared.inputs)
    asked = OutsideTeacher(teacher, questions, scaling)
    return Posed(**vars(prepared), asked=asked, centres=centres, table=table, y=y)


def _targets(
    student: BaseRegressor, y: Any, table: Any, known: TargetColumns, rng: Any
) -> tuple[FloatArray, TargetColumns, Split]:
    """Targets in the units that are known; without them nothing is held out."""
    n_rows = num_rows(table)
    if y is None:
        split = Split(torch.arange(n_rows), torch.arange(0))
        return np.zeros((n_rows, len(known.names))), known, split
    values, names, is_vector = check_targets(y, table)
    columns = TargetColumns(names, is_vector, known.scaling)
    return values, columns, split_rows(n_rows, student.calibration_fraction, rng)
