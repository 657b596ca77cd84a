"""Training of many networks at once: loop, batches, optimiser, schedules, averages, losses."""

from priornet.training.adam import StackedAdam
from priornet.training.batches import Batch, Batches, Rows
from priornet.training.loop import History, Loss, Tick, Validation, fit

__all__ = [
    "Batch",
    "Batches",
    "History",
    "Loss",
    "Rows",
    "StackedAdam",
    "Tick",
    "Validation",
    "fit",
]
