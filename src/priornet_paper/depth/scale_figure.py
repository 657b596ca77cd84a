"""Uncertainty against predicted depth: which measures grow with the scale of what is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from priornet.depth import DepthMaps
from priornet.report.axes import GREY, TEXT, tidy
from priornet_paper.depth.style import add_key, colour_of

__all__ = ["draw_scale", "plot_scale"]

_BINS = 12
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
_QUANTITIES = {"total_variance": "total variance V[y] (m²)", "epkl": "knowledge, EPKL (nats)"}


def draw_scale(sets: Mapping[str, Mapping[str, DepthMaps]]) -> Figure:
    """Total variance and EPKL against predicted depth: medians of pixels, by model and set.

    Args:
        sets: Maps by the set's title, the models' own first, then by the model's name in results.
    """
    if not sets or not all(sets.values()):
        raise ValueError("`sets` must hold the maps of at least one model for every set.")
    figure = Figure(figsize=(9, 3.7), layout="constrained")
    panels = figure.subplots(1, len(_QUANTITIES))
    for ax, (quantity, label) in zip(panels, _QUANTITIES.items(), strict=True):
        for style, models in zip(_DASHES, sets.values(), strict=False):
            for name, maps in models.items():
                line = {"color": colour_of(name), "ls": style, "lw": 1.6}
                values = getattr(maps, quantity)
                plot_scale(maps.prediction, values, line, has_band=style == "-", ax=ax)
        ax.set_xlabel("predicted depth (m)", color=TEXT)
        ax.set_ylabel(label, color=TEXT)
        tidy(ax)
    models = list(dict.fromkeys(name for found in sets.values() for name in found))
    dashes = [
        Line2D([], [], color=TEXT, ls=style, lw=1.4, label=title)
        for style, title in zip(_DASHES, sets, strict=False)
    ]
    add_key(figure, models, *dashes)
    return figure


def plot_scale(
    depth: NDArray[Any],
    values: NDArray[Any],
    line: Mapping[str, Any],
    *,
    has_band: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Median of positive values in bins of predicted depth that hold equally many pixels.

    Args:
        depth: Predicted depth in metres, of any shape.
        values: A measure of the same pixels.
        line: How the line looks, as for :meth:`matplotlib.axes.Axes.plot`.
        has_band: Whether the quartiles are drawn too.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    x, low, middle, high = _binned(np.ravel(depth), np.ravel(values))
    ax.plot(x, middle, **line)
    if has_band:
        ax.fill_between(x, low, high, color=line["color"], alpha=0.15, lw=0)
    ax.set(xscale="log", yscale="log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(visible=True, which="major", color=GREY, alpha=0.25, lw=0.6)
    return ax


def _binned(depth: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Median depth, then quartiles of the values, of each bin."""
    seen = np.isfinite(depth) & np.isfinite(values) & (depth > 0) & (values > 0)
    order = np.argsort(depth[seen], kind="stable")
    bins = [part for part in np.array_split(order, _BINS) if len(part)]
    depth, values = depth[seen], values[seen]
    x = np.array([np.median(depth[part]) for part in bins])
    quartiles = np.array([np.percentile(values[part], (25, 50, 75)) for part in bins])
    return x, *quartiles.reshape(-1, 3).T
