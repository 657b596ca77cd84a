"""Perceptrons that read each number also as ramps between its quantiles, to follow steps.

A tree is a step in single columns, and a perceptron of plain numbers learns steps last.
Cut at its quantiles, a column becomes one ramp per piece, from 0 at its lower end to 1 at its
upper (Gorishniy et al., "On embeddings for numerical features in tabular deep learning", 2022).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from priornet.nn.heads import Head
from priornet.nn.stacked import StackedMLP

Edges = tuple[tuple[float, ...], ...]
"""For each input the rising ends of its ramps; empty for an input without ramps."""


def quantile_edges(inputs: Tensor, n_pieces: int, continuous: Sequence[bool]) -> Edges:
    """Cut columns into pieces of as many rows each; equal quantiles make one edge.

    Args:
        inputs: ``(N, D)``.
        n_pieces: Most pieces of a column.
        continuous: True for columns to cut; columns of zeros and ones are steps already.
    """
    shares = torch.linspace(0, 1, n_pieces + 1, dtype=torch.float64)
    columns = inputs.detach().double().cpu().sort(0).values
    at = (shares * (len(columns) - 1)).round().long()
    # Of float32 inputs: two edges that it cannot tell apart would make a ramp of infinite slope.
    edges = [tuple(columns[at, j].unique().tolist()) for j in range(columns.shape[1])]
    return tuple(e if c and len(e) > 1 else () for e, c in zip(edges, continuous, strict=True))


def n_ramps(edges: Edges) -> int:
    """Count the ramps between edges."""
    return sum(max(len(own) - 1, 0) for own in edges)


class RampedMLP(StackedMLP):
    """S perceptrons that read their inputs and the ramps of their inputs.

    Args:
        edges: One entry per input.
        widths: Width of each hidden layer. This and the rest: see :class:`StackedMLP`.

    Example:
        >>> from priornet.nn import GaussianHead
        >>> stack = RampedMLP([(0.0, 1.0, 3.0), ()], (50,), GaussianHead(50), seeds=[0])
        >>> stack.features(torch.tensor([2.0, 1.0]))
        tensor([2.0000, 1.0000, 1.0000, 0.5000])
    """

    pick: Tensor
    """Zeros and ones that lay out the inputs, then the input of each ramp, ``(D, D + R)``."""
    shift: Tensor
    """Minus the lower end of each ramp, ``(D + R,)``; 0 for the inputs."""
    slope: Tensor
    """Slope of each ramp, ``(R,)``."""

    def __init__(
        self,
        edges: Edges | Sequence[Sequence[float]],
        widths: Sequence[int],
        head: Head,
        seeds: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        ramps = [(j, *ends) for j, own in enumerate(edges) for ends in itertools.pairwise(own)]
        if not all(math.isfinite(b - a) and a < b for _, a, b in ramps):
            raise ValueError("`edges` must be finite numbers that rise within each column.")
        super().__init__(len(edges) + len(ramps), widths, head, seeds, dtype)
        source, low, high = ([ramp[i] for ramp in ramps] for i in range(3))
        ends = torch.tensor([low, high], dtype=torch.float64)
        ramped = torch.eye(len(edges), dtype=dtype)[:, torch.tensor(source, dtype=torch.long)]
        self.register_buffer("pick", torch.cat([torch.eye(len(edges), dtype=dtype), ramped], 1))
        self.register_buffer("shift", torch.cat([ends.new_zeros(len(edges)), -ends[0]]).to(dtype))
        self.register_buffer("slope", (1 / (ends[1] - ends[0])).to(dtype))

    def features(self, x: Tensor) -> Tensor:
        """Append the ramps to inputs ``(..., D)``."""
        # A product with zeros and ones is exact, and several times faster than picking columns.
        # Subtracted first: near its ramp a number keeps every digit, whoever computes this.
        laid = torch.addmm(self.shift, x.reshape(-1, x.shape[-1]), self.pick)
        laid[:, x.shape[-1] :].mul_(self.slope).clamp_(0, 1)
        return laid.view(*x.shape[:-1], laid.shape[-1])

    def raw(self, x: Tensor) -> Tensor:
        """Compute outputs ``(S, B, n)`` for inputs ``(S, B, D)``."""
        return super().raw(self.features(x))

    def start_step(self, x: Tensor) -> Tensor:
        """Compute the outputs of a training step."""
        return super().start_step(self.features(x))

    def select(self, networks: Sequence[int] | Tensor) -> Self:
        """Copy some of the networks to a new stack."""
        new = super().select(networks)
        new._buffers = {**self._buffers}  # a copy that moves to a device must not take these along
        return new
