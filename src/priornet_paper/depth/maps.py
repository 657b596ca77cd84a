"""Maps of models that a finished experiment left behind, and the figures that show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from priornet.cli import InputError
from priornet.depth import DepthMaps, draw_maps
from priornet.evaluation import read_results
from priornet.nn import read_tensors
from priornet.report import GREY, TEXT, tidy
from priornet_paper.depth.config import Config
from priornet_paper.depth.data import Sets, find_sources
from priornet_paper.depth.figures import add_key, colour_of, mark_powers
from priornet_paper.depth.protocol import PROTOCOLS, nearest

_MODELS = ("ENSM", "EnD2")
_NEEDED = ("dataset", "config", "foreign", "digests")


class NoMaps(InputError):
    """The maps of a finished experiment are not there, though its results are."""


@dataclass(frozen=True)
class MapsOfSet:
    """Maps of the models for the first images of one set, and these images."""

    models: dict[str, DepthMaps]
    photographs: NDArray[np.uint8]
    """``(N, H, W, 3)``."""
    target: NDArray[Any] | None = None
    """Measured depth at the maps' resolution, of the models' own set only."""


def read_maps(
    path: Path, data: Path, ood: Mapping[str, Path] | None = None
) -> dict[str, MapsOfSet]:
    """Read the maps of all sets that the models were shown, their own set first.

    Args:
        path: A results file of the depth experiment, with ``.parts`` beside it.
        data: The folder with the sets.
        ood: Sets by name that lie outside this folder.

    Raises:
        NoMaps: Maps are missing.
        InputError: They are damaged, or the images are not those that were scored.
    """
    content = read_results(path)
    missing = [name for name in _NEEDED if name not in content]
    if missing:
        raise InputError(f"{path}: not a results file: it has no `{missing[0]}`; run it again.")
    own, models = content["dataset"], _models(path, content)
    n_images = len(next(iter(models[own].values())))
    sets = _sets(path, content, data, dict(ood or {}), n_images)
    pictures, depth = sets.test
    size = next(iter(models[own].values())).prediction.shape[-2:]
    found = {own: MapsOfSet(models[own], _seen(pictures), nearest(depth, size).numpy())}
    for name in models:
        if name != own:
            found[name] = MapsOfSet(models[name], _seen(sets.ood(name)))
    return found


def _models(path: Path, content: dict[str, Any]) -> dict[str, dict[str, DepthMaps]]:
    """Read the maps by set and model."""
    found: dict[str, dict[str, DepthMaps]] = {}
    for model in _MODELS:
        file = f"{model}.{content['config']['seeds'][0]}.maps.safetensors"
        part = path.parent / ".parts" / path.stem / file
        if not part.exists():
            raise NoMaps(
                f"{part}: it is not there; `reproduce depth --data DATA --dataset "
                f"{content['dataset']} --preset {content.get('preset', 'fast')} --methods "
                "ensemble,endd --out OTHER` trains them anew in a folder of its own, for "
                "`depth-maps --results OTHER`."
            )
        tensors = read_tensors(part).tensors
        for name in dict.fromkeys(key.partition("/")[0] for key in sorted(tensors)):
            maps = (tensors[f"{name}/{k}"] for k in ("prediction", "total_variance", "epkl"))
            found.setdefault(name, {})[model] = DepthMaps(*(m.float().numpy() for m in maps))
    return found


def _sets(
    path: Path, content: dict[str, Any], data: Path, ood: dict[str, Path], n_images: int
) -> Sets:
    """Check that all images are those of the results, and return the first ones."""
    kept = {n: content["config"][n] for n in ("dataset", "height", "width", "n_test", "holdout")}
    config, sources = Config(**kept), find_sources(data, content["dataset"], ood)
    for name in content["foreign"]:
        if name not in sources.ood:
            raise InputError(
                f"{data}: no images of {name} there; say where they are (--foreign {name}=PATH)."
            )
    whole = Sets(config, sources)
    for name in ("test", *content["foreign"]):
        if whole.set_digest(name) != content["digests"][name]:
            raise InputError(f"{data}: other {name} images than those that {path} was made with.")
    return Sets(replace(config, n_test=n_images), sources)


def _seen(pictures: Any) -> NDArray[np.uint8]:
    """Convert images to bytes ``(N, H, W, 3)``, as Matplotlib draws them."""
    return pictures.permute(0, 2, 3, 1).contiguous().numpy()


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

    A band shows the quartiles.
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
