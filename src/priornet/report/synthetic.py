"""The figures of the synthetic experiment, drawn from its results alone."""

from __future__ import annotations

from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from priornet.methods import COLOURS, LABELS, TRUTH
from priornet.report.axes import TEXT, tidy

__all__ = ["draw", "draw_panels", "plot_data", "plot_prediction", "plot_uncertainty"]

Part = Literal["total", "data", "knowledge"]
_PARTS: tuple[Part, ...] = ("total", "data", "knowledge")
_SHOWN_POINTS = 500
_DOTS, _REGION = "#8A8A8A", "#EFEFEF"
_BESIDE = {"NWPN-precision": ("NWPN", "NWPN, paper's prior")}  # drawn dashed, in the colour of
_BESIDE_LINE: dict[str, Any] = {"lw": 1.2, "ls": (0, (2, 1.2)), "alpha": 0.9}
_TRUTH_LINE: dict[str, Any] = {"color": TRUTH, "lw": 1.0, "ls": (0, (4, 2))}


def draw(results: dict[str, Any]) -> Figure:
    """Above, what each method predicts; below, its total, data and knowledge uncertainty.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
    """
    figure = Figure(figsize=(10, 5.8), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for ax, method in zip(panels[0], results["methods"], strict=True):
        plot_prediction(results, method, ax=ax)
    for ax, part in zip(panels[1], _PARTS, strict=True):
        plot_uncertainty(results, part, ax=ax)
        ax.set_xlabel("input $x$", color=TEXT)
    panels[0, 0].set_ylabel("target $y$", color=TEXT)
    panels[1, 0].set_ylabel("standard deviation", color=TEXT)
    spreads = [
        Patch(color="#777777", alpha=0.55, lw=0, label="±2 sd, data"),
        Patch(color="#777777", alpha=0.25, lw=0, label="±2 sd, total"),
    ]
    _add_key(figure, [*_key(results), *spreads])
    return figure


def draw_panels(results: dict[str, Any]) -> Figure:
    """The four panels of the paper's figure: the data, and each method's three uncertainties.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
    """
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flatten()
    plot_data(results, ax=panels[0])
    panels[0].set_ylabel("target $y$", color=TEXT)
    for ax, part in zip(panels[1:], _PARTS, strict=True):
        plot_uncertainty(results, part, ax=ax)
        ax.set_ylabel("standard deviation", color=TEXT)
    for ax, letter in zip(panels, "abcd", strict=True):
        ax.set_title(f"({letter}) {ax.get_title()}", color=TEXT, fontsize=12, fontweight="bold")
    for ax in panels[2:]:
        ax.set_xlabel("input $x$", color=TEXT)
    _add_key(figure, _key(results))
    return figure


def _add_key(figure: Figure, handles: list[Artist]) -> None:
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


def _key(results: dict[str, Any]) -> list[Artist]:
    """What colours and lines mean, once for all panels."""
    methods = [
        Line2D([], [], color=COLOURS[m], lw=2, label=LABELS.get(m, m)) for m in results["methods"]
    ]
    beside = [
        Line2D([], [], color=COLOURS[method], label=label, **_BESIDE_LINE)
        for name, (method, label) in _BESIDE.items()
        if name in results["curves"]
    ]
    return [
        *methods,
        *beside,
        Line2D([], [], **_TRUTH_LINE, label="truth"),
        Line2D([], [], color=_DOTS, marker=".", ls="", label="data"),
        Patch(color=_REGION, lw=0, label="training region"),
    ]


def plot_data(results: dict[str, Any], *, ax: Axes | None = None) -> Axes:
    """Training points and the mean they scatter around.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
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


def _scatter(results: dict[str, Any], ax: Axes) -> None:
    train = results["train"]
    thin = max(1, len(train["x"]) // _SHOWN_POINTS)
    ax.scatter(train["x"][::thin], train["y"][::thin], s=4, color=_DOTS, lw=0)


def plot_prediction(results: dict[str, Any], method: str, *, ax: Axes | None = None) -> Axes:
    """Mean of one method with two standard deviations: from the data alone, and in total.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
        method: Name of the method in the results.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    curves = results["curves"]
    x, curve, colour = curves["x"], curves[method], COLOURS[method]
    _mark_training(results, ax)
    _scatter(results, ax)
    for part, alpha in (("total", 0.18), ("data", 0.32)):
        spread = curve[f"{part}_std"]
        low = [m - 2 * s for m, s in zip(curve["mean"], spread, strict=True)]
        high = [m + 2 * s for m, s in zip(curve["mean"], spread, strict=True)]
        ax.fill_between(x, low, high, color=colour, alpha=alpha, lw=0)
    ax.plot(x, curves["truth"]["mean"], **_TRUTH_LINE)
    ax.plot(x, curve["mean"], color=colour, lw=1.8)
    ax.set(title=LABELS.get(method, method), ylim=(-6, 6))
    tidy(ax, colour)
    return ax


def plot_uncertainty(results: dict[str, Any], part: Part, *, ax: Axes | None = None) -> Axes:
    """One part of every method's uncertainty, as a standard deviation on a logarithmic scale.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
        part: ``"total"``, ``"data"`` or ``"knowledge"``.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    curves = results["curves"]
    _mark_training(results, ax)
    for method in results["methods"]:
        ax.plot(curves["x"], curves[method][f"{part}_std"], color=COLOURS[method], lw=1.6)
    for name, (method, _) in _BESIDE.items():
        if name in curves:
            spread = curves[name][f"{part}_std"]
            ax.plot(curves["x"], spread, color=COLOURS[method], **_BESIDE_LINE)
    if part != "knowledge":  # what there is to know about the noise, where there was data
        ax.plot(curves["x"], curves["truth"]["data_std"], **_TRUTH_LINE)
    ax.set(title=f"{part.capitalize()} uncertainty", yscale="log", ylim=(3e-3, 300))
    tidy(ax)
    return ax


def _mark_training(results: dict[str, Any], ax: Axes) -> None:
    edge = results["config"]["train_edge"]
    ax.axvspan(-edge, edge, color=_REGION, lw=0, zorder=0)
    ax.set_xlim(results["curves"]["x"][0], results["curves"]["x"][-1])
