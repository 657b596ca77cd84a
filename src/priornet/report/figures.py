"""The common look of Matplotlib figures: quiet axes, one colour for text."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from priornet.writing import write_bytes

TEXT, GREY = "#333333", "#AAAAAA"


def tidy(ax: Axes, title_colour: str = TEXT) -> None:
    """Two spines, small ticks, a bold title."""
    ax.title.set(color=title_colour, fontsize=12, fontweight="bold")
    ax.tick_params(labelsize=9, color=GREY, labelcolor=TEXT, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)


_DPI = 150
_SOURCE = {"Source": "priornet"}  # by which a later run knows the figure for its own
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None, **_SOURCE},
    "svg": {"Date": None, "Creator": None, **_SOURCE},
}


def figure_bytes(figure: Figure, ending: Literal["png", "svg"]) -> bytes:
    """Draw a figure.

    The content holds no date and no version, and the names inside an SVG are not random: a figure
    that has not changed does not change its file.
    """
    content = BytesIO()
    with rc_context({"svg.hashsalt": "priornet"}):
        figure.savefig(content, format=ending, dpi=_DPI, metadata=_METADATA[ending])
    return content.getvalue()


def write_figure(figure: Figure, folder: Path, name: str) -> dict[str, Path]:
    """Write ``name.png`` and ``name.svg`` into a folder, which is made if need be.

    Returns:
        The paths, by ending.
    """
    return {
        ending: write_bytes(folder.joinpath(f"{name}.{ending}"), figure_bytes(figure, ending))
        for ending in ("png", "svg")
    }
