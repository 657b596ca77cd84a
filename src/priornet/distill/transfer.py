"""The transfer set: inputs at which a student asks its teacher.

Teacher labels are free, so the inputs need not be the training inputs: noise around them, on many
scales, covers the space between and beyond, where knowledge uncertainty has to be learnt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

__all__ = ["TransferSet"]


@dataclass(frozen=True)
class TransferSet:
    """Training inputs with noise: a share of the rows close by, the others on every scale.

    Noise is in standard deviations of the inputs. Columns of zeros and ones (labels, indicators of
    missing values) get no noise: they are exchanged with those of another row instead.
    """

    near: float = 0.02
    """Standard deviation of the noise on rows that stay close."""
    far: tuple[float, float] = (0.05, 3.0)
    """Range of the noise on the other rows: each draws its own, uniformly in the logarithm."""
    far_share: float = 0.3
    """Share of those rows."""
    exchange: float = 0.2
    """Chance that a far row takes its labels from another row."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        low, high = self.far
        if not (self.near >= 0 and 0 < low <= high < math.inf):
            raise ValueError(
                "`near` must not be negative and `far` must be a positive range; got "
                f"{self.near:g} and {self.far}."
            )
        for name in ("far_share", "exchange"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must lie in [0, 1]; got {getattr(self, name):g}.")

    def sample(
        self, inputs: Tensor, n: int, generator: Generator, continuous: Sequence[bool] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw ``n`` inputs around training inputs.

        Args:
            inputs: Standardised training inputs, shape ``(N, D)``.
            n: How many. Every row serves as a centre before any serves again.
            generator: Source of randomness, on the CPU.
            continuous: Which columns hold numbers; by default all.

        Returns:
            The inputs ``(n, D)``, and the rows they were drawn around ``(n,)``.
        """
        n_rows, n_columns = inputs.shape
        rounds = [torch.randperm(n_rows, generator=generator) for _ in range(-(-n // n_rows))]
        centre = torch.cat(rounds)[:n]
        low, high = (math.log(edge) for edge in self.far)
        far = torch.rand(n, generator=generator) < self.far_share
        wide = torch.exp(low + (high - low) * torch.rand(n, generator=generator))
        scale = torch.where(far, wide, torch.full_like(wide, self.near))
        noise = torch.randn((n, n_columns), generator=generator) * scale.unsqueeze(-1)
        x = inputs[centre]
        if continuous is None or all(continuous):
            return x + noise.to(x), centre
        number = torch.tensor(continuous)
        swap = far & (torch.rand(n, generator=generator) < self.exchange)
        other = torch.where(swap, centre[torch.randperm(n, generator=generator)], centre)
        return torch.where(number.to(x.device), x + noise.to(x), inputs[other]), centre
