"""The program: its commands, and the groups of commands that other packages add."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from priornet._version import __version__
from priornet.cli.demo import demo
from priornet.cli.distill import distill
from priornet.cli.errors import Group
from priornet.cli.evaluate import evaluate
from priornet.cli.export import export
from priornet.cli.fit import fit
from priornet.cli.predict import predict
from priornet.cli.sigterm import end_on_sigterm
from priornet.cli.verify import verify

__all__ = ["app", "main"]

app = typer.Typer(
    name="priornet",
    cls=Group,
    help="Regression that says what it does not know.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
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


for command in (fit, predict, evaluate, distill, demo, export, verify):
    app.command()(command)
# Other packages add groups of commands, each a `typer.Typer`: the paper's are among them.
for point in sorted(entry_points(group="priornet.commands"), key=lambda point: point.name):
    app.add_typer(point.load(), name=point.name)
