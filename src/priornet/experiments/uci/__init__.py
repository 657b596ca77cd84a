"""The paper's experiment on UCI tables, with its protocol and with our own recipe."""

from priornet.experiments.uci.config import METHODS, PRESETS, Beyond, Paper, config_for
from priornet.experiments.uci.run import file_name, finished, run

__all__ = [
    "METHODS",
    "PRESETS",
    "Beyond",
    "Paper",
    "config_for",
    "file_name",
    "finished",
    "run",
]
