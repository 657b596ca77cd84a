"""A convolutional network that forecasts the next value of a series, with what it does not know.

It learns sine waves of many pitches, and to know nothing of windows that look otherwise (a prior
network). Halfway through the test series the level begins to drift away.

    python examples/time_series.py [--out forecast.png]
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import torch
from torch import Tensor, nn

mpl.use("Agg")
import matplotlib.pyplot as plt

from priornet import losses
from priornet.nn import NormalWishartHead
from priornet.priors import semi_informative_prior
from priornet.uncertainty import Uncertainty, uncertainty

WINDOW = 24


class Forecaster(nn.Module):
    """Convolutions over the last values and a head for the next one."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 5, stride=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 3, 32),
            nn.ReLU(),
        )
        self.head = head

    def forward(self, windows: Tensor):
        """Windows ``(batch, WINDOW)`` to a belief about the value that follows."""
        return self.head(self.body(windows.unsqueeze(1)))


def waves(n: int) -> Tensor:
    """Noisy sines ``(n, WINDOW + 1)``, each of its own pitch and phase."""
    pitch = torch.empty(n, 1).uniform_(0.2, 0.5)
    time = torch.arange(WINDOW + 1) + torch.empty(n, 1).uniform_(0, 50)
    return torch.sin(pitch * time) + 0.1 * torch.randn(n, WINDOW + 1)


def drifting(length: int = 240) -> Tensor:
    """A sine whose level begins to drift in the middle."""
    time = torch.arange(length)
    drift = (time - length // 2).clamp(min=0) / 30
    return torch.sin(0.3 * time) + drift + 0.1 * torch.randn(length)


def out_of_domain(windows: Tensor) -> Tensor:
    """Draw windows unlike those of training: other levels, other sizes, other roughness."""
    n = len(windows)
    level, size = 3 * torch.randn(n, 1), torch.empty(n, 1).uniform_(0.2, 3)
    return windows * size + level + torch.randn_like(windows) * torch.rand(n, 1)


def train(steps: int = 800) -> Forecaster:
    """A prior network (NWPN): reverse KL on waves, back to the prior on out-of-domain windows."""
    model = Forecaster(NormalWishartHead(32))
    prior = semi_informative_prior(waves(1000)[:, -1:], belief=0.1, excess=1.0, match="variance")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        series = waves(64)
        windows, following = series[:, :-1], series[:, -1:]
        own, other = model(windows), model(out_of_domain(windows))
        loss, _ = losses.multi_task(
            losses.reverse_kl(own, following, prior.expand(own.batch_shape), beta=30.0),
            losses.reverse_kl(other, None, prior.expand(other.batch_shape), beta=0.0),
            gamma=0.5,
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def main() -> None:
    """Train, forecast, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("forecast.png"))
    out = parser.parse_args().out
    torch.manual_seed(0)
    model = train()
    series = drifting()
    windows = series.unfold(0, WINDOW, 1)[:-1]
    following = series[WINDOW:]
    with torch.no_grad():
        belief = model(windows)
    found = uncertainty(belief)
    known = torch.arange(len(following)) < len(series) // 2 - WINDOW
    for name, rows in (("as learnt", known), ("drifted away", ~known)):
        parts = (found.data_variance, found.knowledge_variance)
        data, knowledge = (part[rows].mean().sqrt() for part in parts)
        error = (belief.loc[rows, 0] - following[rows]).square().mean().sqrt()
        print(f"{name:<13} rmse {error:.2f}, data sd {data:.2f}, knowledge sd {knowledge:.2f}")
    draw(following, belief.loc[:, 0], found, out)
    print(f"figure: {out}")


def draw(following: Tensor, mean: Tensor, found: Uncertainty, out: Path) -> None:
    """Series and forecast above, the two parts of the uncertainty below."""
    figure, (top, bottom) = plt.subplots(2, sharex=True, figsize=(9, 5), layout="constrained")
    spread = 2 * found.total_variance[:, 0].sqrt()
    time = torch.arange(len(mean))
    top.plot(time, following, ".", color="0.3", markersize=3, label="what came")
    top.plot(time, mean, color="C0", label="forecast")
    top.fill_between(
        time, mean - spread, mean + spread, color="C0", alpha=0.2, label="two deviations"
    )
    bottom.plot(time, found.data_variance[:, 0].sqrt(), color="C1", label="data")
    bottom.plot(time, found.knowledge_variance[:, 0].sqrt(), color="C3", label="knowledge")
    bottom.set_ylabel("standard deviation")
    bottom.set_xlabel("time")
    for axes in (top, bottom):
        axes.axvline((len(time) + WINDOW) // 2 - WINDOW, color="0.6", linestyle=":")
        axes.legend(loc="upper left", fontsize=8)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    main()
