"""Figures as files: PNG to look at, SVG to enlarge, the same bytes for the same figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["write_figure"]

_DPI = 150


def write_figure(figure: Figure, folder: Path, name: str) -> dict[str, Path]:
    """Write ``name.png`` and ``name.svg`` into a folder, which is made if need be.

    Neither holds a date or a version, and the names inside the SVG are not random: a figure that
    has not changed does not change its files.

    Returns:
        The paths, by ending.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {ending: folder / f"{name}.{ending}" for ending in ("png", "svg")}
    unsigned: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
    }
    with rc_context({"svg.hashsalt": "priornet"}):
        for ending, path in paths.items():
            figure.savefig(path, dpi=_DPI, metadata=unsigned[ending])
    return paths
