"""Adapters that make teachers of common models, and the function that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from torch import nn

from priornet.distill.teacher import FunctionTeacher, Teacher
from priornet.distill.teachers.catboost import CatBoostTeacher
from priornet.distill.teachers.gaussian_process import GaussianProcessTeacher
from priornet.distill.teachers.scikit_learn import (
    ForestTeacher,
    PureLeavesWarning,
    RegressorsTeacher,
)
from priornet.distill.teachers.stored import StoredTeacher
from priornet.distill.teachers.torch_modules import DropoutTeacher, ModulesTeacher

__all__ = [
    "CatBoostTeacher",
    "DropoutTeacher",
    "ForestTeacher",
    "FunctionTeacher",
    "GaussianProcessTeacher",
    "ModulesTeacher",
    "PureLeavesWarning",
    "RegressorsTeacher",
    "StoredTeacher",
    "as_teacher",
]

_FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor", "BaggingRegressor")
_CHOICES = (
    "a teacher of priornet.distill, a function of a table, a list of torch modules or one with "
    "dropout, a forest, bagged trees or a Gaussian process of scikit-learn, CatBoost models, or a "
    "file of answers"
)


def as_teacher(given: Any) -> Teacher:
    """Make the teacher that fits an object, with default settings.

    For other settings, such as training rows or the number of members, make the teacher's class.

    Args:
        given: A teacher; a torch module with dropout, or a list of modules; a fitted
            ``RandomForestRegressor``, ``ExtraTreesRegressor``, ``BaggingRegressor`` of trees or
            ``GaussianProcessRegressor``; one CatBoost model or a list of them; the path of a
            file of answers; any other function from a table to means and covariances.
    """
    if isinstance(given, Teacher):
        return given
    if isinstance(given, (str, Path)):
        return StoredTeacher(given)
    several = list(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else []
    first = several[0] if several else given
    if isinstance(first, nn.Module):
        return ModulesTeacher(several) if several else DropoutTeacher(first)
    module, name = type(first).__module__.partition(".")[0], type(first).__name__
    if module == "catboost":
        return CatBoostTeacher(several or first)
    if module != "sklearn":
        if callable(given):
            return FunctionTeacher(cast("Any", given))
        raise TypeError(f"`teacher` must be {_CHOICES}; got {type(given).__name__}.")
    if several:
        raise TypeError(
            "regressors predict no variance: make a RegressorsTeacher of them, with training rows."
        )
    if name in _FORESTS:
        return ForestTeacher(given)
    if name == "GaussianProcessRegressor":
        return GaussianProcessTeacher(given)
    raise TypeError(
        f"`teacher` must be {_CHOICES}; got {name}. RegressorsTeacher takes a list of other "
        "regressors, with their training rows."
    )
