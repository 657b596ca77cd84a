"""The figures of the depth experiment: arrays and results in, Matplotlib figures out.

Maps are drawn by :func:`priornet.depth.draw_maps`; here are the curves, and the images that a
model of another set is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from priornet.depth import DepthMaps, draw_maps
from priornet.report.axes import TEXT, tidy
from priornet_paper.depth.style import add_key, label_of, line_of, mean_of, values_of

__all__ = [
    "DepthMaps",
    "draw_calibration",
    "draw_inputs",
    "draw_likelihoods",
    "draw_maps",
    "plot_calibration",
    "plot_likelihood",
    "plot_likelihood_tail",
]

Curve = Literal["predictive_intervals", "predictive_quantiles", "normal_intervals"]
_CURVES: dict[Curve, tuple[str, str]] = {
    "predictive_intervals": ("Own intervals", "nominal coverage"),
    "normal_intervals": ("Normal intervals", "nominal coverage"),
    "predictive_quantiles": ("Own quantiles", "quantile"),
}
_LEAST_NATS = 1.0  # where upper tails begin: a logarithmic scale has no zero
_MARKED = ("99", "99.9")
_UNSEEN = 1e-4  # a share of pixels that no curve shows
_DIAGONAL: dict[str, Any] = {"color": "black", "lw": 1.0, "ls": (0, (4, 2))}


def draw_likelihoods(methods: Mapping[str, Mapping[str, Any]], score: str = "nll") -> Figure:
    """Negative log-likelihoods of pixels: their density, and how heavy its tail is.

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
    # Where nobody has a pixel there is nothing to see.
    lowest = min(_lowest(scores[f"{score}_histogram"]) for scores in shown.values())
    left.set_xlim(left=lowest)
    right.set_xlim(left=max(lowest, _LEAST_NATS))
    marks = Line2D([], [], marker="o", ms=4, color=TEXT, ls="none", label="99 %, 99.9 %")
    add_key(figure, list(shown), marks)
    return figure


def plot_likelihood(histogram: Mapping[str, Any], method: str, *, ax: Axes | None = None) -> Axes:
    """Density of a method's negative log-likelihoods, one pixel one value.

    Args:
        histogram: As in the results: ``from``, ``to``, ``shares``, ``below`` and ``above``.
        method: Its name in the results.
        ax: Where to draw; a new figure when None.
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
    """Share of pixels whose negative log-likelihood is larger, on logarithmic scales from 1 nat on.

    Args:
        histogram: As for :func:`plot_likelihood`.
        method: Its name in the results.
        quantiles: Nats that so many per cent of the pixels do not exceed, by the per cent (``"99"``
            and ``"99.9"``): marked, and what the line goes on through where the histogram ends.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    edges, shares, above = _bins(histogram)
    larger = above + np.concatenate([np.cumsum(shares[::-1])[::-1], [0.0]])
    known = {q: mean_of(value) for q in _MARKED if (value := (quantiles or {}).get(q)) is not None}
    x = np.concatenate([edges, list(known.values())])
    y = np.concatenate([larger, [1 - float(q) / 100 for q in known]])
    order = np.argsort(x, kind="stable")
    marks = [place for place, row in enumerate(order) if row >= len(edges)]
    ax.plot(x[order], y[order], marker="o", ms=4, markevery=marks, **line_of(method))
    ax.set(title="Upper tail", xscale="log", yscale="log")
    ends = [np.asarray(line.get_data(), float)[:, -1] for line in ax.lines]
    ax.set_xlim(_LEAST_NATS, max(float(end[0]) for end in ends) * 1.1)
    ax.set_ylim(max(0.5 * min(float(end[1]) for end in ends), 3e-5), 1.3)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("negative log-likelihood of a pixel (nats)", color=TEXT)
    ax.set_ylabel("share of pixels above", color=TEXT)
    tidy(ax)
    return ax


def draw_calibration(methods: Mapping[str, Mapping[str, Any]]) -> Figure:
    """What intervals promised and what they held: the models' own, and normal ones as the paper's.

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
        for name, scores in shown.items():
            plot_calibration(scores["calibration"], name, curve, ax=ax)
        handles = [
            Line2D(
                [], [], **line_of(name), label=f"{label_of(name)} {mean_of(m['c_auc'][curve]):.3f}"
            )
            for name, m in shown.items()
        ]
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
    """Share of targets inside intervals (or below quantiles) against the share that was promised.

    Args:
        calibration: As in the results: ``expected`` and the curves.
        method: Its name in the results.
        curve: Which of the curves.
        ax: Where to draw; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    title, promised = _CURVES[curve]
    if not ax.lines:
        ax.plot([0, 1], [0, 1], **_DIAGONAL)
    ax.plot(calibration["expected"], values_of(calibration[curve]), **line_of(method))
    ticks = (0, 0.25, 0.5, 0.75, 1)
    ax.set(title=title, xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=ticks, yticks=ticks)
    ax.set_xticklabels([f"{tick:g}" for tick in ticks])
    ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    ax.set_xlabel(promised, color=TEXT)
    ax.set_ylabel("share of pixels", color=TEXT)
    tidy(ax)
    return ax


def draw_inputs(sets: Mapping[str, NDArray[np.uint8]]) -> Figure:
    """Images as a model is shown them, a row for each set.

    Args:
        sets: Prepared images of one shape, ``(N, H, W, 3)`` in bytes, by the name of their set.
    """
    shapes = {images.shape[1:] for images in sets.values()}
    if len(shapes) != 1 or any(images.ndim != 4 or not len(images) for images in sets.values()):
        raise ValueError("`sets` must hold images (N, H, W, 3) of one shape, prepared for a model.")
    ((height, width, _),) = shapes
    n_columns = max(len(images) for images in sets.values())
    wide = 1.5 if width / height < 2 else 2.4
    left, gap = 0.25 + 0.085 * max(map(len, sets)), 0.04
    size = (
        left + n_columns * (wide + gap),
        len(sets) * (wide * height / width + gap) + gap,
    )
    figure = Figure(figsize=size)
    for row, (name, images) in enumerate(sets.items()):
        bottom = size[1] - (row + 1) * (wide * height / width + gap)
        for column, image in enumerate(images):
            x = (left + column * (wide + gap)) / size[0]
            share = (wide / size[0], wide * height / width / size[1])
            ax = figure.add_axes((x, bottom / size[1], *share))
            ax.imshow(image, aspect="auto")
            ax.set_axis_off()
        middle = (bottom + 0.5 * wide * height / width) / size[1]
        at = (left - 0.1) / size[0]
        figure.text(at, middle, name, ha="right", va="center", color=TEXT, fontsize=10)
    return figure


def _lowest(histogram: Mapping[str, Any]) -> float:
    """The whole number of nats below nearly all pixels."""
    edges, shares, _ = _bins(histogram)
    return float(np.floor(edges[np.argmax(np.cumsum(shares) > _UNSEEN)]))


def _bins(histogram: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Edges and shares of the bins, and the share above them."""
    shares = np.asarray(values_of(histogram["shares"]), float)
    edges = np.linspace(histogram["from"], histogram["to"], len(shares) + 1)
    return edges, shares, mean_of(histogram["above"])
