"""Shape of an estimator's networks, as plain data that a file can keep."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self, get_args

from torch import Tensor

from priornet.methods import HeadKind
from priornet.nn.heads import Head, stack_head
from priornet.nn.ramps import Edges, RampedMLP, n_ramps
from priornet.nn.stacked import StackedMLP

_KINDS = get_args(HeadKind)


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
        if self.head not in _KINDS:
            raise ValueError(f'unknown head "{self.head}"; choose one of: {", ".join(_KINDS)}.')

    def make_head(self) -> Head:
        """Make the head, whose weights are those of the stack."""
        settings = {
            "tied_evidence": self.tied_evidence,
            "min_belief": self.min_belief,
            "min_excess": self.min_excess,
        }
        own: dict[str, Any] = settings if self.head == "normal-wishart" else {}
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
        state = {**asdict(self), "widths": list(self.widths)}
        del state["edges"]
        # Files of plain networks have no such entry, as in older versions.
        return {**state, "edges": [list(own) for own in self.edges]} if self.edges else state

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
