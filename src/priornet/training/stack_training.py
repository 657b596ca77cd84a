"""One training of a stack on the rows of a table, with each network's own validation rows."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from priornet.messages import warn_user
from priornet.nn.stacked import Stack
from priornet.training.batches import Batches, Rows
from priornet.training.loop import History, Loss, Tick, Validation, fit
from priornet.training.optimiser import StackedAdam

Auto = Literal["auto"]

SMALL = 40
"""Networks with fewer training rows see all of them at every step."""
# Fewer rows than these say nothing about the best epoch, and a network that trains on is sure of
# nonsense; but at most a share of the table.
_LEAST_HELD, _MOST_HELD = 4, 0.3
_SMOOTHED = 9  # epochs of which the progress bar shows the median loss
_MOST_VALIDATION = 4000  # rows per network; more would cost time and tell nothing new


@dataclass(frozen=True)
class Plan:
    """Length of one training, all decided."""

    epochs: int
    batch_size: int
    patience: int | None
    """Epochs without improvement after which a network stops; None without validation rows."""


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training, for any network and any loss."""

    learning_rate: float
    weight_decay: float
    plan: Plan
    clip: float = 10.0
    """Longest gradient of a network."""
    average: float = 1.0
    """Epochs over which weights are averaged: a single network gains 0.05 nats on UCI tables."""
    verbose: bool = False
    what: str = "training"
    """Shown beside the progress bar."""


@dataclass(frozen=True)
class StackRows:
    """Rows that the networks of a stack learn from; the lists hold row numbers, per network."""

    data: Rows
    train: Sequence[Tensor]
    held: Sequence[Tensor] | None = None
    """Validation rows; None to train to the end."""
    ood: Sequence[Tensor] | None = None
    """Out-of-domain inputs for every step."""
    per_epoch: int | None = None
    """Rows that make an epoch, if not all of a network's training rows."""


def make_plan(
    n_rows: int, epochs: int | Auto, batch_size: int | Auto, patience: int | None
) -> Plan:
    """Decide the length of a training.

    ``"auto"``: batches of a thirtieth of the rows, 32 to 512; some 8000 steps, in 40 to 250 epochs.
    """
    if n_rows < SMALL:
        # One batch of everything: weighting a row is then the same as repeating it.
        size = SMALL
    elif batch_size == "auto":
        size = min(max(2 ** round(math.log2(n_rows / 30)), 32), 512)
    else:
        size = batch_size
    n_epochs = min(max(round(8000 * size / n_rows), 40), 250) if epochs == "auto" else epochs
    return Plan(n_epochs, size, patience)


def network_seeds(rng: np.random.RandomState, n: int) -> list[int]:
    """Draw a seed for each network."""
    return rng.randint(0, 2**31 - 1, size=n).tolist()


