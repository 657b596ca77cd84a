"""The paper's experiment on UCI tables, by its protocol and with the estimators' defaults.

Each name is imported when it is first used.

Example:
    >>> from priornet_paper.uci import Experiment, run
    >>> run(Experiment(["boston"], preset="beyond", methods=["ENSM", "EnD2"]))  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet_paper.uci.config import (
        METHODS,
        PRESETS,
        Defaults,
        Paper,
        config_for,
        default_methods,
    )
    from priornet_paper.uci.experiment import Experiment, run
    from priornet_paper.uci.jobs import Request, run_tables

__all__ = [
    "METHODS",
    "PRESETS",
    "Defaults",
    "Experiment",
    "Paper",
    "Request",
    "config_for",
    "default_methods",
    "run",
    "run_tables",
]

_HOMES = {
    "METHODS": "config",
    "PRESETS": "config",
    "Defaults": "config",
    "Experiment": "experiment",
    "Paper": "config",
    "Request": "jobs",
    "config_for": "config",
    "default_methods": "config",
    "run": "experiment",
    "run_tables": "jobs",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
