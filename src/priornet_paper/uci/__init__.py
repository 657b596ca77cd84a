"""The paper's experiment on UCI tables, with its protocol and with our own recipe."""

from priornet_paper.uci.config import (
    METHODS,
    PRESETS,
    Beyond,
    Paper,
    config_for,
    usual_methods,
)
from priornet_paper.uci.others import with_others
from priornet_paper.uci.run import Request, file_name, finished, run, run_all

__all__ = [
    "METHODS",
    "PRESETS",
    "Beyond",
    "Paper",
    "Request",
    "config_for",
    "file_name",
    "finished",
    "run",
    "run_all",
    "usual_methods",
    "with_others",
]
