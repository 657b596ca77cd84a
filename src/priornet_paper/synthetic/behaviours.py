r"""Three beliefs of a Normal-Wishart: the paper's picture of the behaviours that it wants.

Three beliefs about one number: sure of a narrow Gaussian (low uncertainty), sure of a wide one
(data uncertainty), and not sure which Gaussian it is (knowledge uncertainty). Gaussians drawn from
the first two agree with each other; those from the third differ in place and width.

Paper: the figure "Desired behaviors of an ensemble of regression models", arXiv:2006.11590v2. It
has no numbers: those here are ours.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from priornet.distributions import NormalWishart
from priornet.evaluation import provenance
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
    """Settings of the figure."""

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
        """Refuse settings that cannot be drawn."""
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
    """Make grids of means and log precisions where the belief lies, as far as they are shown."""
    low, high = (math.log(edge) for edge in config.precisions)
    centre = 2 * nw.precision_tril.log().item()
    reach = 6 * math.sqrt(2 / nw.df.item())  # standard deviations of a log-gamma
    half = min(config.edge, 6 * nw.knowledge_covariance().sqrt().item())
    ends = (max(low, centre - reach), min(high, centre + reach))
    mean = torch.linspace(-half, half, config.n_grid, dtype=torch.float64)
    return mean, torch.linspace(*ends, config.n_grid, dtype=torch.float64)


def _rounded(values: Tensor) -> list[float]:
    """List numbers for JSON, to the digits that a plot can show."""
    return [float(f"{value:.4g}") for value in values.flatten().tolist()]
