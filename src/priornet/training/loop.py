"""The training loop of a stack, for any network, loss and rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from priornet.nn.stacked import Stack
from priornet.training.batches import Batch, Batches
from priornet.training.device import Replay, at_most, flushed, on_stream
from priornet.training.optimiser import StackedAdam, WeightAverage, cosine

Loss: TypeAlias = Callable[[Any, Batch, Any], Tensor]
"""``(prediction, batch, share of the epochs done) -> loss per row (S, B)``, not yet weighted.

The share is a number, or on CUDA a tensor without dimensions; the schedules take both. Any function
that autograd can differentiate will do. The result of a function of :mod:`priornet.losses` for one
target is fastest, for its gradient is known already.
"""

Validation: TypeAlias = Callable[[Stack], Tensor]
"""``stack -> loss per network (S,)`` on rows that are held out."""

Step = Callable[[Batch, float | Tensor, float | Tensor], Tensor]
"""``(batch, share of training done, factor of the learning rates) -> loss per row (S, B)``."""

_SMALL = 1 << 20  # numbers in the widest layer of a step below which one thread is safer


class Tick(NamedTuple):
    """Progress of a training; handed to the ``progress`` callback after every epoch."""

    epoch: int
    n_epochs: int
    loss: float
    """Mean over networks of the validation loss, or of the training loss without validation."""
    best: float | None
    """Mean over networks of the lowest validation loss so far; None without validation."""


@dataclass
class History:
    """Losses of a training: a row per epoch, a column per network."""

    train: list[Tensor] = field(default_factory=list)
    validation: list[Tensor] = field(default_factory=list)
    best_epoch: Tensor | None = None
    """Epoch (from 1) whose weights each network kept, ``(S,)``; None without validation."""
    seconds: float = 0.0

    @property
    def n_epochs(self) -> int:
        """Count the epochs that ran."""
        return len(self.train)


def fit(
    stack: Stack,
    loss: Loss,
    batches: Batches,
    optimizer: StackedAdam,
    *,
    epochs: int,
    validation: Validation | None = None,
    patience: int | None = None,
    average: float = 0.0,
    schedule: Callable[[float], float] = cosine,
    progress: Callable[[Tick], object] | None = None,
    graph: bool = True,
) -> History:
    """Train every network of a stack; with validation, each keeps the weights of its best epoch.

    Args:
        stack: The networks.
        loss: Loss per row.
        batches: Rows for each step.
        optimizer: Optimiser of ``stack.weights``.
        epochs: Most passes through the rows.
        validation: Loss per network after an epoch.
        patience: Epochs without a better loss after which a network stops; None for never.
        average: Epochs over which the weights that are validated and kept are averaged; 0 for none.
        schedule: From the share of training done to the factor of the learning rates.
        progress: Called after every epoch.
        graph: On CUDA, replay steps from a CUDA graph. A loss that waits for the device
            (``.item()``, ``if tensor:``) needs False.
    """
    mean = WeightAverage({"weights": stack.weights}, average * batches.epoch_length)
    steps = _steps(stack, loss, batches, optimizer, mean, graph and stack.weights.is_cuda)
    keeper = _Keeper(stack, mean, validation, patience)
    with at_most(_n_threads(stack, batches)), on_stream(steps.stream):
        return _run(steps, keeper, epochs, schedule, progress)


def _run(
    steps: Steps | Replay,
    keeper: _Keeper,
    epochs: int,
    schedule: Callable[[float], float],
    progress: Callable[[Tick], object] | None,
) -> History:
    """Train to the last epoch, or until every network has stopped."""
    started, history = time.perf_counter(), History()

    def rate(done: float) -> float:
        return schedule((history.n_epochs + done) / epochs)

    for epoch in range(epochs):
        history.train.append(steps.epoch(epoch / epochs, rate))
        keeper.look(history)
        if progress is not None:
            last = (history.validation or history.train)[-1]
            best = float(keeper.best.mean()) if history.validation else None
            progress(Tick(history.n_epochs, epochs, float(last.mean()), best))
        if keeper.all_stopped:
            break
    keeper.finish(history)
    history.seconds = time.perf_counter() - started
    return history


def _steps(
    stack: Stack,
    loss: Loss,
    batches: Batches,
    optimizer: StackedAdam,
    mean: WeightAverage,
    graph: bool,
) -> Steps | Replay:
    """Make the steps of an epoch, plain or as a CUDA graph."""

    def step(batch: Batch, share: float | Tensor, factor: float | Tensor) -> Tensor:
        leaf = stack.head.leaf(stack.start_step(batch.inputs))
        per_row = loss(leaf.prediction, batch, share)
        # Gradient of the weighted sum over all rows: each network gets that of its own loss.
        stack.finish_step(leaf.gradient(per_row, batch.weight))
        optimizer.step(factor, batch.active)
        mean.update(batch.active)
        return per_row.detach()

    if not graph:
        return Steps(step, batches)
    optimizer.count_in_place()
    mean.count_in_place()
    return Replay(step, batches)


class Steps:
    """The steps of an epoch, run one by one on the current stream."""

    stream = None

    def __init__(self, step: Step, batches: Batches) -> None:
        self.step, self.batches = step, batches

    @flushed()
    def epoch(self, share: float, schedule: Callable[[float], float]) -> Tensor:
        """Run all steps of an epoch, and return the mean loss of each network, ``(S,)``."""
        total = self.batches.data.weight.new_zeros(())
        factors = self.batches.factors(schedule)
        for batch, factor in zip(self.batches.epoch(), factors, strict=True):
            total = torch.addcmul(total, self.step(batch, share, factor), batch.weight)
        return total.sum(-1) / self.batches.n_steps


class _Keeper:
    """The weights to keep: each network's best by its validation loss, or without one the last."""

    def __init__(
        self,
        stack: Stack,
        mean: WeightAverage,
        validation: Validation | None,
        patience: int | None,
    ) -> None:
        self.stack, self.mean, self.validation = stack, mean, validation
        self.patience = math.inf if patience is None or validation is None else patience
        self.weights = stack.weights.detach().clone()
        self.best = self.weights.new_full(self.weights.shape[:1], math.inf)
        self.epoch = torch.zeros_like(self.best, dtype=torch.long)
        self.waited = torch.zeros_like(self.epoch)

    @torch.no_grad()
    def look(self, history: History) -> None:
        """Validate, and keep the weights of networks that improved and have not stopped."""
        if self.validation is None:
            return
        with self.mean.in_place():
            values = self.validation(self.stack)
            better = (values < self.best) & (self.waited < self.patience)
            self.best = torch.where(better, values, self.best)
            self.epoch.masked_fill_(better, history.n_epochs)
            self.waited = torch.where(better, 0, self.waited + 1)
            self.weights.copy_(torch.where(better.unsqueeze(-1), self.stack.weights, self.weights))
        history.validation.append(values)

    @property
    def all_stopped(self) -> bool:
        """Check if every network has stopped."""
        return not math.isinf(self.patience) and bool((self.waited >= self.patience).all())

    @torch.no_grad()
    def finish(self, history: History) -> None:
        """Give the networks the weights to keep."""
        if self.validation is None:
            self.mean.keep()
        else:
            self.stack.weights.copy_(self.weights)
            history.best_epoch = self.epoch


def _n_threads(stack: Stack, batches: Batches) -> int:
    widest = max(math.prod(shape[1:]) for shape in stack.shapes.values())
    is_small = len(stack.weights) * batches.batch_size * widest < _SMALL
    return 1 if is_small else torch.get_num_threads()
