"""Curves over pixels of the depth experiment, and how methods look in all of its figures.

Maps are drawn by :func:`priornet.depth.draw_maps`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from priornet.methods import COLOURS, LABELS
from priornet.report import TEXT, tidy

Curve = Literal["predictive_intervals", "predictive_quantiles", "normal_intervals"]
_CURVES: dict[Curve, tuple[str, str]] = {
    "predictive_intervals": ("Own intervals", "nominal coverage"),
    "normal_intervals": ("Normal intervals", "nominal coverage"),
    "predictive_quantiles": ("Own quantiles", "quantile"),
}
_LEAST_NATS = 1.0  # start of the upper tails: a logarithmic scale has no zero
_MARKED = ("99", "99.9")
_UNSEEN = 1e-4  # a share of pixels that no curve shows
_DIAGONAL: dict[str, Any] = {"color": "black", "lw": 1.0, "ls": (0, (4, 2))}


def colour_of(method: str) -> str:
    """Return a method's colour; a variant has that of its method."""
    return COLOURS.get(method if method in COLOURS else method.partition("-")[0], TEXT)


def line_of(method: str) -> dict[str, Any]:
    """Return a line's look: dashed for another temperature, dotted for other targets."""
    style = "-" if method in COLOURS else (0, (1, 1.2) if method.endswith("-proxy") else (3, 1.5))
    return {"color": colour_of(method), "lw": 1.6, "ls": style}


def _label_of(method: str) -> str:
    base, dash, variant = method.partition("-")
    if method in COLOURS or not dash:
        return LABELS.get(method, method)
    return f"{LABELS.get(base, base)}, {variant}"


def add_key(figure: Figure, methods: Sequence[str], *more: Line2D) -> None:
    """Add the methods' lines below all panels, and other signs that need words."""
    lines = [Line2D([], [], **line_of(name), label=_label_of(name)) for name in methods]
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


def mark_powers(ax: Axes) -> None:
    """Name 1, 2 and 5 times the powers of ten on a logarithmic axis, in plain numbers."""
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def draw_likelihoods(methods: Mapping[str, Mapping[str, Any]], score: str = "nll") -> Figure:
    """Draw negative log-likelihoods of pixels: their density, and how heavy its tail is.

    Args:
        methods: Scores by method, as in ``results["methods"]`` of ``results/depth/*.json``;
            methods without a likelihood are left out.
        score: ``"nll"``, or ``"nll_moment_matched"`` for Gaussians with the same moments.
    """
    shown = {n: m for n, m in methods.items() if f"{score}_histogram" in m}
    if not shown:
        raise ValueError(f'no method has a "{score}_histogram"; got: {", ".join(methods)}.')
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    # Lines that lie on each other are seen as edges: the first is the widest.
    widths = np.linspace(2.8, 1.2, len(shown)) if len(shown) > 1 else [1.6]
    for (name, scores), width in zip(shown.items(), widths, strict=True):
        histogram, quantiles = scores[f"{score}_histogram"], scores.get(f"{score}_quantiles", {})
        plot_likelihood(histogram, name, ax=left)
        plot_likelihood_tail(histogram, name, quantiles, ax=right)
        for ax in (left, right):
            ax.lines[-1].set_linewidth(float(width))
    lowest = min(_lowest(scores[f"{score}_histogram"]) for scores in shown.values())
    left.set_xlim(left=lowest)
    right.set_xlim(left=max(lowest, _LEAST_NATS))
    marks = Line2D([], [], marker="o", ms=4, color=TEXT, ls="none", label="99 %, 99.9 %")
    add_key(figure, list(shown), marks)
    return figure


