"""Shape of an estimator's networks, as plain data that a file can keep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from priornet.methods import HeadKind
from priornet.nn.heads import GaussianHead, GaussianMixtureHead, Head, NormalWishartHead
from priornet.nn.stacked import StackedMLP

_HEADS: dict[HeadKind, type[Head]] = {
    "gaussian": GaussianHead,
    "normal-wishart": NormalWishartHead,
    "mixture": GaussianMixtureHead,
}


def make_head(
    kind: HeadKind, in_features: int, n_targets: int = 1, n_members: int = 1, **settings: Any
) -> Head:
    """Make the head of a method.

    Args:
        kind: Distribution that it predicts.
        in_features: Width of the features.
        n_targets: Target dimension K.
        n_members: Gaussians of a mixture; other heads ignore it.
        settings: More arguments of the head's class.
    """
    if kind == "mixture":
        settings["n_members"] = n_members
    make: Callable[..., Head] = _HEADS[kind]
    return make(in_features, n_targets, **settings)


def stack_head(
    kind: HeadKind, in_features: int, n_targets: int = 1, n_members: int = 1, **settings: Any
) -> Head:
    """Make a head for a stack, which has its own weights: without memory or random numbers."""
    with torch.device("meta"):
        return make_head(kind, in_features, n_targets, n_members, **settings)


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


@dataclass(frozen=True)
class Network:
    """Sizes of a perceptron and settings of its head."""

    n_inputs: int
    widths: tuple[int, ...]
    """Widths of the hidden layers."""
    n_targets: int
    head: HeadKind = "gaussian"
    n_members: int = 1
    """Gaussians of a mixture head."""
    min_excess: float = 1e-4
    """Lower bound of the excess, for a Normal-Wishart head."""
    min_belief: float = 1e-4
    """Lower bound of the belief, for a Normal-Wishart head."""
    tied_evidence: bool = False
    """One output for belief and excess."""
    edges: Edges = ()
    """Edges of the ramps of each input; empty for a perceptron of plain numbers."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built; the numbers may come from a file."""
        counts = (self.n_inputs, *self.widths, self.n_targets, self.n_members)
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in counts)
        if not whole or not self.widths:
            raise ValueError(f"layer sizes must be positive whole numbers; got {counts}.")
        if self.edges and len(self.edges) != self.n_inputs:
            raise ValueError(f"{len(self.edges)} lists of edges for {self.n_inputs} inputs.")
        if self.head not in [*_HEADS]:  # a file may hold what has no hash
            raise ValueError(f'unknown head "{self.head}"; choose one of: {", ".join(_HEADS)}.')

    def make_head(self) -> Head:
        """Make the head, whose weights are those of the stack."""
        evidence = ("tied_evidence", "min_belief", "min_excess")
        names = evidence if self.head == "normal-wishart" else ()
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        return stack_head(self.head, self.widths[-1], self.n_targets, self.n_members, **own)

    def build(self, seeds: list[int], like: Tensor) -> StackedMLP:
        """Build a stack of such networks, one per seed, with a tensor's dtype and device."""
        rest = (self.widths, self.make_head(), seeds, like.dtype)
        stack = RampedMLP(self.edges, *rest) if self.edges else StackedMLP(self.n_inputs, *rest)
        return stack.to(like.device)

    @cached_property
    def n_weights(self) -> int:
        """Count the weights of one network."""
        sizes = (self.n_inputs + n_ramps(self.edges), *self.widths, self.make_head().n_outputs)
        return sum((a + 1) * b for a, b in itertools.pairwise(sizes))

    def to_json(self) -> dict[str, Any]:
        """Convert to plain data."""
        state = {**asdict(self), "widths": [*self.widths], "edges": [[*own] for own in self.edges]}
        if not self.edges:
            del state["edges"]  # as in older versions
        return state

    @classmethod
    def from_json(cls, state: Any) -> Self:
        """Make from the data of :meth:`to_json`."""
        if not isinstance(state, dict) or not isinstance(state.get("widths"), list):
            raise ValueError('"network" does not describe one.')
        edges = state.get("edges", [])  # older files have none
        if not isinstance(edges, list) or not all(isinstance(own, list) for own in edges):
            raise ValueError('"edges" is not a list of lists.')
        kept = tuple(tuple(float(edge) for edge in own) for own in edges)
        given: dict[str, Any] = {**state, "widths": tuple(state["widths"]), "edges": kept}
        return cls(**given)
