"""Warnings that point to the user's own line, and messages of other libraries in one line."""

from __future__ import annotations

import sys
import warnings

__all__ = ["first_line", "warn_user"]

# Packages whose lines no user can change: priornet, and those that call it or wrap its functions.
_LIBRARIES = frozenset({"priornet", "contextlib", "functools", "joblib", "sklearn", "torch"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as :func:`warnings.warn` does, at the nearest line that belongs to the user."""
    level, frame = 1, sys._getframe(0)  # pyright: ignore[reportPrivateUsage] (no other way to look)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
