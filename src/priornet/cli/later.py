"""Names kept for commands that are not there yet."""

from __future__ import annotations

from typing import Any

import typer

from priornet.cli.errors import InputError

__all__ = ["reserve"]

_LATER = ("distill",)


def reserve(app: typer.Typer) -> None:
    """Give each name a command that says so, hidden from the help."""
    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    for name in _LATER:
        app.command(name, hidden=True, context_settings=anything)(_refusal(name))


def _refusal(name: str) -> Any:
    def refuse() -> None:
        raise InputError(f"`priornet {name}` arrives with a later version.")

    refuse.__doc__ = "Arrives with a later version."
    return refuse
