"""A shared network: members with one body that answer together, as one Normal-Wishart.

Each member reads all layers of the body through scales and signs of its own, and has its own biases
and head (BatchEnsemble, Wen et al., 2020; for tables Gorishniy et al., 2025). So the body learns
from the gradients of all members, and the members still disagree where no training row holds them.

Numbers enter twice: as normal scores, which go on linearly outside of the training range, and as
learnt waves of these scores, which stop far outside of it. Columns behind the inputs may hold the
prediction of another model, the *witness*: the first half of the members adds it to its mean, the
others never see it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Tensor

from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.methods import HeadKind
from priornet.nn.architecture import stack_head
from priornet.nn.stacked import Stack, StackedMLP

Knots = tuple[tuple[tuple[float, float], ...], ...]
"""For each input its rising pairs of number and normal score; empty for zeros and ones."""

LEAST_EXCESS = 1.0  # members that differ widely want less, where variances do not exist
_LABEL_WIDTH = 16
_FIRST_FREQUENCY = 0.3  # waves over a standard deviation, on average
LAST_WAVE = 10.0  # scores; waves stop there, before single precision cannot place them


def score_knots(inputs: Tensor, continuous: Sequence[bool], n_pieces: int = 64) -> Knots:
    """Return knots of the normal scores of columns: a quantile and its score each.

    Args:
        inputs: Rows to learn from, ``(N, D)``.
        continuous: True for columns of numbers; the others get no knots.
        n_pieces: Most pieces between knots.
    """
    columns = inputs.detach().double().cpu().sort(0).values
    n_rows = len(columns)
    at = (torch.linspace(0, 1, n_pieces + 1, dtype=torch.float64) * (n_rows - 1)).round().long()
    found: list[tuple[tuple[float, float], ...]] = []
    for column, wanted in zip(columns.T.contiguous(), continuous, strict=True):
        numbers = column[at].unique() if wanted else column[:0]
        below = torch.searchsorted(column, numbers)
        share = (below + torch.searchsorted(column, numbers, right=True)) / (2 * n_rows)
        scores = torch.special.ndtri(share.clamp(0.5 / n_rows, 1 - 0.5 / n_rows))
        found.append(tuple(zip(numbers.tolist(), scores.tolist(), strict=True)))
    return tuple(found)


@dataclass(frozen=True)
class SharedNetwork:
    """Sizes of a shared network, as plain data that a file can keep."""

    kind: ClassVar[str] = "shared"

    n_inputs: int
    """Columns of the preprocessed matrix, and those of a witness."""
    widths: tuple[int, ...]
    n_targets: int
    n_members: int
    knots: Knots
    """One entry per input, without those of a witness."""
    label_columns: tuple[tuple[int, int], ...] = ()
    """First and last + 1 of the inputs of each column with many labels."""
    n_waves: int = 24
    """Frequencies of each number."""
    wave_width: int = 8
    """Units that the waves of a number become."""
    witnessed: int = 0
    """Members that see the witness; 0 where there is none."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built; the numbers may come from a file."""
        counts = (self.n_inputs, *self.widths, self.n_targets, self.n_waves, self.wave_width)
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in counts)
        if not whole or not self.widths or not self.n_members >= 2:
            raise ValueError(f"a shared network cannot have these sizes: {counts}.")
        if not 0 <= self.witnessed <= self.n_members:
            raise ValueError(f"{self.witnessed} of {self.n_members} members cannot see a witness.")
        if len(self.knots) + self.n_witness != self.n_inputs:
            raise ValueError(f"{len(self.knots)} lists of knots for {self.n_inputs} inputs.")
        for own in self.knots:
            if any(not a < b for (a, _), (b, _) in itertools.pairwise(own)):
                raise ValueError("knots must rise within each column.")
        ends = [0, *(end for pair in self.label_columns for end in pair), len(self.knots)]
        if any(a > b for a, b in itertools.pairwise(ends)):
            raise ValueError(f"columns of labels must not overlap; got {self.label_columns}.")

    @property
    def n_witness(self) -> int:
        """Count the columns of the witness, one per target."""
        return self.n_targets if self.witnessed else 0

    @property
    def head(self) -> HeadKind:
        """Return the kind of belief that the network answers with."""
        return "normal-wishart"

    @cached_property
    def numbers(self) -> list[int]:
        """List the inputs with knots."""
        return [j for j, own in enumerate(self.knots) if own]

    @cached_property
    def rest(self) -> list[int]:
        """List the inputs of zeros and ones that enter the body as they are."""
        pooled = {j for first, end in self.label_columns for j in range(first, end)}
        return [j for j, own in enumerate(self.knots) if not own and j not in pooled]

    @property
    def n_body(self) -> int:
        """Count the inputs of the body."""
        n_numbers = len(self.numbers) + self.n_witness
        n_labels = sum(min(_LABEL_WIDTH, end - first) for first, end in self.label_columns)
        return n_numbers * (1 + self.wave_width) + n_labels + len(self.rest)

    @cached_property
    def witness_places(self) -> frozenset[int]:
        """List the inputs of the body that come from the witness: its waves, and itself."""
        n_seen, n_all = len(self.numbers), len(self.numbers) + self.n_witness
        waves = range(n_seen * self.wave_width, n_all * self.wave_width)
        plain = range(n_all * self.wave_width + n_seen, n_all * (self.wave_width + 1))
        return frozenset([*waves, *plain])

    def with_members(self, chosen: Sequence[int]) -> SharedNetwork:
        """Return the sizes with some of the members, without a witness if none of them sees it."""
        n_seeing = sum(member < self.witnessed for member in chosen)
        return replace(
            self,
            n_inputs=len(self.knots) + (self.n_targets if n_seeing else 0),
            n_members=len(chosen),
            witnessed=n_seeing,
        )

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter."""
        n_numbers, n_members = len(self.numbers) + self.n_witness, self.n_members
        found: dict[str, tuple[int, ...]] = {
            "frequencies": (n_numbers, self.n_waves),
            "waves.weight": (n_numbers, 2 * self.n_waves, self.wave_width),
            "waves.bias": (n_numbers, self.wave_width),
        }
        for i, (first, end) in enumerate(self.label_columns):
            found[f"labels.{i}"] = (end - first, min(_LABEL_WIDTH, end - first))
        for i, (n_in, n_out) in enumerate(itertools.pairwise((self.n_body, *self.widths))):
            found |= {
                f"{i}.weight": (n_in, n_out),
                f"{i}.read": (n_members, n_in),
                f"{i}.scale": (n_members, n_out),
                f"{i}.bias": (n_members, n_out),
            }
        n_outputs = self.member_head().n_outputs
        found["head.weight"] = (n_members, self.widths[-1], n_outputs)
        found["head.bias"] = (n_members, n_outputs)
        if self.witnessed:
            found["witness"] = (n_members, self.n_targets)
        return found

    @cached_property
    def n_weights(self) -> int:
        """Count the weights."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def member_head(self) -> Any:
        """Make the head of the members, whose weights are those of the network."""
        return stack_head("gaussian", self.widths[-1], self.n_targets)

    def build(self, seeds: list[int], like: Tensor) -> SharedMLP:
        """Build the network, with a tensor's dtype and device."""
        return SharedMLP(self, seeds[0], like.dtype).to(like.device)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain data."""
        state = asdict(self) | {"kind": self.kind, "widths": [*self.widths]}
        state["knots"] = [[[*pair] for pair in own] for own in self.knots]
        state["label_columns"] = [[*pair] for pair in self.label_columns]
        return state


class SharedMLP(Stack):
    """The network of :class:`SharedNetwork`: a stack of one, whose outputs are its members'.

    Folded into the body, scales and signs give each member a matrix of its own. A step is then one
    of a plain stack of members, and small products for the folding.

    Args:
        network: Sizes.
        seed: Of the first weights.
    """

    shift: Tensor
    """Lower ends of the pieces of the normal scores, ``(numbers, pieces)``."""
    length: Tensor
    """Lengths of the pieces, likewise."""
    slope: Tensor
    """Slopes on the pieces, likewise."""
    start: Tensor
    """First number, first score and last number of each column, ``(3, numbers)``."""
    folded: Tensor | None
    """Weights of the members as plain perceptrons, once they are frozen."""

    def __init__(
        self, network: SharedNetwork, seed: int, dtype: torch.dtype = torch.float32
    ) -> None:
        head = network.member_head()
        super().__init__(network.shapes, head, 1, dtype)
        self.network = network
        members = StackedMLP(network.n_body, network.widths, head, [0] * network.n_members, dtype)
        self._members = (members,)  # in a tuple: its weights are folded, not learnt
        self._set_scores(dtype)
        self.register_buffer("folded", None)
        with torch.no_grad():
            self.weights[0] = torch.cat([p.flatten() for p in self._first_weights(seed)])

    def _set_scores(self, dtype: torch.dtype) -> None:
        """Lay out the pieces of the normal scores; shorter columns end in pieces of no length."""
        pieces = [
            [(a, b - a, (t - s) / (b - a)) for (a, s), (b, t) in itertools.pairwise(own)]
            for own in self.network.knots
            if own
        ]
        most = max((len(own) for own in pieces), default=0)
        filled = [own + [(0.0, 0.0, 0.0)] * (most - len(own)) for own in pieces]
        table = torch.tensor(filled, dtype=torch.float64).reshape(len(pieces), most, 3)
        for name, part in zip(("shift", "length", "slope"), table.unbind(-1), strict=True):
            self.register_buffer(name, part.to(dtype))
        ends = [(own[0][0], own[0][1], own[-1][0]) for own in self.network.knots if own]
        self.register_buffer("start", torch.tensor(ends, dtype=dtype).reshape(-1, 3).T.contiguous())

    def _first_weights(self, seed: int) -> list[Tensor]:
        """Draw the first weights, in float32 whatever the precision."""
        generator = Generator().manual_seed(seed)
        drawn = (self._first(name, shape, generator) for name, shape in self.shapes.items())
        return [piece.to(self.weights) for piece in drawn]

    def _first(self, name: str, shape: tuple[int, ...], generator: Generator) -> Tensor:
        kind = name.rpartition(".")[2]
        if name == "frequencies" or name.startswith("labels"):
            return _FIRST_FREQUENCY * torch.randn(shape, generator=generator)
        if name == "head.weight":
            # Members begin with means of their own, and unlearn them where there are rows.
            first = torch.randn(shape, generator=generator) / math.sqrt(shape[1])
            first[..., self.network.n_targets :] = 0
            return first
        if name == "head.bias":
            return torch.zeros(shape)
        if name == "0.read":
            return 2.0 * torch.randint(2, shape, generator=generator) - 1
        if kind in ("read", "scale", "witness"):
            return torch.ones(shape)
        n_in = 2 * self.network.n_waves
        if not name.startswith("waves"):
            n_in = self.shapes[f"{name.partition('.')[0]}.weight"][0]
        return (2 * torch.rand(shape, generator=generator) - 1) / math.sqrt(n_in)

    # -- the parts of a pass ----------------------------------------------------------------------

    def scores(self, numbers: Tensor) -> Tensor:
        """Return the normal scores of numbers ``(B, numbers)``; they go on with slope 1."""
        low, first, high = self.start
        inside = (numbers.unsqueeze(-1) - self.shift).clamp_(min=0).minimum(self.length)
        outside = (numbers - low).clamp(max=0) + (numbers - high).clamp(min=0)
        return first + outside + (inside * self.slope).sum(-1)

    def embed(self, x: Tensor, parts: dict[str, Tensor]) -> Tensor:
        """Return the inputs of the body, ``(B, n_body)``, for preprocessed inputs ``(B, D)``."""
        network = self.network
        n_known = len(network.knots)
        numbers = torch.cat([self.scores(x[:, network.numbers]), x[:, n_known:]], 1)
        waving = numbers.clamp(-LAST_WAVE, LAST_WAVE).unsqueeze(-1)
        angle = 2 * math.pi * waving * parts["frequencies"]
        waves = torch.cat([angle.sin(), angle.cos()], -1).transpose(0, 1)  # (numbers, B, 2 F)
        units = torch.baddbmm(parts["waves.bias"].unsqueeze(1), waves, parts["waves.weight"]).relu()
        labels = [
            x[:, first:end] @ parts[f"labels.{i}"]
            for i, (first, end) in enumerate(network.label_columns)
        ]
        found = [units.transpose(0, 1).flatten(1), numbers, *labels, x[:, network.rest]]
        return torch.cat(found, 1)

    def freeze(self) -> None:
        """Keep the folded weights, for a network that learns no more."""
        self.folded = self.fold(self._parts()).detach()

    def plain_members(self) -> StackedMLP:
        """Copy the members as plain perceptrons of the inputs of the body, without the witness."""
        members = self._members[0].select(range(self.network.n_members))
        with torch.no_grad():
            members.weights.copy_(self.fold(self._parts()))
        return members

    def fold(self, parts: dict[str, Tensor]) -> Tensor:
        """Return the weights of the members as plain perceptrons, ``(M, n)``."""
        found: list[Tensor] = []
        for i in range(len(self.network.widths)):
            read, scale = parts[f"{i}.read"].unsqueeze(-1), parts[f"{i}.scale"].unsqueeze(1)
            if i == 0 and self.network.witnessed:
                read = read * self._sight.unsqueeze(-1)
            found += [(parts[f"{i}.weight"] * read * scale).flatten(1), parts[f"{i}.bias"]]
        return torch.cat([*found, parts["head.weight"].flatten(1), parts["head.bias"]], 1)

    @property
    def _sight(self) -> Tensor:
        """Return 1 where a member reads an input of the body, 0 for the witness it must not see."""
        network = self.network
        sight = self.weights.new_ones(network.n_members, network.n_body)
        sight[network.witnessed :, [*network.witness_places]] = 0
        return sight

    def _parts(self) -> dict[str, Tensor]:
        return {name: part[0] for name, part in self.pieces().items()}

    def _witness(self, x: Tensor, parts: dict[str, Tensor]) -> Tensor:
        """Return what the witness adds to the means, ``(M, B, K)``; nothing for some members."""
        share = parts["witness"].clone()
        share[self.network.witnessed :] = 0
        return share.unsqueeze(1) * x[:, len(self.network.knots) :]

    # -- a stack of one ---------------------------------------------------------------------------

    def raw(self, x: Tensor) -> Tensor:
        """Compute the members' outputs ``(M, B, n)`` of inputs ``(1, B, D)``."""
        parts, rows = self._parts(), x[0]
        body = self.embed(rows, parts)
        pieces = self._members[0].split(self.fold(parts) if self.folded is None else self.folded)
        *layers, weight, bias = pieces.values()
        hidden = body.expand(self.network.n_members, *body.shape)
        for w, b in zip(layers[::2], layers[1::2], strict=True):
            hidden = torch.baddbmm(b.unsqueeze(1), hidden, w).relu()
        out = torch.baddbmm(bias.unsqueeze(1), hidden, weight)
        if not self.network.witnessed:
            return out
        loc, scales = out.tensor_split([self.network.n_targets], -1)
        return torch.cat([loc + self._witness(rows, parts), scales], -1)

    def answer(self, x: Tensor) -> NormalWishart:
        """Predict inputs ``(1, B, D)`` with batch shape ``(1, B)``."""
        return self.joint(self.raw(x).unsqueeze(1))

    def joint(self, outputs: Tensor) -> NormalWishart:
        """Fit a Normal-Wishart to the members' outputs ``(M, *batch, n)``, in closed form."""
        members = self.head.distribution(outputs)
        ensemble = GaussianEnsemble.from_precision_tril(
            members.loc, members.precision_tril, validate_args=False
        )
        found = NormalWishart.fit(ensemble)
        return NormalWishart.unchecked(
            loc=found.loc,
            precision_tril=found.precision_tril,
            belief=found.belief,
            excess=found.excess.clamp(min=LEAST_EXCESS),
        )

    def start_step(self, x: Tensor) -> Tensor:
        """Compute the members' outputs of a training step, ``(M, B, n)``."""
        parts, rows, members = self._parts(), x[0], self._members[0]
        self._graph = [self.fold(parts), self.embed(rows, parts)]
        folded, body = (part.detach() for part in self._graph)
        with torch.no_grad():
            members.weights.copy_(folded)
        out = members.start_step(body.expand(self.network.n_members, *body.shape))
        if self.network.witnessed:
            self._graph.append(self._witness(rows, parts))
            out[..., : self.network.n_targets] += self._graph[-1].detach()
        return out

    def finish_step(self, gradient: Tensor) -> None:
        """Set ``weights.grad`` from the gradient in the outputs of :meth:`start_step`."""
        self.weights.grad = None
        members = self._members[0]
        witness = gradient[..., : self.network.n_targets].clone()
        body = members.finish_step(gradient, through=True)
        assert body is not None
        gradients = [members.weights.grad, body.sum(0), witness]
        torch.autograd.backward(self._graph, gradients[: len(self._graph)])
        del self._graph

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        """Move the members' memory along."""
        self._members[0]._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def select_members(self, chosen: Sequence[int]) -> SharedMLP:
        """Copy some of the members to a new network, in the order of their numbers."""
        sizes = self.network.with_members(chosen)
        found = SharedMLP(sizes, 0, self.weights.dtype).to(self.weights.device)
        kept = list(range(self.network.n_body))
        if not sizes.witnessed:
            kept = [j for j in kept if j not in self.network.witness_places]
        parts, own = self._parts(), [*chosen]
        with torch.no_grad():
            for name, piece in found._parts().items():
                part = parts[name]
                if name.startswith(("frequencies", "waves")):
                    part = part[: len(piece)]  # the witness stands last
                elif name == "0.weight":
                    part = part[kept]
                elif name == "0.read":
                    part = part[own][:, kept]
                elif not name.startswith("labels") and not _is_shared(name):
                    part = part[own]
                piece.copy_(part)
        return found


def _is_shared(name: str) -> bool:
    """Tell if all members share a parameter of the layers."""
    layer, _, kind = name.partition(".")
    return layer.isdigit() and kind == "weight"
