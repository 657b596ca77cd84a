"""One training of a stack on the rows of a table, with each network's own validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from priornet.nn.stacked import Stack
from priornet.notices import warn_user
from priornet.training.adam import StackedAdam
from priornet.training.batches import Batches, Rows
from priornet.training.loop import History, Loss, fit
from priornet.training.progress import progress_bar

__all__ = ["Auto", "Plan", "TrainingSettings", "predictive_nll", "train_stack"]

Auto = Literal["auto"]

_MOST_VALIDATION = 4000  # rows per network; more would cost time and tell nothing new


@dataclass(frozen=True)
class Plan:
    """Settings of one training, all decided."""

    epochs: int
    batch_size: int
    patience: int | None
    """Epochs without improvement after which a network stops; None without validation rows."""


@dataclass(frozen=True)
class TrainingSettings:
    """How to train, whatever the network and the loss."""

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


def train_stack(
    stack: Stack,
    data: Rows,
    rows: Sequence[Tensor],
    held: Sequence[Tensor] | None,
    loss: Loss,
    held_loss: Loss,
    seeds: Sequence[int],
    settings: TrainingSettings,
    extra: Sequence[Tensor] | None = None,
    epoch_rows: int | None = None,
) -> dict[str, Any]:
    """Train, and keep each network's best weights by the loss of the rows it holds out.

    Args:
        stack: The networks.
        data: All rows.
        rows: Row numbers that each network trains on.
        held: Row numbers that each network validates on; None to train to the end.
        loss: Training loss per row.
        held_loss: Validation loss per row.
        seeds: For the order of rows, one per network.
        settings: The settings.
        extra: Row numbers of out-of-domain inputs for each network.
        epoch_rows: Rows that make an epoch, where they are not all of a network's.

    Returns:
        What happened, ready for JSON.
    """
    plan = settings.plan
    size = plan.batch_size
    batches = Batches(data, rows, seeds, size, extra, size if extra is not None else 0, epoch_rows)
    optimizer = StackedAdam(
        stack.weights, settings.learning_rate, settings.weight_decay, clip=settings.clip
    )
    validation = None if held is None else _validation(data, held, held_loss)
    with progress_bar(settings.what, settings.verbose) as progress:
        history = fit(
            stack,
            loss,
            batches,
            optimizer,
            epochs=plan.epochs,
            validation=validation,
            patience=plan.patience,
            average=settings.average,
            progress=progress,
        )
    _warn_of_divergence(history)
    return {
        "n_rows": len(rows[0]),
        "epochs": history.n_epochs,
        "batch_size": size,
        "best_epochs": None if history.best_epoch is None else history.best_epoch.tolist(),
        "train_loss": [float(f"{value:.6g}") for value in history.train[-1].tolist()],
        "validation_loss": None if held is None else _lowest(history),
        "seconds": round(history.seconds, 3),
    }


def _warn_of_divergence(history: History) -> None:
    """Say that networks have learnt nothing: no loss of theirs on held-out rows was a number."""
    losses = torch.stack(history.validation or history.train[-1:])
    n_diverged = int((~losses.isfinite()).all(0).sum())
    if n_diverged:
        warn_user(
            f"training diverged in {n_diverged} of {losses.shape[1]} networks, which have learnt "
            "nothing: set a smaller `learning_rate`, and fit again."
        )


def _lowest(history: History) -> list[float]:
    best = torch.stack(history.validation).min(0).values
    return [float(f"{value:.6g}") for value in best.tolist()]


def _validation(data: Rows, held: Sequence[Tensor], loss: Loss) -> Any:
    length = min(min(len(rows) for rows in held), _MOST_VALIDATION)
    at = torch.stack([rows[:length] for rows in held]).to(data.inputs.device)
    batches = Batches(
        Rows(
            data.inputs[at].flatten(0, 1), data.targets[at].flatten(0, 1), data.weight[at].flatten()
        ),
        [torch.arange(i * length, (i + 1) * length) for i in range(len(held))],
        list(range(len(held))),
        length,  # one batch holds everything
    )
    (whole,) = batches.epoch()

    def validation(stack: Stack) -> Tensor:
        per_row = loss(stack(whole.inputs), whole, 1.0)
        return (per_row * whole.weight).sum(-1) / whole.weight.sum(-1)

    return validation


def predictive_nll(prediction: Any, batch: Any, _: float) -> Tensor:
    """NLL of the predictive: a validation loss that every kind of prediction has."""
    n_targets = prediction.event_shape[0]
    return -prediction.predictive().log_prob(batch.targets[..., :n_targets])
