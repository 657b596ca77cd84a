"""The transfer set: inputs at which a student asks its teacher.

Teacher labels are free, so the inputs need not be the training inputs. New rows will lie where the
old ones do, often on a thin surface in the space of all columns: rows between neighbours stay
there. Noise on many scales covers what is beside and beyond, where knowledge uncertainty has to be
learnt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

__all__ = ["TransferSet"]

_MOST_DISTANCES = 200_000_000  # of a search for neighbours; more rows look among fewer others
_LEAST_OTHERS = 1000


@dataclass(frozen=True)
class TransferSet:
    """Rows between neighbours, and a share of rows with noise on every scale.

    Noise is in standard deviations of the inputs. Columns of zeros and ones (labels, indicators of
    missing values) get no noise: they are exchanged with those of another row instead.
    """

    near: float = 0.0
    """Standard deviation of noise on the rows between neighbours."""
    far: tuple[float, float] = (0.05, 3.0)
    """Range of the noise on the other rows: each draws its own, uniformly in the logarithm."""
    far_share: float = 0.3
    """Share of those rows."""
    exchange: float = 0.2
    """Chance that a far row takes its labels from another row."""
    neighbours: int = 3
    """A near row lies on the way from a training row to one of so many nearest ones; 0 to stay."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        low, high = self.far
        if not (self.near >= 0 and 0 < low <= high < math.inf):
            raise ValueError(
                "`near` must not be negative and `far` must be a positive range; got "
                f"{self.near:g} and {self.far}."
            )
        if self.neighbours < 0:
            raise ValueError(f"`neighbours` must not be negative; got {self.neighbours}.")
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
        way = torch.where(far, 0.0, torch.rand(n, generator=generator)).unsqueeze(-1)
        x = inputs[centre]
        towards = inputs[self._towards(inputs, centre, generator)]
        moved = torch.lerp(x, towards, way.to(x)) + noise.to(x)
        if continuous is None or all(continuous):
            return moved, centre
        number = torch.tensor(continuous)
        swap = far & (torch.rand(n, generator=generator) < self.exchange)
        other = torch.where(swap, centre[torch.randperm(n, generator=generator)], centre)
        return torch.where(number.to(x.device), moved, inputs[other]), centre

    def _towards(self, inputs: Tensor, centre: Tensor, generator: Generator) -> Tensor:
        """For each centre the number of a neighbour drawn from its nearest."""
        n_near = min(self.neighbours, len(inputs) - 1)
        if n_near == 0:
            return centre
        nearest = _nearest(inputs, n_near, generator)
        drawn = torch.randint(nearest.shape[1], (len(centre),), generator=generator)
        return nearest[centre, drawn]


def _nearest(inputs: Tensor, n_near: int, generator: Generator) -> Tensor:
    """Numbers of the rows nearest to each row, ``(N, n_near)``, found among a part of many."""
    n_rows = len(inputs)
    n_others = min(n_rows, max(_MOST_DISTANCES // n_rows, _LEAST_OTHERS))
    others = torch.randperm(n_rows, generator=generator)[:n_others]
    pool, found = inputs[others], list[Tensor]()
    for rows in torch.arange(n_rows).split(1024):
        distance = torch.cdist(inputs[rows], pool)
        distance[(rows[:, None] == others).to(distance.device)] = math.inf  # not its own neighbour
        found.append(others[distance.topk(n_near, largest=False).indices.cpu()])
    return torch.cat(found)
