"""Errors about what the user gave: in one line, with the file, column or row they are about."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Failure",
    "InputError",
    "blamed_on",
    "called",
    "is_input_error",
    "one_line",
    "printable",
]


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one line."""


class Failure(ArithmeticError):
    """Something that the program cannot do, though the input is in order; one line."""


@contextmanager
def blamed_on(path: str | Path, rows: int | Sequence[int] | pd.Index = 0) -> Generator[None]:
    """Let an error from the library be about this file or folder.

    Args:
        path: The file or folder.
        rows: How many rows of it came before those at work; or the number of each of them.
    """
    try:
        yield
    except ArithmeticError as error:
        from priornet.estimators import PredictionError

        if not isinstance(error, PredictionError):
            raise
        row = rows + error.row + 1 if isinstance(rows, int) else rows[error.row]
        raise Failure(f"{called(path)}: {one_line(PredictionError(row, error.n_wrong))}") from error
    except ValueError as error:
        if is_input_error(error):
            raise
        name, message = called(path), one_line(error)
        raise InputError(message if name in message else f"{name}: {message}") from error


def called(path: str | Path) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == "-" else str(path)


def one_line(error: BaseException | str) -> str:
    """A message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def is_input_error(error: ValueError) -> bool:
    """Tell if an error is about something the user gave."""
    if isinstance(error, InputError):
        return True
    from priornet.depth import DepthError
    from priornet.export import ExportError
    from priornet.tables.read import TableError

    return isinstance(error, (DepthError, ExportError, TableError))


def printable(text: str) -> str:
    """A table may hold anything, also what would command the terminal: that is shown, not sent."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
