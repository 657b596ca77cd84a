"""The program: its commands, those of other packages, and exit codes for errors.

0 is success, 2 is bad usage or bad input (one line that names the file, column or row), 1 is a
failure: of the machine (one line) or of this program (with its traceback). 130 and 143 are
interruptions, as shells count them: by the user, and by SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib.metadata import EntryPoint, entry_points
from threading import Thread
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from priornet._version import __version__
from priornet.messages import Failure, InputError, one_line, printable

COMMANDS = {
    "fit": "Train a model on a table, evaluate it on held-out rows, save it.",
    "predict": "Add predictions and their uncertainty to every row of a table.",
    "evaluate": "Score a saved model on a table with known targets.",
    "distill": "Distil an ensemble into one small network, without targets, and compare the two.",
    "demo": "Show the methods side by side on two data sets, and write a report.",
    "export": "Write a model for onnxruntime or libtorch: raw columns in, uncertainty out.",
    "verify": "Compare an exported file with its model, row by row, on the CPU.",
}
"""Each command and the first line of its help, so that the list needs no command's module."""

_POINTS = "priornet.commands"
"""The entry points by which other packages add groups of commands, each a `typer.Typer`."""

_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": "markdown",
    "pretty_exceptions_enable": False,
}

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


class _LazyCommand(TyperCommand):
    """A command, or a group of them, whose callback imports it: on a call, or for its own help."""

    def load(self) -> Any:
        """Import the command."""
        assert self.callback is not None
        return self.callback()

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Hand the arguments to the command itself."""
        return self.load().make_context(info_name, args, parent, **extra)


class _Group(TyperGroup):
    """The commands, with their errors turned into exit codes."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands; a group of another package is imported for its line."""
        for command in self.commands.values():
            if isinstance(command, _LazyCommand) and command.help is None:
                command.help = command.load().help
        super().format_help(ctx, formatter)

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
        except InputError as error:
            _say(" ".join([one_line(error), *getattr(error, "__notes__", ())]))
            raise typer.Exit(2) from error


def _say(message: str) -> None:
    typer.echo(f"Error: {printable(message)}", err=True)


def add_lazily(group: typer.Typer, name: str, target: str, line: str | None = None) -> None:
    """Add a command, or a group of them, that is imported when it is called.

    Args:
        group: Where to add it.
        name: What the user types.
        target: ``module:object``, a function or a ``typer.Typer``.
        line: First line of its help; without one, the list of commands imports it to find out.
    """

    def load() -> Any:
        found = EntryPoint(name, target, _POINTS).load()
        whole = typer.Typer(**_SETTINGS)
        whole.callback()(lambda: None)  # so that it is a group, whatever is in it
        if isinstance(found, typer.Typer):
            whole.add_typer(found, name=name)
        else:
            whole.command(name)(found)
        group: Any = get_command(whole)
        return group.commands[name]

    group.command(name, cls=_LazyCommand, help=line)(load)


app = typer.Typer(
    name="priornet",
    cls=_Group,
    help="Regression that says what it does not know.",
    no_args_is_help=True,
    **_SETTINGS,
)


def main() -> None:
    """Run the command line."""
    end_on_sigterm()
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"priornet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


for command, first_line in COMMANDS.items():
    add_lazily(app, command, f"priornet.cli.{command}:{command}", first_line)
for point in sorted(entry_points(group=_POINTS), key=lambda point: point.name):
    add_lazily(app, point.name, point.value)


class Terminated(SystemExit):
    """SIGTERM came: everything is closed and tidied up on the way out, as after Ctrl-C."""

    status = 128 + signal.SIGTERM

    def __init__(self) -> None:
        super().__init__(self.status)


def end_on_sigterm(grace: float = 5.0) -> None:
    """Raise :class:`Terminated` in this process when it gets SIGTERM; not in those it forks.

    Args:
        grace: Seconds after which a process that is still there ends at once: Python cannot raise
            where a library waits, as Arrow does for more of a pipe. What it leaves, the next run
            tidies up.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    own = os.getpid()

    def end(*_: object) -> None:
        if os.getpid() != own:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    arrived, noted = os.pipe()
    os.set_blocking(noted, False)
    signal.set_wakeup_fd(noted, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def watch() -> None:
        while signal.SIGTERM not in os.read(arrived, 1):
            pass
        time.sleep(grace)
        os.write(2, b"Error: Terminated.\n")
        os._exit(Terminated.status)

    Thread(target=watch, daemon=True, name="sigterm").start()
