"""Prediction-rejection curves of the UCI tables, drawn from their results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from priornet.methods import COLOURS, LABELS
from priornet.report.axes import TEXT, tidy

__all__ = ["draw", "plot_rejection"]

_ORACLE: dict[str, Any] = {"color": "black", "lw": 1.2, "ls": (0, (4, 2))}
_RANDOM: dict[str, Any] = {"color": "#777777", "lw": 1.2, "ls": ":"}
_POSSIBLE = "#E3E3E3"
_MEASURES = {
    "total_entropy": "total entropy",
    "total_variance": "total variance",
    "expected_entropy": "expected entropy",
    "mutual_information": "mutual information",
    "epkl": "EPKL",
    "variance_of_mean": "variance of the mean",
}


def draw(
    results: Sequence[Mapping[str, Any]],
    methods: Sequence[str] = ("EnD2",),
    measures: Sequence[str] = ("total_variance",),
) -> Figure:
    """A panel for each table, method and measure: tables side by side, the others below each other.

    Args:
        results: Results of tables, as in ``results/uci/*.json``.
        methods: Names of methods in the results.
        measures: Uncertainty that decides what is rejected first.
    """
    rows = [(method, measure) for method in methods for measure in measures]
    if not results or not rows:
        raise ValueError("`results`, `methods` and `measures` must each name at least one.")
    size = (max(1.9 * len(results), 4.5), 0.6 + 2.0 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(results), sharex=True, sharey=True, squeeze=False)
    for line, (method, measure) in zip(panels, rows, strict=True):
        for ax, table in zip(line, results, strict=True):
            plot_rejection(table, method, measure, ax=ax)
        line[0].set_ylabel(f"by {_MEASURES.get(measure, measure)}\nerror left", color=TEXT)
    for ax in panels[-1]:
        ax.set_xlabel("rows rejected", color=TEXT)
    figure.legend(
        handles=_key(methods),
        loc="outside lower center",
        ncols=len(methods) + 3,
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
    )
    return figure


def _key(methods: Sequence[str]) -> list[Artist]:
    """What lines and shades mean: those of a method share its colour."""
    return [
        *(Line2D([], [], color=COLOURS[m], lw=2, label=LABELS.get(m, m)) for m in methods),
        Line2D([], [], **_ORACLE, label="largest errors first"),
        Line2D([], [], **_RANDOM, label="by chance"),
        Patch(color=_POSSIBLE, lw=0, label="possible gain"),
    ]


def plot_rejection(
    results: Mapping[str, Any], method: str, measure: str, *, ax: Axes | None = None
) -> Axes:
    """Error left when the most uncertain rows are rejected first, between the best and chance.

    The ratio of the coloured area to the grey one and it together is the prediction rejection
    ratio; the number is the mean of the folds' own.

    Args:
        results: Results of one table.
        method: Name of the method in the results.
        measure: Uncertainty that decides what is rejected first.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    entry, table = _entry(results, method, measure), results["dataset"]
    curves, colour = entry["rejection"], COLOURS[method]
    x, chance = curves["fraction"], curves["random"]
    ax.fill_between(x, curves["oracle"], chance, color=_POSSIBLE, lw=0)
    ax.fill_between(x, curves[measure], chance, color=colour, alpha=0.35, lw=0)
    ax.plot(x, curves["oracle"], **_ORACLE)
    ax.plot(x, chance, **_RANDOM)
    ax.plot(x, curves[measure], color=colour, lw=1.8)
    ratio = f"PRR {entry['prr'][measure]['mean']:.2f}"
    ax.text(0.95, 0.95, ratio, transform=ax.transAxes, ha="right", va="top", color=TEXT)
    name = f"{table}, {LABELS.get(method, method)}"
    ax.set(title=name, xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    ax.set_xticklabels(["0", "0.5", "1"])
    tidy(ax)
    ax.title.set_fontsize(10)
    return ax


def _entry(results: Mapping[str, Any], method: str, measure: str) -> Mapping[str, Any]:
    """What was found of a method, if it has the curve."""
    methods = results["methods"]
    if method not in methods:
        listing = ", ".join(methods)
        raise ValueError(
            f'{results["dataset"]}: unknown method "{method}"; choose one of: {listing}.'
        )
    curves = methods[method]["rejection"]
    if measure not in curves:
        listing = ", ".join(name for name in curves if name in _MEASURES)
        raise ValueError(
            f'{results["dataset"]}: {method} has no curve by "{measure}"; choose one of: {listing}.'
        )
    return methods[method]
