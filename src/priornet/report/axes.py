"""How every Matplotlib figure looks: quiet axes, one colour for text."""

from __future__ import annotations

from matplotlib.axes import Axes

__all__ = ["GREY", "TEXT", "tidy"]

TEXT, GREY = "#333333", "#AAAAAA"


def tidy(ax: Axes, title_colour: str = TEXT) -> None:
    """Two spines, small ticks, a bold title."""
    ax.title.set(color=title_colour, fontsize=12, fontweight="bold")
    ax.tick_params(labelsize=9, color=GREY, labelcolor=TEXT, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
