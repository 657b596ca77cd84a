"""The rows that each network of a stack sees, and their order.

Every network shuffles its own rows with its own generator, so its batches do not depend on other
networks. Rows of weight zero fill networks with fewer rows and a last batch that is not full: every
step has one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

_CHUNK_BYTES = 1 << 25  # gathered at once: large enough to amortise, small enough to stay cheap


class Rows(NamedTuple):
    """Training rows of a stack: inputs, columns for the loss, and a weight.

    Several groups of rows (folds with their own scaling, transfer sets of several teachers) lie one
    after the other; each network uses some of the rows.
    """

    inputs: Tensor
    """``(N, D)``, or ``(N, ...)`` for networks that are not perceptrons."""
    targets: Tensor
    """``(N, C)``: columns for the loss."""
    weight: Tensor
    """``(N,)``, with mean 1."""


class Batch(NamedTuple):
    """One step's rows for every network."""

    inputs: Tensor
    """``(S, B, D)``."""
    targets: Tensor
    """``(S, B, C)``."""
    weight: Tensor
    """``(S, B)``: share of each row in its network's loss; 0 for rows that only fill."""
    active: Tensor | None
    """True for networks that have rows in this step, ``(S,)``; None when all have."""
    mask: Tensor | None = None
    """True where a target was measured, in the shape of a loss; None for everywhere."""


