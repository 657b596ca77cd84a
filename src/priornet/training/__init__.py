"""Training of many networks at once: loop, batches, optimiser, schedules, averages, losses."""

from priornet.training import objectives
from priornet.training.batches import Batch, Batches, Rows
from priornet.training.device import Graphed, at_most, available_cores, on_stream
from priornet.training.loop import History, Loss, Tick, Validation, fit
from priornet.training.objectives import linear_ramp, temperature
from priornet.training.optimiser import StackedAdam, WeightAverage, cosine

__all__ = [
    "Batch",
    "Batches",
    "Graphed",
    "History",
    "Loss",
    "Rows",
    "StackedAdam",
    "Tick",
    "Validation",
    "WeightAverage",
    "at_most",
    "available_cores",
    "cosine",
    "fit",
    "linear_ramp",
    "objectives",
    "on_stream",
    "temperature",
]
