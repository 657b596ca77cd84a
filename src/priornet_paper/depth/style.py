"""How methods and their variants look in the figures of the depth experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from priornet.methods import COLOURS, LABELS
from priornet.report.axes import TEXT

__all__ = ["add_key", "colour_of", "label_of", "line_of", "mean_of", "values_of"]


def colour_of(method: str) -> str:
    """A variant has its method's colour."""
    return COLOURS.get(method if method in COLOURS else method.partition("-")[0], TEXT)


def line_of(method: str) -> dict[str, Any]:
    """A variant has its method's colour: another temperature is dashed, other targets dotted."""
    style = "-" if method in COLOURS else (0, (1, 1.2) if method.endswith("-proxy") else (3, 1.5))
    return {"color": colour_of(method), "lw": 1.6, "ls": style}


def label_of(method: str) -> str:
    """What to write for a name in results."""
    base, dash, variant = method.partition("-")
    if method in COLOURS or not dash:
        return LABELS.get(method, method)
    return f"{LABELS.get(base, base)}, {variant}"


def values_of(curve: Any) -> Any:
    """A list of numbers; of the mean over seeds where there are several."""
    return curve["mean"] if isinstance(curve, Mapping) else curve


def mean_of(score: Any) -> float:
    """A number; the mean over seeds where there are several."""
    return float(values_of(score))


def add_key(figure: Figure, methods: Sequence[str], *more: Line2D) -> None:
    """The methods' lines below all panels, and other signs that need words."""
    lines = [Line2D([], [], **line_of(name), label=label_of(name)) for name in methods]
    signs = len(lines) + len(more)
    n_rows = math.ceil(signs / max(int(figure.get_figwidth() / 1.15), 1))
    figure.legend(
        handles=[*lines, *more],
        loc="outside lower center",
        ncols=math.ceil(signs / n_rows),  # rows of the same length
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
        handlelength=1.6,
        columnspacing=1.4,
    )