class _Order:
    """Shuffled row numbers of one network, epoch after epoch."""

    def __init__(self, rows: Tensor, seed: int, batch_size: int, epoch_rows: int) -> None:
        self.rows, self.generator = rows, Generator().manual_seed(seed)
        self.n = min(epoch_rows, len(rows))
        self.n_steps = -(-self.n // batch_size)
        self._queue = rows[:0]

    def draw(self) -> Tensor:
        """Draw the row numbers of the next epoch, ``(n,)``; all rows come before any repeats."""
        if self.n == len(self.rows):  # the order does not matter where one batch holds all rows
            return self.rows if self.n_steps == 1 else self._shuffled()
        if len(self._queue) < self.n:
            self._queue = torch.cat([self._queue, self._shuffled()])
        drawn, self._queue = self._queue[: self.n], self._queue[self.n :]
        return drawn

    def _shuffled(self) -> Tensor:
        return self.rows[torch.randperm(len(self.rows), generator=self.generator)]


class Batches:
    """Batches for a stack, an epoch at a time.

    Args:
        data: The rows of all networks.
        rows: Row numbers of each network.
        seeds: Seed of the order of rows, one per network.
        batch_size: Rows per network and step.
        extra: Row numbers of each network from which every step draws ``extra_size`` more, with
            replacement: out-of-domain inputs.
        extra_size: Number of extra rows per step.
        epoch_rows: Rows in an epoch, one number or one per network; by default all rows of a
            network. A large transfer set takes several epochs.
    """

    def __init__(
        self,
        data: Rows,
        rows: Sequence[Tensor],
        seeds: Sequence[int],
        batch_size: int,
        extra: Sequence[Tensor] | None = None,
        extra_size: int = 0,
        epoch_rows: int | Sequence[int] | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1; got {batch_size}.")
        if any(len(r) == 0 for r in rows):
            raise ValueError("`rows` must name at least one row for every network.")
        self.data, self.batch_size = data, batch_size
        self.extra, self.extra_size = extra, extra_size
        if epoch_rows is None or isinstance(epoch_rows, int):
            epoch_rows = [len(r) if epoch_rows is None else epoch_rows for r in rows]
        self._orders = [
            _Order(r, s, batch_size, n) for r, s, n in zip(rows, seeds, epoch_rows, strict=True)
        ]
        self._counts = [order.n_steps for order in self._orders]
        self.n_steps = max(self._counts)
        self.n_full = min(self._counts)  # steps in which every network has rows
        self._counts_there = torch.tensor(self._counts, device=data.weight.device)
        is_even = self.n_full == self.n_steps
        self.epoch_length = self.n_steps if is_even else self._counts_there.double().unsqueeze(-1)
        """Steps of an epoch; one number per network, ``(S, 1)``, if they differ."""
        self._share = self._shares().to(data.weight)
        self._is_plain = bool((data.weight == 1).all())

    def _shares(self) -> Tensor:
        """Compute the share of each row in its batch, ``(n_steps, S, B)``, the same every epoch."""
        size = self.batch_size
        n_rows = torch.tensor([[order.n] for order in self._orders])
        present = (torch.arange(self.n_steps * size) < n_rows).float()
        share = present.view(-1, self.n_steps, size).transpose(0, 1)
        share = share / share.sum(-1, keepdim=True).clamp_(min=1.0)
        if self.extra is None:
            return share
        extra = share.new_full((*share.shape[:2], self.extra_size), 1.0 / self.extra_size)
        return torch.cat([share, extra], -1)

    def draw(self) -> Tensor:
        """Draw the row numbers of the next epoch, ``(n_steps, S, B)``."""
        size = self.batch_size
        flat = torch.zeros(len(self._orders), self.n_steps * size, dtype=torch.long)
        for row, order in zip(flat, self._orders, strict=True):
            row[: order.n] = order.draw()
        index = flat.view(-1, self.n_steps, size).transpose(0, 1)
        if self.extra is None:
            return index
        shape = (self.n_steps, self.extra_size)
        drawn = [
            extra[torch.randint(len(extra), shape, generator=order.generator)]
            for extra, order in zip(self.extra, self._orders, strict=True)
        ]
        return torch.cat([index, torch.stack(drawn, 1)], -1)

    def factors(self, schedule: Callable[[float], float]) -> list[float] | Tensor:
        """Apply a schedule to the share of the epoch that is done, for every step.

        A network's share counts its own steps, not the steps of longer networks: where numbers of
        steps differ, the result has shape ``(n_steps, S, 1)``.
        """
        steps = range(self.n_steps)
        values = {n: [schedule(min(i / n, 1.0)) for i in steps] for n in set(self._counts)}
        if len(values) == 1:
            return values[self.n_steps]
        table = self.data.weight.new_tensor([values[n] for n in self._counts])
        return table.T.unsqueeze(-1)

    def at(self, step: Tensor, index: Tensor, full: bool) -> Batch:
        """Gather the batch of a step whose number lies on the device, without waiting for it.

        Args:
            step: Number of the step, shape ``(1,)``.
            index: Row numbers from :meth:`draw`, on the device.
            full: True if every network has rows in this step.
        """
        inputs, targets, weight = self.data
        rows, w = index.index_select(0, step)[0], self._share.index_select(0, step)[0]
        active = None if full else step < self._counts_there
        return Batch(inputs[rows], targets[rows], w if self._is_plain else weight[rows] * w, active)

    def epoch(self) -> Iterator[Batch]:
        """Yield the batches of one pass through every network's rows."""
        inputs, targets, weight = self.data
        index = self.draw()
        per_step = index[0].numel() * (inputs[0].numel() + targets[0].numel() + 1)
        length = max(1, _CHUNK_BYTES // (per_step * inputs.element_size()))
        for start in range(0, self.n_steps, length):
            at = index[start : start + length].to(inputs.device, non_blocking=True)
            x, y, w = _rows(inputs, at), _rows(targets, at), self._share[start : start + length]
            w = w if self._is_plain else _rows(weight, at) * w
            for step, batch in enumerate(zip(x, y, w, strict=True), start):
                active = None if step < self.n_full else step < self._counts_there
                yield Batch(*batch, active)


def _rows(table: Tensor, at: Tensor) -> Tensor:
    """Copy whole rows: ``table[at]``, several times faster."""
    return table.index_select(0, at.reshape(-1)).view(at.shape + table.shape[1:])
