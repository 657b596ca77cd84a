"""Where tables are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from priornet.data.uci.registry import UciError

__all__ = ["VARIABLE", "find", "roots"]

VARIABLE = "PRIORNET_DATA"


def roots() -> list[Path]:
    """The folders to look in, first choice first."""
    named = os.environ.get(VARIABLE)
    if named and not Path(named).is_dir():
        raise UciError(f"{named}: ${VARIABLE} must name a folder, and there is none.")
    return [Path(named)] if named else []


def find(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """The first of these files that is in one of the folders, or in their ``uci`` folder."""
    names = list(names)
    for folder in folders:
        for place in (folder, folder / "uci"):
            for name in names:
                if (place / name).exists():
                    return place / name
    return None
