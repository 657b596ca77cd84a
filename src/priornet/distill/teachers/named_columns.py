"""Columns found by their names, in the order that a teacher knows."""

from __future__ import annotations

from typing import Any

from priornet.distill.teachers.protocol import TeacherError
from priornet.tables.raw import column_names, pick_columns

__all__ = ["by_name"]


def by_name(table: Any, names: tuple[str, ...] | None) -> Any:
    """The columns of these names, in their order; others may be there.

    Args:
        table: An array, a frame, or a mapping. An array has no names, and stays as it is.
        names: Those that the teacher was fitted with; None where it knows none.
    """
    own = column_names(table)
    if own is None or names is None or own == names:
        return table
    for name in names:
        if name not in own:
            raise TeacherError(
                f'the table has no column "{name}", with which the teacher was fitted.'
            )
    return pick_columns(table, names)
