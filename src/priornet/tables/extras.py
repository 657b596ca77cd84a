"""Packages that only some data sets need, imported when they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["need_for"]

_NAMES = {"PIL": "Pillow"}  # where a package is called otherwise than its module


def need_for(module: str, purpose: str, extra: str, error: type[Exception]) -> Any:
    """Import a module, or say what it is for and how to get it.

    Args:
        module: Its name.
        purpose: Ends the sentence "``module`` is needed to ...".
        extra: The extra of priornet that brings it.
        error: What is raised.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        top = module.partition(".")[0]
        raise error(
            f"{_NAMES.get(top, top)} is needed to {purpose}; install it with "
            f"`pip install '.[{extra}]'` in a checkout of priornet."
        ) from missing
