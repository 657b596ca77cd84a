r"""What a Normal-Wishart can say: the paper's picture of the behaviours that it wants.

Three beliefs about one number: sure of a narrow Gaussian (low uncertainty), sure of a wide one
(data uncertainty), and not sure which Gaussian it is (knowledge uncertainty). Gaussians drawn from
the first two agree with each other; those from the third differ in place and width.

Paper: the figure "Desired behaviors of an ensemble of regression models", arXiv:2006.11590v2. It
has no numbers: those here are ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch import Tensor

from priornet.distributions import NormalWishart
from priornet.evaluation import provenance
from priornet.report import TEXT, tidy
from priornet.uncertainty import uncertainty


@dataclass(frozen=True)
class Belief:
    """A Normal-Wishart of mean 0, by what it expects."""

    std: float
    """Root of the inverse of the expected precision."""
    evidence: float
    """Its belief, and its degrees of freedom in excess."""


BELIEFS = {
    "low": Belief(std=0.5, evidence=40.0),
    "data": Belief(std=1.6, evidence=40.0),
    "knowledge": Belief(std=0.7, evidence=1.2),
}


@dataclass(frozen=True)
class Config:
    """What is drawn."""

    seed: int = 0
    """Seed of the sampled Gaussians."""
    n_samples: int = 16
    """Gaussians drawn from each belief."""
    edge: float = 5.0
    """Targets and means are shown from ``-edge`` to ``edge``."""
    precisions: tuple[float, float] = (0.05, 20.0)
    """Range of precisions that is shown."""
    n_grid: int = 81
    """Points along each axis."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        low, high = self.precisions
        if not (self.edge > 0 and 0 < low < high):
            raise ValueError(
                "`edge` must be positive and `precisions` a positive range; got "
                f"{self.edge:g} and {self.precisions}."
            )
        for name in ("n_samples", "n_grid"):
            if getattr(self, name) < 2:
                raise ValueError(f"`{name}` must be at least 2; got {getattr(self, name)}.")


def run(config: Config | None = None) -> dict[str, Any]:
    """Draw Gaussians from each belief, and its density over mean and precision.

    Returns:
        The results, ready for JSON. Densities are over the mean and the logarithm of the precision,
        which is how they are drawn: areas then stand for probabilities.
    """
    config = config or Config()
    started = time.perf_counter()
    generator = torch.Generator().manual_seed(config.seed)
    panels = {name: _panel(belief, config, generator) for name, belief in BELIEFS.items()}
    return {
        "figure": "behaviours",
        "config": asdict(config),
        "panels": panels,
        "seconds": round(time.perf_counter() - started, 2),
        "device": "cpu",
        **provenance(),
    }


def _panel(belief: Belief, config: Config, generator: torch.Generator) -> dict[str, Any]:
    tril = torch.full((1, 1), 1 / belief.std, dtype=torch.float64)
    loc = torch.zeros(1, dtype=torch.float64)
    nw = NormalWishart.from_excess(loc, tril, belief.evidence, belief.evidence)
    drawn = nw.sample((config.n_samples,), generator=generator)
    record = uncertainty(nw)
    y = torch.linspace(-config.edge, config.edge, 2 * config.n_grid - 1, dtype=torch.float64)
    mean, log_precision = _grid(nw, config)
    # (precisions, means): the density over the logarithm has the precision as its Jacobian.
    at = torch.meshgrid(log_precision, mean, indexing="ij")
    log_density = nw.log_prob((at[1][..., None], at[0].exp()[..., None, None])) + at[0]
    return {
        "parameters": asdict(belief),
        "means": _rounded(drawn.mean),
        "stds": _rounded(drawn.precision.rsqrt()),
        "target": _rounded(y),
        "predictive": _rounded(nw.predictive().univariate().log_prob(y).exp()),
        "mean": _rounded(mean),
        "log_precision": _rounded(log_precision),
        "density": [_rounded(row) for row in log_density.exp()],
        "data_std": record.data_variance.sqrt().item(),
        "knowledge_std": record.knowledge_variance.sqrt().item(),
    }


def _grid(nw: NormalWishart, config: Config) -> tuple[Tensor, Tensor]:
    """Means and logarithms of precisions where the belief lies, as far as they are shown."""
    low, high = (math.log(edge) for edge in config.precisions)
    centre = 2 * nw.precision_tril.log().item()
    reach = 6 * math.sqrt(2 / nw.df.item())  # standard deviations of a log-gamma
    half = min(config.edge, 6 * nw.knowledge_covariance().sqrt().item())
    ends = (max(low, centre - reach), min(high, centre + reach))
    mean = torch.linspace(-half, half, config.n_grid, dtype=torch.float64)
    return mean, torch.linspace(*ends, config.n_grid, dtype=torch.float64)


def _rounded(values: Tensor) -> list[float]:
    """Numbers for JSON, to the digits that a plot can show."""
    return [float(f"{value:.4g}") for value in values.flatten().tolist()]


# -- the picture -----------------------------------------------------------------------------------

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


def draw(results: Mapping[str, Any]) -> Figure:
    """Above, Gaussians drawn from each belief; below, the belief over mean and precision.

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
    """Gaussians drawn from one belief, and dashed the predictive that they average to.

    Args:
        results: What :func:`priornet_paper.synthetic.behaviours.run` returns.
        name: ``"low"``, ``"data"`` or ``"knowledge"``.
        ax: Where to draw; a new figure when None.
    """
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
    """One belief over mean and precision: regions that hold 10, 50, 90 and 99 % of it.

    Args:
        results: What :func:`priornet_paper.synthetic.behaviours.run` returns.
        name: ``"low"``, ``"data"`` or ``"knowledge"``.
        ax: Where to draw; a new figure when None.
    """
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
    """The density above which each share of the probability lies, lowest first."""
    ordered = np.sort(density.ravel())[::-1]
    mass = np.cumsum(ordered) * cell
    return [float(ordered[min(np.searchsorted(mass, share), len(mass) - 1)]) for share in _MASSES]
