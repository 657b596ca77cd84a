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
from priornet.training.optimiser import StackedAdam, WeightAverage, cosine
from priornet.training.steps import Replay, Steps, at_most, flushed

Loss: TypeAlias = Callable[[Any, Batch, Any], Tensor]
"""``(prediction, batch, share of the epochs done) -> loss per row (S, B)``, not yet weighted.

The share is a number, or on CUDA a tensor without dimensions; the schedules take both. Any function
that autograd can differentiate will do. The result of a function of :mod:`priornet.losses` for one
target is fastest, for its gradient is known already.
"""

Validation: TypeAlias = Callable[[Stack], Tensor]
"""``stack -> loss per network (S,)`` on rows that are held out."""

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
        patience: A network stops after so many epochs without a better validation loss, and
            training ends when all have stopped; None to train to the end.
        average: Epochs over which weights are averaged; the averages are validated and kept instead
            of the weights. 0 for none.
        schedule: From the share of training done to the factor of the learning rates.
        progress: Called after every epoch.
        graph: On CUDA, replay steps from a CUDA graph. A loss that waits for the device
            (``.item()``, ``if tensor:``) needs False.
    """
    started = time.perf_counter()
    history = History()
    keeper = None if validation is None else _Keeper(stack, patience)
    mean = WeightAverage({"weights": stack.weights}, average * batches.epoch_length)

    steps = _steps(stack, loss, batches, optimizer, mean, graph and stack.weights.is_cuda)
    with at_most(_n_threads(stack, batches)), steps.on_stream():
        for epoch in range(epochs):

            def rate(done: float, epoch: int = epoch) -> float:
                return schedule((epoch + done) / epochs)

            with flushed():
                history.train.append(steps.epoch(epoch / epochs, rate))
            if keeper is not None and validation is not None:
                with torch.no_grad(), mean.in_place():
                    history.validation.append(validation(stack))
                    keeper.look(history.validation[-1], epoch + 1)
            if progress is not None:
                last = (history.validation or history.train)[-1]
                best = None if keeper is None else float(keeper.best.mean())
                progress(Tick(epoch + 1, epochs, float(last.mean()), best))
            if keeper is not None and keeper.all_stopped:
                break
        if keeper is not None:
            history.best_epoch = keeper.restore()
        else:
            mean.keep()
    history.seconds = time.perf_counter() - started
    return history


def _steps(
    stack: Stack,
    loss: Loss,
    batches: Batches,
    optimizer: StackedAdam,
    mean: WeightAverage,
    graph: bool,
) -> Steps:
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


class _Keeper:
    """Best weights of every network so far, and epochs without improvement."""

    def __init__(self, stack: Stack, patience: int | None) -> None:
        self.stack = stack
        self.patience = math.inf if patience is None else patience
        self.weights = stack.weights.detach().clone()
        self.best = stack.weights.new_full((stack.n_networks,), math.inf)
        self.epoch = torch.zeros(stack.n_networks, dtype=torch.long, device=self.best.device)
        self.waited = torch.zeros_like(self.epoch)

    def look(self, values: Tensor, epoch: int) -> None:
        """Keep the weights of networks that improved; a stopped network keeps its old ones."""
        better = (values < self.best) & (self.waited < self.patience)
        self.best = torch.where(better, values, self.best)
        self.epoch.masked_fill_(better, epoch)
        self.waited = torch.where(better, 0, self.waited + 1)
        self.weights.copy_(torch.where(better.unsqueeze(-1), self.stack.weights, self.weights))

    @property
    def all_stopped(self) -> bool:
        """Tell if every network has stopped."""
        return not math.isinf(self.patience) and bool((self.waited >= self.patience).all())

    @torch.no_grad()
    def restore(self) -> Tensor:
        """Restore every network's best weights, and return their epochs."""
        self.stack.weights.copy_(self.weights)
        return self.epoch


def _n_threads(stack: Stack, batches: Batches) -> int:
    widest = max(math.prod(shape[1:]) for shape in stack.shapes.values())
    is_small = stack.n_networks * batches.batch_size * widest < _SMALL
    return 1 if is_small else torch.get_num_threads()
