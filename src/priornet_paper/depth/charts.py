"""Charts of the depth experiment: foreign images told apart, weights of them, correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from priornet.report.axes import GREY, TEXT, tidy
from priornet_paper.depth.style import add_key, colour_of

__all__ = ["draw_correlations", "draw_detection", "draw_gammas", "plot_dots"]

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""By method and measure: a number for every seed."""

_PRINTED: dict[str, Any] = {
    "marker": "D",
    "ms": 3.6,
    "mfc": "white",
    "mec": TEXT,
    "mew": 0.8,
    "ls": "none",
}
_DOTTED: dict[str, Any] = {**_PRINTED, "ls": ":", "color": GREY, "lw": 1.0}


def draw_detection(
    panels: Mapping[str, Values],
    printed: Mapping[str, Mapping[str, Mapping[str, float]]],
    symbols: Mapping[str, str],
) -> Figure:
    """AUC of each measure and method as bars from chance, seeds as dots, the paper's as diamonds.

    Args:
        panels: Values by title, such as "NYU against KITTI".
        printed: The paper's, likewise.
        symbols: What to write for each measure, in their order.
    """
    if not panels:
        raise ValueError("`panels` must hold the values of at least one pair of sets.")
    n_rows = -(-len(panels) // 2)
    figure = Figure(figsize=(11, 2.9 * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, 2, sharey=True, squeeze=False).ravel()
    for ax, (title, values) in zip(axes, panels.items(), strict=False):
        _bars(ax, values, printed.get(title, {}), symbols)
        ax.set_title(title)
        tidy(ax)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[::2]:
        ax.set_ylabel("AUC", color=TEXT)
    methods = list(dict.fromkeys(name for values in panels.values() for name in values))
    add_key(
        figure,
        methods,
        Line2D([], [], marker="o", ms=3, color=TEXT, ls="none", label="a seed"),
        Line2D([], [], **_PRINTED, label="the paper"),
    )
    return figure


def _bars(
    ax: Axes,
    values: Values,
    printed: Mapping[str, Mapping[str, float]],
    symbols: Mapping[str, str],
) -> None:
    step = 0.86 / len(values)
    for k, (method, measures) in enumerate(values.items()):
        for i, measure in enumerate(symbols):
            x = i - 0.43 + step * (k + 0.5)
            found = [value for value in measures.get(measure, ()) if np.isfinite(value)]
            if found:
                height = float(np.mean(found)) - 0.5
                ax.bar(x, height, 0.9 * step, bottom=0.5, color=colour_of(method), alpha=0.85)
                ax.plot([x] * len(found), found, "o", ms=1.8, color=TEXT)
            if measure in printed.get(method, {}):
                ax.plot(x, printed[method][measure], **_PRINTED)
    ax.axhline(0.5, color=TEXT, lw=0.8)
    ax.set(ylim=(-0.03, 1.03), xlim=(-0.55, len(symbols) - 0.45))
    ax.set_xticks(range(len(symbols)), list(symbols.values()))


def draw_gammas(
    sets: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    printed: Mapping[str, Mapping[str, Mapping[float, float]]],
) -> Figure:
    """What the weight of foreign images does to a prior network, a column for each set.

    Args:
        sets: By the set's title and the score's: values of every seed by weight.
        printed: The paper's, likewise.
    """
    if not sets:
        raise ValueError("`sets` must hold the scores of at least one set.")
    scores = list(dict.fromkeys(score for found in sets.values() for score in found))
    size = (4.6 * len(sets), 1.75 * len(scores) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(scores), len(sets), squeeze=False)
    for column, (title, found) in enumerate(sets.items()):
        weights = sorted({weight for values in found.values() for weight in values})
        for row, score in enumerate(scores):
            ax: Axes = grid[row, column]
            _plot_weights(ax, found.get(score, {}), printed.get(title, {}).get(score, {}), weights)
            ax.set_ylabel(score if column == 0 else "", color=TEXT)
            ax.set_title(title if row == 0 else "")
            tidy(ax)
            if row < len(scores) - 1:
                ax.set_xticklabels([])
        grid[-1, column].set_xlabel("gamma", color=TEXT)
    add_key(
        figure,
        ["NWPN"],
        Line2D([], [], marker="o", ms=3, color=TEXT, ls="none", label="a seed"),
        Line2D([], [], **_DOTTED, label="the paper"),
    )
    return figure


def _plot_weights(
    ax: Axes,
    values: Mapping[float, Sequence[float]],
    printed: Mapping[float, float],
    weights: Sequence[float],
) -> None:
    """Weights stand side by side: zero has no place on a logarithmic scale."""
    place = {weight: x for x, weight in enumerate(weights)}
    for weight, seeds in values.items():
        ax.plot([place[weight]] * len(seeds), seeds, "o", ms=2.4, color=TEXT, zorder=3)
    means = {w: float(np.mean(seeds)) for w, seeds in values.items()}
    xs = sorted(means, key=lambda weight: place[weight])
    ax.plot([place[w] for w in xs], [means[w] for w in xs], color=colour_of("NWPN"), lw=1.6)
    theirs = [w for w in weights if w in printed]
    ax.plot([place[w] for w in theirs], [printed[w] for w in theirs], **_DOTTED)
    ax.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
    ax.margins(x=0.08, y=0.15)


def draw_correlations(
    rows: Mapping[str, Mapping[str, Values]], symbols: Mapping[str, str]
) -> Figure:
    """Spearman's correlation of each measure with something, a dot for each method.

    Args:
        rows: Values by what they are correlated with, then by the set's title.
        symbols: What to write for each measure, in their order.
    """
    sets = list(dict.fromkeys(title for panels in rows.values() for title in panels))
    if not sets:
        raise ValueError("`rows` must hold the correlations of at least one set.")
    size = (4.6 * len(sets), 2.5 * len(rows) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), len(sets), squeeze=False, sharex=True, sharey=True)
    for row, (what, panels) in enumerate(rows.items()):
        for column, title in enumerate(sets):
            ax: Axes = grid[row, column]
            plot_dots(panels.get(title, {}), symbols, ax=ax)
            ax.set_title(f"{title}: {what}")
            tidy(ax)
    for ax in grid[-1]:
        ax.set_xlabel("Spearman's correlation", color=TEXT)
    methods = [name for panels in rows.values() for values in panels.values() for name in values]
    add_key(figure, list(dict.fromkeys(methods)))
    return figure


def plot_dots(values: Values, symbols: Mapping[str, str], *, ax: Axes | None = None) -> Axes:
    """Correlations from -1 to 1, a row for each measure, a dot for each method, seeds as a line.

    Args:
        values: By method and measure, a number for every seed.
        symbols: What to write for each measure, from the top.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    step = 0.7 / max(len(values), 1)
    for k, (method, measures) in enumerate(values.items()):
        look: dict[str, Any] = {"color": colour_of(method)}
        for i, measure in enumerate(symbols):
            seeds = [value for value in measures.get(measure, ()) if np.isfinite(value)]
            if seeds:
                y = i - 0.35 + step * (k + 0.5)
                ax.plot([min(seeds), max(seeds)], [y, y], lw=1.4, **look)
                ax.plot(float(np.mean(seeds)), y, "o", ms=4, **look)
    ax.axvline(0, color=GREY, lw=0.8)
    for i in range(1, len(symbols)):
        ax.axhline(i - 0.5, color="#EEEEEE", lw=0.8)
    ax.set(xlim=(-1.05, 1.05), ylim=(len(symbols) - 0.5, -0.5))
    ax.set_yticks(range(len(symbols)), list(symbols.values()))
    return ax
