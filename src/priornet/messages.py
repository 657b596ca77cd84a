"""Messages to the user: errors about files in one line, and warnings at the user's own line.

A command ends with exit code 2 after an :class:`InputError`, with 1 after a :class:`Failure`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = [
    "Failure",
    "InputError",
    "blamed_on",
    "called",
    "counted",
    "first_line",
    "one_line",
    "printable",
    "warn_user",
]

# Packages whose lines no user can change: priornet, and those that call it or wrap its functions.
_LIBRARIES = frozenset({"priornet", "contextlib", "functools", "joblib", "sklearn", "torch"})


class InputError(ValueError):
    """Something that the user gave cannot be used; the message is one line."""


class Failure(ArithmeticError):
    """Something that the program cannot do, though the input is in order; one line."""


@contextmanager
def blamed_on(path: str | Path, rows: Any = 0) -> Generator[None]:
    """Name the file or folder in errors that the library raises.

    Args:
        path: The file or folder.
        rows: How many rows of it came before those at work; or the number of each of them, as a
            sequence or the index of a frame.
    """
    try:
        yield
    except ArithmeticError as error:
        place: Any = error
        if not hasattr(error, "n_wrong"):  # no PredictionError, which names a row
            raise
        row = rows + place.row + 1 if isinstance(rows, int) else rows[place.row]
        raise Failure(f"{called(path)}: {one_line(type(place)(row, place.n_wrong))}") from error
    except InputError:
        raise
    except ValueError as error:
        name, message = called(path), one_line(error)
        raise InputError(message if name in message else f"{name}: {message}") from error


def called(path: str | Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if str(path) == "-" else str(path)


def counted(n_rows: int) -> str:
    """Return ``"1 row"``, ``"2 rows"`` and so on."""
    return "1 row" if n_rows == 1 else f"{n_rows} rows"


def one_line(error: BaseException | str) -> str:
    """Return a message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def printable(text: str) -> str:
    """Escape characters that would command the terminal: a table may hold anything."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as :func:`warnings.warn` does, at the nearest line that belongs to the user."""
    level, frame = 1, sys._getframe(0)  # pyright: ignore[reportPrivateUsage] (no other way to look)
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
