"""Packages that only some tables need, imported when they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from priornet.data.uci.registry import UciError

__all__ = ["need"]


def need(module: str, purpose: str) -> Any:
    """Import a module, or say what it is for and how to get it.

    Args:
        module: Its name.
        purpose: Ends the sentence "``module`` is needed to ...".
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UciError(
            f"{package} is needed to {purpose}; install it with `pip install 'priornet[uci]'`."
        ) from error
