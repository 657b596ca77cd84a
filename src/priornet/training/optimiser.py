"""The optimiser of a stack: a schedule, Adam for every network, and the average of its weights.

torch's optimisers have one learning rate per parameter group; here all networks share one matrix of
weights, a row each, and every setting is a column.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def cosine(share: float, final: float = 0.0) -> float:
    """Compute the factor of the learning rate: from 1 to ``final`` along half a cosine.

    Example:
        >>> cosine(0.0), cosine(0.5), cosine(1.0)
        (1.0, 0.5, 0.0)
    """
    return final + (1 - final) * (1 + math.cos(math.pi * share)) / 2


class StackedAdam:
    r"""Adam (Kingma and Ba, 2015) on the rows of a matrix of weights.

    Args:
        weights: A row per network, ``(S, P)``.
        learning_rate: One value, or one per network; this holds for the next two as well.
        weight_decay: L2 penalty.
        clip: Longest gradient of a network; None for no limit. The reverse KL needs a limit: its
            slope in the log-belief starts in the thousands.
        betas: Decay of the averages of the gradient and of its square.
        eps: Added to the root of the second average.
    """

    def __init__(
        self,
        weights: nn.Parameter,
        learning_rate: float | Sequence[float],
        weight_decay: float | Sequence[float] = 0.0,
        clip: float | Sequence[float] | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.weights, self.betas, self.eps = weights, betas, eps
        self.learning_rate = self._column("learning_rate", learning_rate)
        self.weight_decay = self._column("weight_decay", weight_decay)
        self.clip = None if clip is None else self._column("clip", clip)
        # Settings are read here, once: rate and decay that all networks share, on the CPU.
        settings = torch.cat([self.learning_rate, self.weight_decay], 1)
        is_shared = weights.device.type == "cpu" and bool((settings == settings[0]).all())
        rate, decay = settings[0].tolist()
        self._shared: tuple[float, float] | None = (rate, decay) if is_shared else None
        self._decays = bool((self.weight_decay > 0).any())
        self._average, self._square = torch.zeros_like(weights), torch.zeros_like(weights)
        # Steps taken: a number while all networks keep step, else one per network, in double
        # precision: 1 - 0.999 loses four digits in single.
        self._count: int | Tensor = 0
        self._scratch = torch.empty_like(weights)  # kept: fresh memory costs more than arithmetic
        self._step = torch.zeros(())  # the count, as the fused kernel wants it

    def _column(self, name: str, value: float | Sequence[float]) -> Tensor:
        column = torch.as_tensor(value, dtype=self.weights.dtype, device=self.weights.device)
        if column.numel() not in (1, len(self.weights)):
            raise ValueError(
                f"`{name}` must be one number or one per network ({len(self.weights)}); got "
                f"{column.numel()}."
            )
        return column.reshape(-1, 1).expand(len(self.weights), 1).contiguous()

    def count_in_place(self) -> None:
        """Keep the number of steps where a CUDA graph can raise it."""
        if not isinstance(self._count, Tensor):
            rate = self.learning_rate
            self._count = torch.full_like(rate, self._count, dtype=torch.float64)

    @torch.no_grad()
    def step(self, factor: float | Tensor = 1.0, active: Tensor | None = None) -> None:
        """Update the weights from their gradient.

        Args:
            factor: Multiplies every learning rate.
            active: True for networks that move, ``(S,)``; None for all. The others keep their
                weights and averages.
        """
        grad = self.weights.grad
        assert grad is not None
        if self.clip is not None:
            norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
            grad.mul_(torch.clamp_(self.clip / norm, max=1.0))
        in_step = active is None and isinstance(self._count, int)
        if self._shared is not None and in_step and isinstance(factor, float):
            rate, decay = self._shared
            self._count += 1
            self._update_at_once(grad, factor * rate, decay)
            return
        if self._decays:
            grad.addcmul_(self.weight_decay, self.weights)
        own = (self.weights, self._average, self._square)
        if active is None:
            self._count += 1
            self._update(*own, grad, factor)
            return
        self.count_in_place()
        self._count += active.unsqueeze(-1)
        weights, average, square = new = [part.clone() for part in own]
        self._update(weights, average, square, grad, factor)
        for before, after in zip(own, new, strict=True):
            before.copy_(torch.where(active.unsqueeze(-1), after, before))

    def _update_at_once(self, grad: Tensor, rate: float, decay: float) -> None:
        """Update in one pass through memory instead of eight, by torch's fused kernel."""
        first, second = self.betas
        # The public way to it, torch.optim.Adam, costs more than the arithmetic here.
        torch._fused_adam_(  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
            [self.weights],
            [grad],
            [self._average],
            [self._square],
            [],
            [self._step.fill_(self._count)],
            lr=rate,
            beta1=first,
            beta2=second,
            weight_decay=decay,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )

    def _update(
        self, weights: Tensor, average: Tensor, square: Tensor, grad: Tensor, factor: float | Tensor
    ) -> None:
        first, second = self.betas
        average.lerp_(grad, 1 - first)
        square.mul_(second).addcmul_(grad, grad, value=1 - second)
        # m / (1 - b1^t) over sqrt(v / (1 - b2^t)) + eps, with the corrections taken together.
        root = (1 - second**self._count) ** 0.5
        rate = self.learning_rate * (factor * root / (first**self._count - 1))  # downhill
        bottom = torch.sqrt(square, out=self._scratch).add_(self.eps * root)
        weights.addcmul_(torch.div(average, bottom, out=self._scratch), rate.to(weights.dtype))


