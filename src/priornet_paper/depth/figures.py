"""Figures of the scores of depth models; maps are drawn in the module ``maps``."""

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
from priornet.report import GREY, TEXT, tidy

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
    """Plot the density of a method's negative log-likelihoods, one pixel one value."""
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

    Quantiles are nats by the per cent of pixels that do not exceed them (``"99"``, ``"99.9"``).
    They are marked, and continue the line after the end of the histogram.
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
    """Plot the share of targets inside intervals (or below quantiles) against the nominal share."""
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


Values = Mapping[str, Mapping[str, Sequence[float]]]
"""A number for every seed, by method and measure."""

_PRINTED: dict[str, Any] = {
    "marker": "D",
    "ms": 3.6,
    "mfc": "white",
    "mec": TEXT,
    "mew": 0.8,
    "ls": "none",
}
_DOTTED: dict[str, Any] = {**_PRINTED, "ls": ":", "color": GREY, "lw": 1.0}
_A_SEED: dict[str, Any] = {"marker": "o", "ms": 3, "color": TEXT, "ls": "none", "label": "a seed"}


def draw_detection(
    panels: Mapping[str, Values],
    printed: Mapping[str, Mapping[str, Mapping[str, float]]],
    symbols: Mapping[str, str],
) -> Figure:
    """Draw AUCs by measure and method as bars from chance, seeds as dots, the paper's as diamonds.

    Args:
        panels: Values by title, such as "NYU against KITTI".
        printed: The paper's, likewise.
        symbols: Symbol of each measure, in their order.
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
    key = Line2D([], [], **_A_SEED), Line2D([], [], **_PRINTED, label="the paper")
    add_key(figure, methods, *key)
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
    """Draw the scores of prior networks by the weight of OOD images, a column for each set.

    Args:
        sets: Values of every seed by weight, by the set's title and the score's.
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
    key = Line2D([], [], **_A_SEED), Line2D([], [], **_DOTTED, label="the paper")
    add_key(figure, ["NWPN"], *key)
    return figure


def _plot_weights(
    ax: Axes,
    values: Mapping[float, Sequence[float]],
    printed: Mapping[float, float],
    weights: Sequence[float],
) -> None:
    """Plot weights side by side: zero has no place on a logarithmic scale."""
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
    """Draw Spearman's correlation of each measure with several quantities, a dot for each method.

    Args:
        rows: Values by the name of the quantity, then by the set's title.
        symbols: Symbol of each measure, in their order.
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
    """Plot correlations: a row for each measure, a dot for each method, a line over its seeds."""
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
