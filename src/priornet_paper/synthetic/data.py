r"""The paper's synthetic task: a rising sine whose noise fades away from the origin.

.. math:: y \sim \mathcal N\left(\sin x + \tfrac{x}{10},\; \left(\tfrac{1}{|x|+1} +
0.01\right)^2\right)

Paper: section 4 and its appendix, arXiv:2006.11590v2. What the text writes as the second argument
of the normal is a standard deviation: that is what its figure shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from priornet.distributions import Gaussian, GaussianEnsemble, NormalWishart
from priornet.nn import GaussianHead, StackedMLP
from priornet.training import Rows
from priornet_paper.synthetic.config import Config

Belief = Gaussian | GaussianEnsemble | NormalWishart
Predictor = Callable[[Tensor], Belief]


def true_mean(x: Tensor) -> Tensor:
    """Compute the mean of the target at ``x``, elementwise.

    Example:
        >>> true_mean(torch.tensor([0.0, torch.pi]))
        tensor([0.0000, 0.3142])
    """
    return torch.sin(x) + x / 10


def true_std(x: Tensor) -> Tensor:
    """Compute the noise at ``x``, elementwise: standard deviation 1.01 at 0, then falling.

    Example:
        >>> true_std(torch.tensor([0.0, -9.0]))
        tensor([1.0100, 0.1100])
    """
    return 1 / (x.abs() + 1) + 0.01


def sample_inputs(n: int, low: float, high: float, generator: Generator) -> Tensor:
    """Draw inputs ``(n, 1)``, uniform on ``low <= |x| <= high`` on both sides of the origin."""
    if not 0 <= low < high:
        raise ValueError(
            f"distances must satisfy 0 <= low < high; got low = {low:g}, high = {high:g}."
        )
    signed = torch.empty(n, 1).uniform_(low - high, high - low, generator=generator)
    return signed + torch.where(signed < 0, -low, low)


def sample_targets(x: Tensor, generator: Generator) -> Tensor:
    """Draw one noisy target for each input, of the same shape."""
    noise = torch.randn(x.shape, dtype=x.dtype, generator=generator)
    return true_mean(x) + true_std(x) * noise


class Data:
    """Rows of each repetition, and the seeds of its networks.

    A repetition draws everything from its own seed, whatever other repetitions run beside it.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        # Networks see inputs of unit variance; a uniform one varies by edge^2 / 3.
        self.unit = config.train_edge / math.sqrt(3)
        self.generators = [Generator().manual_seed(2 * seed) for seed in config.seeds]
        self.x = [sample_inputs(config.n_train, 0.0, config.train_edge, g) for g in self.generators]
        self.y = [sample_targets(x, g) for x, g in zip(self.x, self.generators, strict=True)]
        self.x_out = [sample_inputs(config.n_out, *config.out_range, g) for g in self.generators]

    def network_seeds(self, n_each: int = 1) -> list[int]:
        """Draw seeds for ``n_each`` networks of every repetition, one repetition after another."""
        drawn = [torch.randint(2**62, (n_each,), generator=g) for g in self.generators]
        return torch.cat(drawn).tolist()

    def rows(self, inputs: Sequence[Tensor], targets: Sequence[Tensor]) -> Rows:
        """Join inputs and targets of all repetitions, one repetition after another."""
        x = torch.cat(list(inputs)) / self.unit
        return Rows(x, torch.cat(list(targets)), torch.ones(len(x)))

    def predictor(self, stack: StackedMLP, networks: slice) -> Predictor:
        """Make a predictor at inputs ``(N, 1)`` of some networks: an ensemble, or one belief."""
        chosen = stack.select(range(stack.n_networks)[networks])

        def predict(x: Tensor) -> Any:
            gaussians = chosen.together(x / self.unit)
            return GaussianEnsemble.from_precision_tril(gaussians.loc, gaussians.precision_tril)

        def predict_one(x: Tensor) -> Any:
            return chosen.head.distribution(chosen.raw((x / self.unit).unsqueeze(0))[0])

        return predict if isinstance(stack.head, GaussianHead) else predict_one
