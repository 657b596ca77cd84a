"""Weights averaged over the last steps of training: less noisy than the weights themselves."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """An exponential average, which forgets quickly while it is young.

    Args:
        own: The weights by name; training changes them in place.
        horizon: Steps over which they are averaged, 0 for none; for a stack whose networks take
            different numbers of steps one per network, ``(S, 1)``.
    """

    def __init__(self, own: Mapping[str, Tensor], horizon: float | Tensor) -> None:
        self.own = own
        self.n_seen: int | Tensor = 0
        self.most: float | Tensor = 1.0
        if isinstance(horizon, Tensor):
            self.n_seen, self.most = torch.zeros_like(horizon), horizon.clamp(min=1.0)
        else:
            self.most = max(horizon, 1.0)
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
        share, own = self._share(), [self.own[name] for name in self.tensors]
        averages = list(self.tensors.values())
        if not isinstance(share, Tensor):
            torch._foreach_lerp_(averages, own, share)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage] (as torch's own averaging does)
            return
        for average, weights in zip(averages, own, strict=True):
            if active is None:
                average.lerp_(weights, share.to(average))
            else:
                new = torch.lerp(average, weights, share.to(average))
                average.copy_(torch.where(active.unsqueeze(-1), new, average))

    def _share(self) -> float | Tensor:
        length = 1 + self.n_seen / 10
        if isinstance(length, Tensor):
            return 1 / length.clamp(max=self.most)
        return 1 / min(length, float(self.most))

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
