"""Training of many networks at once: loop, batches, optimiser, schedules, averages, losses."""

from priornet.training import objectives
from priornet.training.adam import StackedAdam
from priornet.training.averaging import WeightAverage
from priornet.training.batches import Batch, Batches, Rows
from priornet.training.loop import History, Loss, Tick, Validation, fit
from priornet.training.replay import Graphed, on_stream
from priornet.training.schedules import cosine, linear_ramp, temperature
from priornet.training.threads import at_most, available_cores

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
