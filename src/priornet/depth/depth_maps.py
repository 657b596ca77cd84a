"""Draw maps of depth models side by side: prediction, error, total variance, knowledge.

Maps of one quantity share one colour scale over all images and models of a figure. It has the unit
of the quantity, and spans all values but the outermost hundredth. Its lightness grows evenly, for
readers with a colour vision deficiency; grey means that no depth was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import NDArray

from priornet.methods import COLOURS, LABELS
from priornet.report.figures import GREY, TEXT

FloatArray = NDArray[np.floating[Any]]

_MISSING = "#E4E4E4"  # no depth was measured
_WIDE = 2.0  # from this aspect on, models stand below each other, not side by side
# In inches: between maps of one quantity, between quantities, between rows of images.
_SEAM, _GAP, _BREAK = 0.04, 0.2, 0.12
_LEFT, _RIGHT, _BOTTOM, _BAR = 0.3, 0.15, 0.44, 0.09


@dataclass(frozen=True)
class DepthMaps:
    """One model's maps of N images, each ``(N, h, w)``.

    Attributes:
        prediction: Predicted depth in metres.
        total_variance: Total uncertainty, in square metres.
        epkl: Knowledge uncertainty, in nats.
    """

    prediction: FloatArray
    total_variance: FloatArray
    epkl: FloatArray

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.prediction)

    def part(self, *index: slice) -> DepthMaps:
        """Select images, or a part of each, by slices of images, rows and columns."""
        return DepthMaps(self.prediction[index], self.total_variance[index], self.epkl[index])

    @classmethod
    def joined(cls, parts: Sequence[DepthMaps]) -> DepthMaps:
        """Concatenate the maps of several sets of images."""
        whole = [[vars(part)[name] for part in parts] for name in vars(parts[0])]
        return cls(*(np.concatenate(values) for values in whole))


def draw_maps(
    models: Mapping[str, DepthMaps],
    targets: FloatArray | None = None,
    photographs: NDArray[np.uint8] | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw prediction, error, total variance and EPKL of several models, for N images.

    Models stand side by side, or below each other if images are wide.

    Args:
        models: Maps by the models' names in results.
        targets: Measured depth in metres, ``(N, h, w)``, 0 for none; None for no maps of errors.
        photographs: The images, ``(N, H, W, 3)`` in bytes; None to leave them out, as in published
            figures, because photographs have owners.
        names: Label of each image; by default its number, from 1.
    """
    shape = _checked(models, targets, photographs, names)
    measured = None if targets is None else np.where(targets > 0, targets, np.nan)
    groups = _quantities(models, measured)
    lead: list[tuple[str, Any, dict[str, Any]]] = []
    if photographs is not None:
        lead.append(("input", photographs, {}))
    if measured is not None:
        lead.append(("measured", measured, groups[0].look))
    longest = 1 if names is None else max(map(len, names))
    left = _LEFT + 0.075 * (longest - 1)
    page = _Page(shape[0], len(models), len(groups), len(lead), shape[2] / shape[1], left)
    for i in range(shape[0]):
        page.label(i, str(i + 1) if names is None else names[i])
        for k, (title, maps, look) in enumerate(lead):
            page.show_lead(i, k, maps[i], look, title)
        for g, group in enumerate(groups):
            page.show_quantity(i, g, group)
    for g, group in enumerate(groups):
        page.heading(g, group.title)
        page.colour_bar(g, group)
    return page.figure


@dataclass(frozen=True)
class _Quantity:
    """Maps of one quantity by every model, on one scale."""

    title: str
    unit: str
    maps: Mapping[str, FloatArray]
    norm: Normalize
    cmap: Colormap

    @property
    def look(self) -> dict[str, Any]:
        """Arguments of ``imshow``."""
        return {"norm": self.norm, "cmap": self.cmap}