def plot_likelihood(histogram: Mapping[str, Any], method: str, *, ax: Axes | None = None) -> Axes:
    """Plot the density of a method's negative log-likelihoods, one pixel one value.

    Args:
        histogram: As in the results: ``from``, ``to``, ``shares``, ``below`` and ``above``.
        method: Its name in the results.
        ax: Axes to draw on; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    edges, shares, _ = _bins(histogram)
    density = shares / (edges[1] - edges[0])
    ax.plot(0.5 * (edges[:-1] + edges[1:]), density, **line_of(method))
    ax.set(title="Likelihood of pixels", xlim=(edges[0], edges[-1]))
    ax.set_ylim(0, 1.05 * max(float(np.max(line.get_ydata())) for line in ax.lines))
    ax.set_xlabel("negative log-likelihood of a pixel (nats)", color=TEXT)
    ax.set_ylabel("density", color=TEXT)
    tidy(ax)
    return ax


def plot_likelihood_tail(
    histogram: Mapping[str, Any],
    method: str,
    quantiles: Mapping[str, Any] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the share of pixels with a larger negative log-likelihood, logarithmically from 1 nat.

    Args:
        histogram: As for :func:`plot_likelihood`.
        method: Its name in the results.
        quantiles: Nats that so many per cent of the pixels do not exceed, by the per cent (``"99"``
            and ``"99.9"``): marked, and points of the line after the end of the histogram.
        ax: Axes to draw on; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    edges, shares, above = _bins(histogram)
    larger = above + np.concatenate([np.cumsum(shares[::-1])[::-1], [0.0]])
    known = {q: float(_mean(v)) for q in _MARKED if (v := (quantiles or {}).get(q)) is not None}
    x = np.concatenate([edges, list(known.values())])
    y = np.concatenate([larger, [1 - float(q) / 100 for q in known]])
    order = np.argsort(x, kind="stable")
    marks = [place for place, row in enumerate(order) if row >= len(edges)]
    ax.plot(x[order], y[order], marker="o", ms=4, markevery=marks, **line_of(method))
    ax.set(title="Upper tail", xscale="log", yscale="log")
    ends = [np.asarray(line.get_data(), float)[:, -1] for line in ax.lines]
    ax.set_xlim(_LEAST_NATS, max(float(end[0]) for end in ends) * 1.1)
    ax.set_ylim(max(0.5 * min(float(end[1]) for end in ends), 3e-5), 1.3)
    mark_powers(ax)
    ax.set_xlabel("negative log-likelihood of a pixel (nats)", color=TEXT)
    ax.set_ylabel("share of pixels above", color=TEXT)
    tidy(ax)
    return ax


def draw_calibration(methods: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw nominal against observed coverage: the models' own intervals, and normal ones.

    Args:
        methods: Scores by method, as in ``results["methods"]`` of ``results/depth/*.json``;
            methods without a calibration curve are left out.
    """
    shown = {n: m for n, m in methods.items() if "calibration" in m}
    if not shown:
        raise ValueError(f"no method has a calibration curve; got: {', '.join(methods)}.")
    key_rows = (len(shown) + 1) // 2
    figure = Figure(figsize=(7.6, 4.25 + 0.19 * key_rows), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    curves: tuple[Curve, ...] = ("predictive_intervals", "normal_intervals")
    for ax, curve in zip(panels, curves, strict=True):
        handles: list[Line2D] = []
        for name, scores in shown.items():
            plot_calibration(scores["calibration"], name, curve, ax=ax)
            label = f"{_label_of(name)} {float(_mean(scores['c_auc'][curve])):.3f}"
            handles.append(Line2D([], [], **line_of(name), label=label))
        ax.legend(
            handles=handles,
            title="area to the diagonal (C-AUC)",
            loc="upper center",
            bbox_to_anchor=(0.5, -0.14),
            ncols=2,
            fontsize=8,
            title_fontproperties={"size": 9},
            frameon=False,
            labelcolor=TEXT,
            handlelength=1.4,
        )
        ax.set_anchor("N")
    panels[1].set_ylabel("")
    return figure


def plot_calibration(
    calibration: Mapping[str, Any],
    method: str,
    curve: Curve = "predictive_intervals",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot the share of targets inside intervals (or below quantiles) against the nominal share.

    Args:
        calibration: As in the results: ``expected`` and the curves.
        method: Its name in the results.
        curve: Name of one of the curves.
        ax: Axes to draw on; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    title, promised = _CURVES[curve]
    if not ax.lines:
        ax.plot([0, 1], [0, 1], **_DIAGONAL)
    ax.plot(calibration["expected"], _mean(calibration[curve]), **line_of(method))
    ticks = (0, 0.25, 0.5, 0.75, 1)
    ax.set(title=title, xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=ticks, yticks=ticks)
    ax.set_xticklabels([f"{tick:g}" for tick in ticks])
    ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    ax.set_xlabel(promised, color=TEXT)
    ax.set_ylabel("share of pixels", color=TEXT)
    tidy(ax)
    return ax


def _mean(score: Any) -> Any:
    """Return numbers of one seed as they are, and the mean over several seeds."""
    return score["mean"] if isinstance(score, Mapping) else score


def _lowest(histogram: Mapping[str, Any]) -> float:
    """Return the whole number of nats below nearly all pixels."""
    edges, shares, _ = _bins(histogram)
    return float(np.floor(edges[np.argmax(np.cumsum(shares) > _UNSEEN)]))


def _bins(histogram: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Return edges and shares of the bins, and the share above them."""
    shares = np.asarray(_mean(histogram["shares"]), float)
    edges = np.linspace(histogram["from"], histogram["to"], len(shares) + 1)
    return edges, shares, float(_mean(histogram["above"]))
