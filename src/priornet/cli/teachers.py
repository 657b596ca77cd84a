"""What ``--teacher`` may name: a model folder, a file of answers, or an object of a module."""

from __future__ import annotations

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from priornet.cli.errors import InputError, blamed_on, one_line
from priornet.cli.inputs import load_model

__all__ = ["find_teacher"]

_ANSWERS = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def find_teacher(name: str, targets: tuple[str, ...], ignored: tuple[str, ...]) -> Any:
    """A model of ours, or a teacher.

    Args:
        name: A folder that ``priornet fit --method ensemble`` wrote, a table of a teacher's
            answers, or ``module:object``.
        targets: Columns of a table of answers that are targets, not inputs.
        ignored: Columns of it that are neither.
    """
    if name.endswith(_ANSWERS):
        return _stored(name, {*targets, *ignored})
    if ":" in name and not Path(name).exists():
        return _imported(name)
    return load_model(Path(name))


def _stored(path: str, others: set[str]) -> Any:
    from priornet.distill import StoredTeacher

    with blamed_on(path):
        teacher = StoredTeacher(path)
        if others & set(teacher.feature_names):
            own = tuple(column for column in teacher.feature_names if column not in others)
            return StoredTeacher(path, columns=own)
        return teacher


def _imported(name: str) -> Any:
    """An object of a module, as of the folder that the command runs in.

    A function without arguments makes the teacher; any other function is one.
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