def _quantities(models: Mapping[str, DepthMaps], measured: FloatArray | None) -> list[_Quantity]:
    depth = {name: m.prediction for name, m in models.items()}
    known = [] if measured is None else [measured]
    nearest, farthest = _percentiles([*depth.values(), *known], 1, 99)
    near_to_far = Normalize(nearest, farthest)
    groups = [_Quantity("predicted depth", "m", depth, near_to_far, _colours("viridis"))]
    magma = _colours("magma")
    if measured is not None:
        error = {name: np.abs(p - measured) for name, p in depth.items()}
        (largest,) = _percentiles(error.values(), 99)
        groups.append(_Quantity("absolute error", "m", error, Normalize(0, largest), magma))
    variance = {name: m.total_variance for name, m in models.items()}
    epkl = {name: m.epkl for name, m in models.items()}
    total, knowledge = _logarithmic(variance.values()), _logarithmic(epkl.values())
    return [
        *groups,
        _Quantity("total variance V[y]", "m²", variance, total, magma),
        _Quantity("knowledge, EPKL", "nats", epkl, knowledge, magma),
    ]


def _logarithmic(maps: Any) -> Normalize:
    low, high = _percentiles([np.where(m > 0, m, np.nan) for m in maps], 1, 99)
    return LogNorm(low, max(high, 1.1 * low))


def _percentiles(maps: Any, *shares: float) -> list[float]:
    values = np.concatenate([np.ravel(m) for m in maps])
    values = values[np.isfinite(values)]
    return np.percentile(values, shares).tolist() if len(values) else [1.0] * len(shares)


def _colours(name: str) -> Colormap:
    return colormaps[name].with_extremes(bad=_MISSING)


