"""Perceptrons: one, and many as one batched computation.

A stack of S networks of one shape keeps all weights in one matrix, a row per network. An optimiser
then updates every network at once, and clipping, snapshots and selection are operations on rows.
Each network's first weights come from its own seed, whatever other networks are in the stack.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear

from priornet.distributions import GaussianEnsemble
from priornet.nn.heads import Head

_ROWS_AT_ONCE = 1 << 11  # so many pass through the networks at once: their layers fit the cache


class MLP(nn.Module):
    """Fully connected ReLU layers; the last width is what a head takes.

    Args:
        in_features: Number of inputs.
        widths: Width of each hidden layer.

    Example:
        >>> MLP(3, 50, 50)(torch.randn(4, 3)).shape
        torch.Size([4, 50])
    """

    def __init__(self, in_features: int, *widths: int) -> None:
        super().__init__()
        if not widths:
            raise ValueError("`widths` must name at least one hidden layer.")
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Linear(in_features, width), nn.ReLU()]
            in_features = width
        self.layers = nn.Sequential(*layers)
        self.out_features = in_features

    def forward(self, x: Tensor) -> Tensor:
        """Compute the features of a batch."""
        return self.layers(x)


class Stack(nn.Module):
    """S networks of one shape, and the head that turns their outputs into distributions.

    A subclass computes :meth:`raw` from :meth:`pieces`.

    Args:
        shapes: Shape of each parameter of one network, by name.
        head: Turns outputs into distributions; its own projection is not used.
        n_networks: Number of networks S.
    """

    def __init__(
        self, shapes: dict[str, tuple[int, ...]], head: Head, n_networks: int, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.shapes = shapes
        self._head = (head,)  # in a tuple: its own projection is no part of this module
        self._sizes = [math.prod(shape) for shape in shapes.values()]
        self.weights = nn.Parameter(torch.empty(n_networks, sum(self._sizes), dtype=dtype))

    @property
    def head(self) -> Head:
        """Return the head, which turns outputs into distributions."""
        return self._head[0]

    @property
    def n_networks(self) -> int:
        """Count the networks, S."""
        return len(self.weights)

    def pieces(self) -> dict[str, Tensor]:
        """Return the parameters by name, views ``(S, *shape)`` of the rows of weights."""
        return self.split(self.weights)

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Split a matrix with the weights' shape into views by the names of the parameters."""
        parts = rows.split(self._sizes, 1)
        return {
            name: part.view(len(rows), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def raw(self, x: Tensor) -> Tensor:
        """Compute outputs ``(S, B, n)`` of inputs ``(S, B, features)``, network by network."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Any:
        """Predict inputs ``(S, B, features)`` with batch shape ``(S, B)``."""
        return self.head.distribution(self.raw(x))

    def answer(self, x: Tensor) -> Any:
        """Predict inputs ``(S, B, features)`` as a fitted model does, batch shape ``(S, B)``."""
        return self(x)

    def joint(self, outputs: Tensor) -> Any:
        """Return the belief that the outputs ``(S, N, n)`` stand for, batch shape ``(N,)``.

        One network has a belief of its own; several Gaussian ones are an ensemble.
        """
        if self.n_networks == 1:
            return self.head.distribution(outputs[0])
        members = self.head.distribution(outputs)
        loc, tril = members.loc, members.precision_tril
        return GaussianEnsemble.from_precision_tril(loc, tril, validate_args=False)

    def start_step(self, x: Tensor) -> Tensor:
        """Compute outputs of a training step, which may be overwritten; see :meth:`finish_step`."""
        self._outputs = self.raw(x)
        return self._outputs.detach().clone()

    def finish_step(self, gradient: Tensor) -> Tensor | None:
        """Set ``weights.grad`` from the gradient in the outputs of :meth:`start_step`."""
        self.weights.grad = None
        self._outputs.backward(gradient)
        del self._outputs

    def together(self, x: Tensor) -> Any:
        """Predict the same inputs ``(B, features)`` with every network."""
        return self(x.expand(self.n_networks, *x.shape))

    def select(self, networks: Sequence[int] | Tensor) -> Self:
        """Copy some of the networks to a new stack."""
        index = torch.as_tensor(networks, device=self.weights.device)
        new = copy.copy(self)
        new._parameters = {"weights": nn.Parameter(self.weights.detach()[index].clone())}
        return new


class StackedMLP(Stack):
    r"""S multilayer perceptrons with ReLU layers; one batched product per layer.

    Args:
        in_features: Number of inputs.
        widths: Width of each hidden layer.
        head: A head whose ``in_features`` is the last width.
        seeds: One per network. The same seed gives the same first weights, bit for bit, in any
            stack: uniform in :math:`\pm 1/\sqrt{n}` for n inputs of a layer, as in torch.

    Example:
        >>> from priornet.nn import GaussianHead
        >>> stack = StackedMLP(3, (50,), GaussianHead(50), seeds=range(10))
        >>> stack(torch.randn(10, 32, 3)).batch_shape
        torch.Size([10, 32])
    """

    def __init__(
        self,
        in_features: int,
        widths: Sequence[int],
        head: Head,
        seeds: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if not widths or min(widths) < 1:
            raise ValueError(f"`widths` must name at least one hidden layer; got {tuple(widths)}.")
        if head.in_features != widths[-1]:
            raise ValueError(
                f"`head` takes {head.in_features} features, but the last width is {widths[-1]}."
            )
        if not len(seeds):
            raise ValueError("`seeds` must hold one seed per network; it is empty.")
        sizes = (in_features, *widths, head.n_outputs)
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            shapes |= {f"{i}.weight": (n_in, n_out), f"{i}.bias": (n_out,)}
        super().__init__(shapes, head, len(seeds), dtype)
        self.in_features, self.widths = in_features, tuple(widths)
        with torch.no_grad():
            for row, seed in zip(self.weights, seeds, strict=True):
                row.copy_(self._first_weights(seed))

    def _first_weights(self, seed: int) -> Tensor:
        generator = Generator().manual_seed(seed)
        last = f"{len(self.widths)}."
        pieces: list[Tensor] = []
        bound = 0.0
        for name, shape in self.shapes.items():
            bound = 1 / math.sqrt(shape[0]) if name.endswith("weight") else bound
            # Always drawn in float32, so that both precisions start from the same numbers.
            piece = (2 * torch.rand(shape, generator=generator) - 1) * bound
            if name.startswith(last):  # the head's own rule: see its `init_gain`
                piece = piece * (self.head.init_gain if name.endswith("weight") else 0.0)
            pieces.append(piece.flatten())
        return torch.cat(pieces)

    def raw(self, x: Tensor) -> Tensor:
        """Compute outputs ``(S, B, n)`` of inputs ``(S, B, features)``."""
        *parts, weight, bias = self.pieces().values()
        single = self.n_networks == 1
        for w, b in zip(parts[::2], parts[1::2], strict=True):
            x = (_one(x, w, b) if single else torch.baddbmm(b.unsqueeze(1), x, w)).relu_()
        return _one(x, weight, bias) if single else torch.baddbmm(bias.unsqueeze(1), x, weight)

    def start_step(self, x: Tensor) -> Tensor:
        """Compute outputs of a training step, with layers in memory that is kept.

        Fresh memory for every layer of every step costs more than the arithmetic: a few hundred
        kilobytes go back to the system each time and come back page by page.
        """
        work = self._workspace(x)
        self._step = [x]  # the layers, for the backward pass
        *hidden, (weight, bias, layer) = zip(work.matrices, work.biases, work.layers, strict=True)
        for w, b, memory in hidden:
            x = torch.bmm(x, w, out=memory).add_(b).relu_()
            self._step.append(x)
        torch.bmm(work.last.copy_(weight.mT), x.mT, out=layer.mT)
        return torch.add(layer, bias, out=work.outputs)

    def finish_step(self, gradient: Tensor, through: bool = False) -> Tensor | None:
        """Propagate the gradient back through the layers.

        Args:
            gradient: In the outputs of :meth:`start_step`.
            through: Return the gradient in the inputs too, ``(S, B, features)``.
        """
        work, delta, last = self._work, gradient, len(self._step) - 1
        for i, x in reversed([*enumerate(self._step)]):
            torch.sum(delta, 1, out=work.gradients[2 * i + 1])
            if i == last:
                torch.bmm(delta.mT, x, out=work.products[i].mT)
            else:
                torch.bmm(x.mT, delta, out=work.products[i])
            work.gradients[2 * i].copy_(work.products[i])
            if i > 0:
                back = work.last if i == last else work.matrices[i].mT
                behind = torch.bmm(delta, back, out=work.deltas[i - 1])
                delta = torch.ops.aten.threshold_backward.grad_input(
                    behind, x, 0, grad_input=behind
                )
        self.weights.grad = work.gradient
        return torch.bmm(delta, work.matrices[0].mT) if through else None

    def _workspace(self, x: Tensor) -> _Workspace:
        # The address of the weights too: the workspace holds views of them.
        key = (x.shape[1], x.dtype, x.device, self.weights.data_ptr())
        if getattr(self, "_work", None) is None or self._work.key != key:
            self._work = _Workspace(self, key)
        return self._work

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the memory of training steps."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_work", "_step")}


class _Workspace:
    """Memory for one training step of S perceptrons on B rows each.

    The last layer lies transposed, ``(S, n, B)``, and so do its weights, ``(S, n, width)``:
    products with an inner side of two take twice as long as products with an inner side of fifty.
    Outputs lie by parameter, ``(n, S, B)``: heads and losses read contiguous memory.
    """

    def __init__(self, stack: StackedMLP, key: tuple[int, torch.dtype, torch.device, int]) -> None:
        self.key = key
        n_rows, dtype, device, _ = key
        kind: dict[str, Any] = {"dtype": dtype, "device": device}
        n_networks, shapes = stack.n_networks, list(stack.shapes.values())[::2]
        widths = [shape[1] for shape in shapes]
        self.layers = [torch.empty(n_networks, n_rows, width, **kind) for width in widths[:-1]]
        self.deltas = [torch.empty_like(layer) for layer in self.layers]
        self.layers.append(torch.empty(n_networks, widths[-1], n_rows, **kind).mT)
        self.outputs = torch.empty(widths[-1], n_networks, n_rows, **kind).movedim(0, -1)
        self.products = [torch.empty(n_networks, *shape, **kind) for shape in shapes[:-1]]
        self.last = torch.empty(n_networks, *reversed(shapes[-1]), **kind)
        self.products.append(torch.empty_like(self.last).mT)
        self.gradient = torch.empty(stack.weights.shape, **kind)
        self.gradients = list(stack.split(self.gradient).values())
        weights = list(stack.split(stack.weights.detach()).values())
        self.matrices, self.biases = weights[::2], [b.unsqueeze(1) for b in weights[1::2]]


def _one(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute a layer of a single network: a plain product is twice as fast as a batch of one."""
    return linear(x[0], weight[0].mT, bias[0]).unsqueeze(0)


class StackedModules(Stack):
    """S copies of any module, run through ``torch.func``.

    Args:
        make: Builds one network that maps ``(B, ...)`` to ``(B, n)``; called once per seed, with
            torch's generator seeded and restored afterwards.
        head: A head with ``n_outputs`` equal to n.
        seeds: One per network.

    Note:
        Buffers (batch normalisation) are refused: they would be shared between networks.

    Example:
        >>> from priornet.nn import GaussianHead, MLP
        >>> stack = StackedModules(lambda: MLP(3, 50, 2), GaussianHead(2), seeds=range(4))
        >>> stack(torch.randn(4, 32, 3)).batch_shape
        torch.Size([4, 32])
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        head: Head,
        seeds: Sequence[int],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        networks: list[nn.Module] = []
        for seed in seeds:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                networks.append(make())
        if next(networks[0].buffers(), None) is not None:
            raise ValueError(
                "`make` must build networks without buffers (use layer instead of batch "
                "normalisation): buffers cannot be stacked."
            )
        shapes = {name: tuple(p.shape) for name, p in networks[0].named_parameters()}
        super().__init__(shapes, head, len(networks), dtype)
        with torch.no_grad():
            for row, network in zip(self.weights, networks, strict=True):
                row.copy_(torch.cat([p.flatten() for p in network.parameters()]))
        self._template = (networks[0].to("meta"),)

    def raw(self, x: Tensor) -> Tensor:
        """Compute outputs ``(S, B, n)`` of inputs ``(S, B, ...)``."""

        def one(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            return functional_call(self._template[0], parameters, (x,))

        return torch.func.vmap(one, randomness="different")(self.pieces(), x)


@torch.no_grad()
def stack_outputs(stack: Stack, inputs: Tensor) -> Tensor:
    """Compute the outputs of each network, ``(S, N, n)``, in double precision on the processor.

    Args:
        stack: Networks, on any device.
        inputs: ``(N, features)``; each network sees all of them.
    """
    inputs = inputs.to(stack.weights)
    pieces = [
        stack.raw(x.expand(stack.n_networks, *x.shape)).double().cpu()
        for x in inputs.split(_ROWS_AT_ONCE)
    ]
    return torch.cat(pieces, 1)


@torch.no_grad()
def joint_belief(stack: Stack, outputs: Tensor) -> Any:
    """Return the belief that the outputs of all networks stand for, batch shape ``(N,)``."""
    return stack.joint(outputs)


def stack_belief(stack: Stack, inputs: Tensor) -> Any:
    """Return the belief of all networks together at inputs ``(N, features)``, in float64."""
    return joint_belief(stack, stack_outputs(stack, inputs))