def validation_split(
    rows: Tensor, fraction: float, seeds: Sequence[int]
) -> tuple[list[Tensor], list[Tensor] | None]:
    """Split training rows anew for each network, into training and validation rows.

    Every network holds out others, so that together they have trained on every row. Of few rows it
    holds out more than the fraction: 4, or three in ten.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"`validation_fraction` must lie in [0, 1); got {fraction:g}.")
    n_held = round(len(rows) * fraction)
    if fraction > 0:
        n_held = max(n_held, min(_LEAST_HELD, int(_MOST_HELD * len(rows))))
    if n_held == 0:
        return [rows] * len(seeds), None
    drawn = (torch.Generator().manual_seed(seed + 1) for seed in seeds)
    orders = [torch.randperm(len(rows), generator=generator) for generator in drawn]
    train = [rows[order[n_held:].sort().values] for order in orders]
    return train, [rows[order[:n_held]] for order in orders]


def train_stack(
    stack: Stack, rows: StackRows, loss: Loss, seeds: Sequence[int], settings: TrainingSettings
) -> dict[str, Any]:
    """Train, and keep each network's best weights by the likelihood of the rows it holds out.

    Args:
        stack: The networks.
        rows: Rows of each network.
        loss: Training loss per row.
        seeds: Seeds of the order of rows, one per network.
        settings: Settings for all networks.

    Returns:
        A summary of the training, ready for JSON.
    """
    plan, size = settings.plan, settings.plan.batch_size
    n_ood = size if rows.ood is not None else 0
    rate, decay = settings.learning_rate, settings.weight_decay
    optimizer = StackedAdam(stack.weights, rate, decay, clip=settings.clip)
    validation = None if rows.held is None else _validation(rows.data, rows.held)
    with progress_bar(settings.what, settings.verbose) as progress:
        history = fit(
            stack,
            loss,
            Batches(rows.data, rows.train, seeds, size, rows.ood, n_ood, rows.per_epoch),
            optimizer,
            epochs=plan.epochs,
            validation=validation,
            patience=plan.patience,
            average=settings.average,
            progress=progress,
        )
    return _summary(history, len(rows.train[0]), size)


def _validation(data: Rows, held: Sequence[Tensor]) -> Validation:
    """Make the NLL of the predictive, which every kind of prediction has, on held-out rows."""
    length = min(min(len(rows) for rows in held), _MOST_VALIDATION)
    at = torch.stack([rows[:length] for rows in held]).to(data.inputs.device)
    inputs, targets, weight = (part[at] for part in data)
    weight = weight * (1 / length)

    def validation(stack: Stack) -> Tensor:
        prediction = stack.answer(inputs)
        y = targets[..., : prediction.event_shape[0]]
        per_row = -prediction.predictive().log_prob(y)
        return (per_row * weight).sum(-1) / weight.sum(-1)

    return validation


def _summary(history: History, n_rows: int, batch_size: int) -> dict[str, Any]:
    """Summarise a training; warn of networks without a finite loss on held-out rows."""
    losses = torch.stack(history.validation or history.train[-1:])
    n_diverged = int((~losses.isfinite()).all(0).sum())
    if n_diverged:
        warn_user(
            f"training diverged in {n_diverged} of {losses.shape[1]} networks, which have learnt "
            "nothing: set a smaller `learning_rate`, and fit again."
        )
    return {
        "n_rows": n_rows,
        "epochs": history.n_epochs,
        "batch_size": batch_size,
        "best_epochs": None if history.best_epoch is None else history.best_epoch.tolist(),
        "train_loss": _rounded(history.train[-1]),
        "validation_loss": _rounded(losses.min(0).values) if history.validation else None,
        "seconds": round(history.seconds, 3),
    }


def _rounded(losses: Tensor) -> list[float]:
    return [float(f"{value:.6g}") for value in losses.tolist()]


_stages: ContextVar[tuple[Iterator[int], int] | None] = ContextVar("stages", default=None)


@contextmanager
def stages(n: int) -> Generator[None]:
    """Count the progress bars inside as the stages of one task: the first of ``n``, and so on."""
    token = _stages.set((itertools.count(1), n))
    try:
        yield
    finally:
        _stages.reset(token)


@contextmanager
def progress_bar(what: str, shown: bool = True) -> Generator[Callable[[Tick], None] | None]:
    """Show a bar with a training's name on standard error; give what feeds it, if it is shown.

    Beside the name stands the number of the stage: see :func:`stages`. The loss is the median of
    the last epochs, of held-out rows where there are any.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(20),
        TextColumn("epoch {task.completed:>4.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[loss]:<36}"),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    counted = _stages.get()
    if counted is not None and counted[1] > 1:
        what = f"{next(counted[0])} of {counted[1]}: {what}"
    losses: deque[float] = deque(maxlen=_SMOOTHED)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1, loss="")

        def report(tick: Tick) -> None:
            losses.append(tick.loss)
            loss = f"loss {median(losses):.4f}"
            if tick.best is not None:  # of the weights kept so far
                loss = f"validation {loss}, best {tick.best:.4f}"
            bar.update(task, total=tick.n_epochs, completed=tick.epoch, loss=loss)

        yield report
        bar.update(task, total=bar.tasks[task].completed)  # early stopping: no epochs are left
