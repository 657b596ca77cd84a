"""The one place where errors become a line on standard error and an exit code.

0 is success, 2 is bad usage or bad input (one line that names the file, column or row), 1 is a
failure: of the machine (one line) or of this program (with its traceback). 130 and 143 are
interruptions, as shells count them: by the user, and by SIGTERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from priornet.cli.sigterm import Terminated

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Failure", "Group", "InputError", "blamed_on", "called", "one_line", "printable"]


# What a path given by the user may be guilty of; a full disk is not among them.
_WRONG_PATH = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


# Typer exports only the subclasses, and brings a Click of its own in newer versions.
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")


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
        if _is_input_error(error):
            raise
        name, message = called(path), one_line(error)
        raise InputError(message if name in message else f"{name}: {message}") from error


def called(path: str | Path) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == "-" else str(path)


def one_line(error: BaseException | str) -> str:
    """A message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


class Group(TyperGroup):
    """The commands, with their errors turned into exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # no error: it shows the help
                raise
            command = (error.ctx or ctx).command_path
            message = one_line(error.format_message()).rstrip(".")
            _say(f"{message}. See `{command} --help`.")
            raise typer.Exit(2) from error
        except Terminated:
            _say("Terminated.")
            raise
        except BrokenPipeError:
            # Whoever read our output has enough. Python would complain once more on its way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
            _say(f"{name}{(error.strerror or one_line(error)).rstrip('.')}.{notes}")
            raise typer.Exit(2 if isinstance(error, _WRONG_PATH) else 1) from error
        except Failure as error:
            _say(one_line(error))
            raise typer.Exit(1) from error
        except MemoryError as error:
            detail = f" ({one_line(error)})" if str(error) else ""
            _say(f"not enough memory{detail}; use fewer rows or columns, or a smaller model.")
            raise typer.Exit(1) from error
        except ValueError as error:
            if not _is_input_error(error):
                raise
            _say(" ".join([one_line(error), *getattr(error, "__notes__", ())]))
            raise typer.Exit(2) from error


def _is_input_error(error: ValueError) -> bool:
    if isinstance(error, InputError):
        return True
    from priornet.tables.read import TableError

    return isinstance(error, TableError)


def printable(text: str) -> str:
    """A table may hold anything, also what would command the terminal: that is shown, not sent."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _say(message: str) -> None:
    typer.echo(f"Error: {printable(message)}", err=True)
