"""A head on a network of your own: convolutions in front, a belief behind.

Small pictures of a bright disc: how large is it? The radius is measured with a noisy ruler, which
is data uncertainty; pictures of a dark disc, never seen in training, meet knowledge uncertainty.
Five networks are trained, and then distilled into one (EnD2).

    python examples/own_network.py
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from priornet import losses
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.nn import GaussianHead, NormalWishartHead
from priornet.uncertainty import uncertainty


def pictures(n: int, *, dark: bool = False) -> tuple[Tensor, Tensor]:
    """Pictures ``(n, 1, 16, 16)`` and the standardised radius ``(n, 1)``."""
    radius = torch.empty(n, 1, 1).uniform_(2, 7)
    line = torch.arange(16) - 7.5
    distance = (line[:, None] ** 2 + line**2).sqrt()
    shape = (distance < radius).float()
    shape = (1 - shape if dark else shape) + 0.1 * torch.randn(n, 16, 16)
    return shape.unsqueeze(1), (radius[:, 0] - 4.5) / 1.45


def body() -> nn.Module:
    """Yours: anything that ends in features ``(batch, n)``."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
    )


Loss = Callable[[Any, Tensor, Tensor], Tensor]


def train(model: nn.Module, loss_of: Loss, steps: int = 300) -> nn.Module:
    """Plain PyTorch; ``loss_of(prediction, x, y)`` gives a loss per picture."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        x, y = pictures(64)
        y = y + 0.2 * torch.randn_like(y)  # a noisy ruler
        loss = loss_of(model(x), x, y).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def main() -> None:
    """Train, distil, and ask about bright and dark discs."""
    torch.manual_seed(0)
    members = [
        train(
            nn.Sequential(body(), GaussianHead(64)),
            lambda gaussian, _, y: losses.gaussian_nll(gaussian, y),
        )
        for _ in range(5)
    ]

    def teacher(x: Tensor) -> GaussianEnsemble:
        with torch.no_grad():
            answers = [member(x) for member in members]
        means = torch.stack([a.loc for a in answers])
        return GaussianEnsemble(means, torch.stack([a.covariance_matrix for a in answers]))

    student = nn.Sequential(body(), NormalWishartHead(64, min_excess=1.0))

    def like_the_ensemble(nw: NormalWishart, x: Tensor, _: Tensor) -> Tensor:
        # Also at pictures that fade into noise: teachers answer for any input, and disagree there.
        faded = torch.lerp(x, torch.randn_like(x), torch.rand(len(x), 1, 1, 1))
        own, other = losses.endd(nw, teacher(x)), losses.endd(student(faded), teacher(faded))
        return own + other

    train(student, like_the_ensemble, 600)
    print("                 ensemble of five          one student")
    print("               total  data  knowledge   total  data  knowledge   (standard deviations)")
    for name, dark in (("bright discs", False), ("dark discs", True)):
        x, _ = pictures(500, dark=dark)
        shown = [f"{name:<13}"]
        for model in (teacher, student):
            with torch.no_grad():
                found = uncertainty(model(x))
            parts = (found.total_variance, found.data_variance, found.knowledge_variance)
            shown += [f"{part.mean().sqrt():6.2f}" for part in parts]
        print(" ".join(shown))


if __name__ == "__main__":
    main()