class WeightAverage:
    """An exponential average of weights over the last steps, which forgets quickly while young.

    Args:
        own: The weights by name; training changes them in place.
        horizon: Steps over which they are averaged, 0 for none; for a stack whose networks take
            different numbers of steps one per network, ``(S, 1)``.
    """

    def __init__(self, own: Mapping[str, Tensor], horizon: float | Tensor) -> None:
        self.own = own
        per_network = isinstance(horizon, Tensor)
        self.n_seen: int | Tensor = torch.zeros_like(horizon) if per_network else 0
        self.most = horizon.clamp(min=1.0) if per_network else max(horizon, 1.0)
        averages = bool((torch.as_tensor(horizon) > 0).all())
        self.tensors = {k: v.detach().clone() for k, v in own.items()} if averages else {}

    def count_in_place(self) -> None:
        """Keep the number of steps where a CUDA graph can raise it."""
        if not isinstance(self.n_seen, Tensor):
            self.n_seen = next(iter(self.own.values())).detach().new_full((), self.n_seen)

    @torch.no_grad()
    def update(self, active: Tensor | None = None) -> None:
        """Take in a step; networks that are not ``active``, ``(S,)``, keep their average."""
        if not self.tensors:
            return
        self.n_seen += 1 if active is None else active.unsqueeze(-1)
        length = 1 + self.n_seen / 10
        averages, own = list(self.tensors.values()), [self.own[name] for name in self.tensors]
        if not isinstance(length, Tensor):
            share = 1 / min(length, float(self.most))
            torch._foreach_lerp_(averages, own, share)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage] (as torch's own averaging does)
            return
        for average, weights in zip(averages, own, strict=True):
            share = (1 / length.clamp(max=self.most)).to(average)
            if active is None:
                average.lerp_(weights, share)
            else:
                new = torch.lerp(average, weights, share)
                average.copy_(torch.where(active.unsqueeze(-1), new, average))

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Put the averages in the weights' place for a while."""
        before = {name: self.own[name].data for name in self.tensors}
        for name, average in self.tensors.items():
            self.own[name].data = average
        try:
            yield
        finally:
            for name, weights in before.items():
                self.own[name].data = weights

    def load(self, tensors: Mapping[str, Tensor], n_seen: int) -> None:
        """Take averages of earlier training, and the number of steps that they saw."""
        self.n_seen = n_seen
        for name, tensor in tensors.items():
            self.tensors[name].copy_(tensor)

    @torch.no_grad()
    def keep(self) -> None:
        """Give the weights their averages for good."""
        for name, average in self.tensors.items():
            self.own[name].copy_(average)
