"""Warnings that point to the line of the user who caused them, however deep they arise."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_user"]

# Whose lines are nobody's to change: ours, and of those who call us for the user or wrap functions.
_OTHERS = frozenset({"priornet", "contextlib", "functools", "joblib", "sklearn", "torch"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as :func:`warnings.warn` does, at the nearest line outside of this package.

    Args:
        message: What there is to say.
        category: Class of the warning.
    """
    level, frame = 1, sys._getframe(0)  # pyright: ignore[reportPrivateUsage] (no other way to look)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _OTHERS:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
