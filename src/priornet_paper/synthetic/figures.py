"""The paper's two figures on synthetic data, drawn from results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from priornet.report import TEXT, curves, tidy

# -- the synthetic curve --------------------------------------------------------------------------

_DRAWN = {"NWPN-precision": ("NWPN", "NWPN, paper's prior")}  # a method's colour, and a label


def draw_panels(results: dict[str, Any]) -> Figure:
    """Draw four panels from results alone: the data, and each method's three uncertainties.

    Args:
        results: What :func:`priornet_paper.synthetic.run.run` returns.
    """
    known = {name: pair for name, pair in _DRAWN.items() if name in results["curves"]}
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flatten()
    curves.plot_data(results, ax=panels[0])
    panels[0].set_ylabel("target $y$", color=TEXT)
    variants = {name: method for name, (method, _) in known.items()}
    for ax, part in zip(panels[1:], curves.PARTS, strict=True):
        curves.plot_uncertainty(results, part, variants=variants, ax=ax)
        ax.set_ylabel("standard deviation", color=TEXT)
    for ax, letter in zip(panels, "abcd", strict=True):
        ax.set_title(f"({letter}) {ax.get_title()}", color=TEXT, fontsize=12, fontweight="bold")
    for ax in panels[2:]:
        ax.set_xlabel("input $x$", color=TEXT)
    curves.add_key(figure, results, variants={label: method for method, label in known.values()})
    return figure


# -- beliefs of a Normal-Wishart -------------------------------------------------------------------

_TITLES = {
    "low": "Low uncertainty",
    "data": "Data uncertainty",
    "knowledge": "Knowledge uncertainty",
}
_BLUE = "#0072B2"
_SHADES = ("#DCEBF5", "#9CC7E2", "#4D9BCB", "#0072B2")
_MASSES = (0.99, 0.9, 0.5, 0.1)  # of the regions drawn, widest first
_AVERAGE: dict[str, Any] = {"color": "black", "lw": 1.6, "ls": (0, (4, 2))}
_KEY = [
    Line2D([], [], color=_BLUE, lw=1.2, label="Gaussians drawn from the belief"),
    Line2D([], [], **_AVERAGE, label="their average"),
    Line2D([], [], color="black", marker=".", ms=4, ls="", label="the same Gaussians"),
    Patch(color=_SHADES[2], lw=0, label="10, 50, 90, 99 % of the belief"),
]


def draw_beliefs(results: Mapping[str, Any]) -> Figure:
    """Draw Gaussians from each belief, and below them the belief over mean and precision.

    Args:
        results: What :func:`priornet_paper.synthetic.behaviours.run` returns.
    """
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for (above, below), name in zip(panels.T, results["panels"], strict=True):
        plot_gaussians(results, name, ax=above)
        plot_prior(results, name, ax=below)
        below.set_xlabel(r"mean $\mu$", color=TEXT)
        above.set_xlabel("target $y$", color=TEXT)
        above.tick_params(labelbottom=True)
    panels[0, 0].set_ylabel("density of $y$", color=TEXT)
    panels[1, 0].set_ylabel(r"precision $\Lambda$", color=TEXT)
    figure.legend(
        handles=_KEY,
        loc="outside lower center",
        ncols=4,
        fontsize=9,
        frameon=False,
        labelcolor=TEXT,
    )
    return figure


def plot_gaussians(results: Mapping[str, Any], name: str, *, ax: Axes | None = None) -> Axes:
    """Plot Gaussians drawn from one belief, and dashed the predictive that they average to."""
    ax = ax or Figure().add_subplot()
    panel = results["panels"][name]
    y = np.array(panel["target"])
    for mean, std in zip(panel["means"], panel["stds"], strict=True):
        fine = np.unique(np.concatenate([y, np.linspace(mean - 4 * std, mean + 4 * std, 81)]))
        density = np.exp(-0.5 * ((fine - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))
        ax.plot(fine, density, color=_BLUE, lw=0.9, alpha=0.55)
    ax.plot(y, panel["predictive"], **_AVERAGE)
    ax.set(title=_TITLES[name], xlim=(y[0], y[-1]), ylim=(0, 1.25))
    spreads = f"data sd {panel['data_std']:.2g}\nknowledge sd {panel['knowledge_std']:.2g}"
    ax.text(0.03, 0.97, spreads, transform=ax.transAxes, va="top", fontsize=9, color=TEXT)
    tidy(ax)
    return ax


def plot_prior(results: Mapping[str, Any], name: str, *, ax: Axes | None = None) -> Axes:
    """Plot one belief over mean and precision: regions that hold 10, 50, 90 and 99 % of it."""
    ax = ax or Figure().add_subplot()
    panel = results["panels"][name]
    mean, log_precision = np.array(panel["mean"]), np.array(panel["log_precision"])
    density = np.array(panel["density"])
    cell = np.ptp(mean) * np.ptp(log_precision) / ((len(mean) - 1) * (len(log_precision) - 1))
    levels = _levels(density, cell)
    ax.contourf(mean, np.exp(log_precision), density, levels=[*levels, np.inf], colors=_SHADES)
    drawn = np.array(panel["stds"]) ** -2.0
    ax.scatter(panel["means"], drawn, s=4, color="black", lw=0, zorder=3)
    edge = results["config"]["edge"]
    ax.set(yscale="log", xlim=(-edge, edge), ylim=results["config"]["precisions"])
    tidy(ax)
    return ax


def _levels(density: np.ndarray[Any, Any], cell: float) -> list[float]:
    """Return the densities above which each share of the probability lies, lowest first."""
    ordered = np.sort(density.ravel())[::-1]
    mass = np.cumsum(ordered) * cell
    return [float(ordered[min(np.searchsorted(mass, share), len(mass) - 1)]) for share in _MASSES]