class _Page:
    """The figure, with the place of each map in inches from its upper left corner."""

    def __init__(
        self, n: int, n_models: int, n_groups: int, n_lead: int, aspect: float, left: float
    ) -> None:
        self.is_stacked = aspect >= _WIDE
        self._left = left  # room for the names of images
        # The heading of a quantity is wider than a map of one model beside others.
        self._wide = 2.2 if self.is_stacked or n_models == 1 else 1.15
        self._high = self._wide / aspect
        self._top = 0.3 if self.is_stacked else 0.48
        self._n_lead = n_lead
        self._down = max(n_models, n_lead) if self.is_stacked else 1
        columns, gap = n_lead * (self._wide + _SEAM), _GAP if n_lead else 0.0
        if self.is_stacked:  # with the names of models on the left of their first map
            columns, gap = min(n_lead, 1) * (self._wide + _SEAM + 0.16), _GAP + 0.1
        self._start = left + columns + gap
        self._group = (1 if self.is_stacked else n_models) * (self._wide + _SEAM) - _SEAM
        width = self._start + n_groups * self._group + (n_groups - 1) * _GAP + _RIGHT
        between = _BREAK if self.is_stacked else 0
        self._image = self._down * (self._high + _SEAM) + between
        self._maps_end = self._top + n * self._image - _SEAM - between
        self._size = (width, self._maps_end + _BAR + _BOTTOM)
        self.figure = Figure(figsize=self._size)

    def _axes(self, x: float, y: float, width: float, height: float) -> Axes:
        w, h = self._size
        return self.figure.add_axes((x / w, 1 - (y + height) / h, width / w, height / h))

    def show_lead(self, i: int, k: int, value: Any, look: dict[str, Any], name: str) -> None:
        """Draw the photograph or the measured depth of an image, on the left."""
        if self.is_stacked:  # in the middle beside the models' maps
            x, place = self._left + 0.16, k + 0.5 * (self._down - self._n_lead)
        else:
            x, place = self._left, k
        self._show(x, i, place, value, look, name, TEXT)

    def show_quantity(self, i: int, g: int, group: _Quantity) -> None:
        """Draw the maps of a quantity by all models for an image."""
        for m, (name, maps) in enumerate(group.maps.items()):
            label, colour = LABELS.get(name, name), COLOURS.get(name, TEXT)
            shown = label if g == 0 or not self.is_stacked else ""
            self._show(self._left_of(g), i, m, maps[i], group.look, shown, colour)

    def _left_of(self, g: int) -> float:
        return self._start + g * (self._group + _GAP)

    def _show(
        self,
        x: float,
        i: int,
        place: float,
        value: Any,
        look: dict[str, Any],
        name: str,
        colour: str,
    ) -> None:
        """Draw a map at a place of a group from x on; its name above the first image, or beside."""
        y = self._top + i * self._image
        if self.is_stacked:
            y += place * (self._high + _SEAM)
        else:
            x += place * (self._wide + _SEAM)
        ax = self._axes(x, y, self._wide, self._high)
        ax.imshow(value, aspect="auto", interpolation="nearest", **look)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if self.is_stacked:
            ax.set_ylabel(name, color=colour, fontsize=8, labelpad=3)
        elif i == 0:
            ax.set_title(name, color=colour, fontsize=9, pad=3)

    def label(self, i: int, text: str) -> None:
        """Write the name of an image on the left of its maps."""
        y = self._top + i * self._image + 0.5 * (self._down * (self._high + _SEAM) - _SEAM)
        self._text(self._left - 0.08, y, text, ha="right", va="center", fontsize=9)

    def heading(self, g: int, text: str) -> None:
        """Write the name of a quantity above its maps."""
        y = self._top - (0.07 if self.is_stacked else 0.24)
        x = self._left_of(g) + 0.5 * self._group
        self._text(x, y, text, ha="center", va="bottom", fontsize=10, fontweight="bold")

    def _text(self, x: float, y: float, text: str, **look: Any) -> None:
        self.figure.text(x / self._size[0], 1 - y / self._size[1], text, color=TEXT, **look)

    def colour_bar(self, g: int, group: _Quantity) -> None:
        """Draw the colour scale of a quantity below its maps."""
        width = min(self._group, 2.2)
        x = self._left_of(g) + 0.5 * (self._group - width)
        ax = self._axes(x, self._maps_end + 0.1, width, _BAR)
        ramp = np.linspace(0, 1, 256)[None]
        ax.imshow(ramp, aspect="auto", cmap=group.cmap, extent=(0, 1, 0, 1))
        is_log = isinstance(group.norm, LogNorm)
        locator = LogLocator(subs=(1.0, 2.0, 5.0)) if is_log else MaxNLocator(4)
        low, high = float(group.norm.vmin or 0), float(group.norm.vmax or 1)
        ticks = [t for t in locator.tick_values(low, high) if low <= t <= high]
        while len(ticks) > 5:  # keep every second of 1, 2, 5, 10, ...
            ticks = ticks[::2]
        ax.set_xticks([float(group.norm(t)) for t in ticks], [f"{t:g}" for t in ticks])
        ax.set_yticks([])
        ax.set_xlabel(group.unit, color=TEXT, fontsize=8, labelpad=1)
        ax.tick_params(labelsize=8, color=GREY, labelcolor=TEXT, length=2.5, pad=2)
        ax.spines[:].set_visible(False)


def _checked(
    models: Mapping[str, DepthMaps],
    targets: FloatArray | None,
    photographs: NDArray[np.uint8] | None,
    names: Sequence[str] | None,
) -> tuple[int, int, int]:
    """Return number, height and width of the maps, after checking that all have the same."""
    if not models:
        raise ValueError("`models` must hold the maps of at least one model.")
    shape = next(iter(models.values())).prediction.shape
    maps = {f"{name}'s {k}": v for name, m in models.items() for k, v in vars(m).items()}
    if targets is not None:
        maps["`targets`"] = targets
    for name, value in maps.items():
        if value.shape != shape or len(shape) != 3:
            raise ValueError(f"{name} must have shape (N, h, w) like all; got {value.shape}.")
    for name, value in (("photographs", photographs), ("names", names)):
        if value is not None and len(value) != shape[0]:
            raise ValueError(f"`{name}` must be one per image, {shape[0]}; got {len(value)}.")
    return shape
