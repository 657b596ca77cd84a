"""Charts of the depth experiment: OOD detection, gamma, correlations, variance by depth, inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from priornet.report import GREY, TEXT, tidy
from priornet_paper.depth.figures import add_key, colour_of, mark_powers
from priornet_paper.depth.protocol import PROTOCOLS

if TYPE_CHECKING:
    from priornet.depth import DepthMaps
    from priornet_paper.depth.files import MapsOfSet

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
    """Plot correlations: a row for each measure, a dot for each method, a line from seed to seed.

    Args:
        values: A number for every seed, by method and measure.
        symbols: Symbol of each measure, from the top.
        ax: Axes to draw on; a new figure when None.
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


# -- uncertainty against predicted depth ----------------------------------------------------------

_BINS = 12
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
_QUANTITIES = {"total_variance": "total variance V[y] (m²)", "epkl": "knowledge, EPKL (nats)"}


def draw_scale(sets: Mapping[str, Mapping[str, DepthMaps]]) -> Figure:
    """Draw total variance and EPKL against predicted depth: medians of pixels, by model and set.

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
    """Plot the median of positive values in bins of predicted depth with equally many pixels.

    Args:
        depth: Predicted depth in metres, of any shape.
        values: A measure of the same pixels.
        line: The look of the line, as for :meth:`matplotlib.axes.Axes.plot`.
        has_band: True draws the quartiles too.
        ax: Axes to draw on; a new figure when None.
    """
    ax = ax or Figure().add_subplot()
    x, low, middle, high = _binned(np.ravel(depth), np.ravel(values))
    ax.plot(x, middle, **line)
    if has_band:
        ax.fill_between(x, low, high, color=line["color"], alpha=0.15, lw=0)
    ax.set(xscale="log", yscale="log")
    mark_powers(ax)
    ax.grid(visible=True, which="major", color=GREY, alpha=0.25, lw=0.6)
    return ax


def _binned(depth: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Compute the median depth of each bin, then the quartiles of the values."""
    seen = np.isfinite(depth) & np.isfinite(values) & (depth > 0) & (values > 0)
    order = np.argsort(depth[seen], kind="stable")
    bins = [part for part in np.array_split(order, _BINS) if len(part)]
    depth, values = depth[seen], values[seen]
    x = np.array([np.median(depth[part]) for part in bins])
    quartiles = np.array([np.percentile(values[part], (25, 50, 75)) for part in bins])
    return x, *quartiles.reshape(-1, 3).T


def draw_inputs(sets: Mapping[str, NDArray[np.uint8]]) -> Figure:
    """Draw images as a model receives them, a row for each set.

    Args:
        sets: Prepared images of one shape, ``(N, H, W, 3)`` in bytes, by the name of their set.
    """
    shapes = {images.shape[1:] for images in sets.values()}
    if len(shapes) != 1 or any(images.ndim != 4 or not len(images) for images in sets.values()):
        raise ValueError("`sets` must hold images (N, H, W, 3) of one shape, prepared for a model.")
    ((height, width, _),) = shapes
    n_columns = max(len(images) for images in sets.values())
    wide, gap = (1.5 if width / height < 2 else 2.4), 0.04
    high = wide * height / width
    left = 0.25 + 0.085 * max(map(len, sets))
    size = (left + n_columns * (wide + gap), len(sets) * (high + gap) + gap)
    figure = Figure(figsize=size)
    for row, (name, images) in enumerate(sets.items()):
        bottom = size[1] - (row + 1) * (high + gap)
        for column, image in enumerate(images):
            x = (left + column * (wide + gap)) / size[0]
            ax = figure.add_axes((x, bottom / size[1], wide / size[0], high / size[1]))
            ax.imshow(image, aspect="auto")
            ax.set_axis_off()
        at = (left - 0.1) / size[0], (bottom + 0.5 * high) / size[1]
        figure.text(*at, name, ha="right", va="center", color=TEXT, fontsize=10)
    return figure


# -- maps of all sets -----------------------------------------------------------------------------

_N_OWN, _N_OOD = 4, 2  # images of the own set, and of each OOD set, in one figure
_TITLES = {"nyu": "NYU", "kitti": "KITTI", "lsun_bedroom": "bedroom"}


def draw_sets(sets: Mapping[str, MapsOfSet]) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Draw all figures of one set's models: those without photographs, and those with them.

    Args:
        sets: Maps and images by set, the models' own first.
    """
    from priornet.depth import DepthMaps, draw_maps

    (name, own), *others = sets.items()
    maps = {model: found.part(slice(_N_OWN)) for model, found in own.models.items()}
    target = None if own.target is None else own.target[:_N_OWN]
    public = {
        f"depth-maps-{name}": draw_maps(maps, target),
        f"depth-scale-{name}": draw_scale(_in_region(name, sets)),
    }
    inputs = {_TITLES.get(n, n): found.photographs for n, found in sets.items()}
    private = {
        f"maps-{name}": draw_maps(maps, target, own.photographs[:_N_OWN]),
        f"inputs-{name}": draw_inputs(inputs),
    }
    if others:
        few = slice(_N_OOD)
        models = {
            model: DepthMaps.joined([found.models[model].part(few) for _, found in others])
            for model in own.models
        }
        pictures = [found.photographs[few] for _, found in others]
        labels = [
            f"{_TITLES.get(n, n)} {i + 1}"
            for (n, _), some in zip(others, pictures, strict=True)
            for i in range(len(some))
        ]
        public[f"depth-foreign-{name}"] = draw_maps(models, names=labels)
        whole = np.concatenate(pictures)
        private[f"foreign-{name}"] = draw_maps(models, None, whole, labels)
    return public, private


def _in_region(name: str, sets: Mapping[str, MapsOfSet]) -> dict[str, dict[str, DepthMaps]]:
    """Cut maps to the region in which the protocol of the models' own set measures uncertainty."""
    height, width = next(iter(sets[name].models.values())).prediction.shape[-2:]
    region = PROTOCOLS[name].region.slices(height, width)
    return {
        _TITLES.get(n, n): {m: maps.part(slice(None), *region) for m, maps in found.models.items()}
        for n, found in sets.items()
    }
