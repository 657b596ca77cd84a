"""Settings as they stand on a command line, in place of a preset's; messages that speak of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from priornet_paper.depth.config import Config

__all__ = ["in_options", "with_changes"]

# Arguments that messages advise, and what they are called on a command line.
_OPTIONS = {'`missing="skip"`': "`--missing skip`", "`split`": "`--split`", "`test`": "`--test`"}


def with_changes(config: Config, settings: Sequence[str] = (), seeds: str = "") -> Config:
    """A preset with the changes of a command line.

    Args:
        config: The preset.
        settings: Each as ``NAME=VALUE``, the value as in JSON.
        seeds: Such as ``"0,1"``; empty for those of the preset.

    Example:
        >>> with_changes(Config(), ["epochs=3", "norm=batch"], "5,6").epochs
        3
    """
    changes: dict[str, Any] = {}
    known = {field.name: getattr(config, field.name) for field in fields(config)}
    for text in settings:
        name, equals, value = text.partition("=")
        if name not in known or not equals:
            raise ValueError(
                f'"{text}" is not NAME=VALUE with one of these names: {", ".join(sorted(known))}.'
            )
        changes[name] = _read(name, value, known[name])
    if seeds:
        try:
            changes["seeds"] = tuple(int(seed) for seed in seeds.split(","))
        except ValueError:
            raise ValueError(f'seeds must be numbers such as 0,1; got "{seeds}".') from None
    return replace(config, **changes)


def in_options(message: str) -> str:
    """What an error says, with the options of the command line in place of Python's arguments.

    Example:
        >>> in_options('with `missing="skip"` such images are left out')
        'with `--missing skip` such images are left out'
    """
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message


def _read(name: str, value: str, before: Any) -> Any:
    """A setting as it stands on a command line, of the kind that it had before."""
    try:
        read: Any = json.loads(value)
    except ValueError:
        read = value
    if isinstance(read, list):
        return tuple(read)
    if isinstance(before, float) and type(read) is int:
        return float(read)
    if before is not None and read is not None and type(read) is not type(before):
        raise ValueError(f'`{name}` cannot be "{value}": it is {before!r} in the preset.')
    return read
