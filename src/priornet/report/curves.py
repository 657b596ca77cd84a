"""Predictions and uncertainties of several methods along one input, drawn from results alone.

Results hold ``methods`` by name, ``curves`` with a grid ``x``, the truth and each method's mean and
standard deviations, the training points ``train``, and the edge of the training region in
``config``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from priornet.evaluation.numbers import band, thinned
from priornet.methods import COLOURS, LABELS, TRUTH
from priornet.report.figures import TEXT, tidy

Part = Literal["total", "data", "knowledge"]
PARTS: tuple[Part, ...] = ("total", "data", "knowledge")
_SHOWN_POINTS = 500
_DOTS, _REGION = "#8A8A8A", "#EFEFEF"
_DASHED: dict[str, Any] = {"lw": 1.2, "ls": (0, (2, 1.2)), "alpha": 0.9}
_TRUTH_LINE: dict[str, Any] = {"color": TRUTH, "lw": 1.0, "ls": (0, (4, 2))}


def draw(results: dict[str, Any]) -> Figure:
    """Draw each method's prediction above, and the three uncertainties below.

    Args:
        results: Three methods, as of :func:`priornet.demo.study_curve`.
    """
    figure = Figure(figsize=(10, 5.8), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for ax, method in zip(panels[0], results["methods"], strict=True):
        plot_prediction(results, method, ax=ax)
    for ax, part in zip(panels[1], PARTS, strict=True):
        plot_uncertainty(results, part, ax=ax)
        ax.set_xlabel("input $x$", color=TEXT)
    panels[0, 0].set_ylabel("target $y$", color=TEXT)
    panels[1, 0].set_ylabel("standard deviation", color=TEXT)
    spreads = [
        Patch(color="#777777", alpha=0.55, lw=0, label="±2 sd, data"),
        Patch(color="#777777", alpha=0.25, lw=0, label="±2 sd, total"),
    ]
    add_key(figure, results, more=spreads)
    return figure


def add_key(
    figure: Figure,
    results: dict[str, Any],
    *,
    variants: Mapping[str, str] | None = None,
    more: Sequence[Artist] = (),
) -> None:
    """Add one legend for all panels: colours and lines.

    Args:
        figure: Where to add it.
        results: As for :func:`draw`.
        variants: Label of each dashed curve, and the method whose colour it has.
        more: Entries after the others.
    """
    handles: list[Artist] = [
        Line2D([], [], color=COLOURS[m], lw=2, label=LABELS.get(m, m)) for m in results["methods"]
    ]
    handles += [
        Line2D([], [], color=COLOURS[method], label=label, **_DASHED)
        for label, method in (variants or {}).items()
    ]
    handles += [
        Line2D([], [], **_TRUTH_LINE, label="truth"),
        Line2D([], [], color=_DOTS, marker=".", ls="", label="data"),
        Patch(color=_REGION, lw=0, label="training region"),
        *more,
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=8,
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
        handlelength=1.5,
        columnspacing=1.4,
        handletextpad=0.6,
    )


def plot_data(results: dict[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw the training points and the mean around which they scatter.

    Args:
        results: As for :func:`draw`.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    _mark_training(results, ax)
    _scatter(results, ax)
    curves = results["curves"]
    ax.plot(curves["x"], curves["truth"]["mean"], **_TRUTH_LINE)
    ax.set(title="Input data", ylim=(-4, 4))
    tidy(ax)
    return ax


def plot_prediction(results: dict[str, Any], method: str, *, ax: Axes | None = None) -> Axes:
    """Draw one method's mean with two standard deviations: from the data alone, and in total.

    Args:
        results: As for :func:`draw`.
        method: Name of the method in the results.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    curves = results["curves"]
    x, curve, colour = curves["x"], curves[method], COLOURS[method]
    _mark_training(results, ax)
    _scatter(results, ax)
    for part, alpha in (("total", 0.18), ("data", 0.32)):
        low, high = band(curve["mean"], curve[f"{part}_std"])
        ax.fill_between(x, low, high, color=colour, alpha=alpha, lw=0)
    ax.plot(x, curves["truth"]["mean"], **_TRUTH_LINE)
    ax.plot(x, curve["mean"], color=colour, lw=1.8)
    ax.set(title=LABELS.get(method, method), ylim=(-6, 6))
    tidy(ax, colour)
    return ax


def plot_uncertainty(
    results: dict[str, Any],
    part: Part,
    *,
    variants: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one part of every method's uncertainty, as a standard deviation on a logarithmic scale.

    Args:
        results: As for :func:`draw`.
        part: ``"total"``, ``"data"`` or ``"knowledge"``.
        variants: Names of further curves, drawn dashed, and the method whose colour each has.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    curves = results["curves"]
    _mark_training(results, ax)
    for method in results["methods"]:
        ax.plot(curves["x"], curves[method][f"{part}_std"], color=COLOURS[method], lw=1.6)
    for name, method in (variants or {}).items():
        ax.plot(curves["x"], curves[name][f"{part}_std"], color=COLOURS[method], **_DASHED)
    if part != "knowledge":  # the noise, which is known
        ax.plot(curves["x"], curves["truth"]["data_std"], **_TRUTH_LINE)
    ax.set(title=f"{part.capitalize()} uncertainty", yscale="log", ylim=(3e-3, 300))
    tidy(ax)
    return ax


def _scatter(results: dict[str, Any], ax: Axes) -> None:
    x, y = (thinned(results["train"][name], _SHOWN_POINTS) for name in ("x", "y"))
    ax.scatter(x, y, s=4, color=_DOTS, lw=0)


def _mark_training(results: dict[str, Any], ax: Axes) -> None:
    edge = results["config"]["train_edge"]
    ax.axvspan(-edge, edge, color=_REGION, lw=0, zorder=0)
    ax.set_xlim(results["curves"]["x"][0], results["curves"]["x"][-1])
