"""The shape of an estimator's networks, as plain data that can be saved and rebuilt."""

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

__all__ = ["Network"]

_KINDS = get_args(HeadKind)


@dataclass(frozen=True)
class Network:
    """A perceptron and its head."""

    n_inputs: int
    widths: tuple[int, ...]
    """Of the hidden layers."""
    n_targets: int
    head: HeadKind = "gaussian"
    n_members: int = 1
    """Gaussians of a mixture head."""
    min_excess: float = 1e-4
    """Lower bound of a Normal-Wishart's excess."""
    min_belief: float = 1e-4
    """Lower bound of its belief."""
    tied_evidence: bool = False
    """One output for its belief and excess."""
    edges: Edges = ()
    """Of the ramps of each input; empty for a perceptron of plain numbers."""

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
        """A stack of such networks, one per seed, of a tensor's dtype and on its device."""
        rest = (self.widths, self.make_head(), seeds, like.dtype)
        stack = RampedMLP(self.edges, *rest) if self.edges else StackedMLP(self.n_inputs, *rest)
        return stack.to(like.device)

    @cached_property
    def n_weights(self) -> int:
        """Number of weights of one network."""
        sizes = (self.n_inputs + n_ramps(self.edges), *self.widths, self.make_head().n_outputs)
        return sum((a + 1) * b for a, b in itertools.pairwise(sizes))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        state = {**asdict(self), "widths": list(self.widths)}
        del state["edges"]
        # Files of plain networks stay as they have always been.
        return {**state, "edges": [list(own) for own in self.edges]} if self.edges else state

    @classmethod
    def from_json(cls, state: Any) -> Self:
        """Rebuild from :meth:`to_json`."""
        if not isinstance(state, dict) or not isinstance(state.get("widths"), list):
            raise ValueError('"network" does not describe one.')
        edges = state.get("edges", [])  # older files have none
        if not isinstance(edges, list) or not all(isinstance(own, list) for own in edges):
            raise ValueError('"edges" is not a list of lists.')
        kept = tuple(tuple(float(edge) for edge in own) for own in edges)
        given: dict[str, Any] = {**state, "widths": tuple(state["widths"]), "edges": kept}
        return cls(**given)
