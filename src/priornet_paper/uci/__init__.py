"""The paper's experiment on UCI tables, with its protocol and with one of the library's own.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet_paper.uci.config import (
        METHODS,
        PRESETS,
        Beyond,
        Paper,
        config_for,
        usual_methods,
    )
    from priornet_paper.uci.others import with_others
    from priornet_paper.uci.run import Request, file_name, finished, run_all

__all__ = [
    "METHODS",
    "PRESETS",
    "Beyond",
    "Paper",
    "Request",
    "config_for",
    "file_name",
    "finished",
    "run_all",
    "usual_methods",
    "with_others",
]

_HOMES = {
    "METHODS": "config",
    "PRESETS": "config",
    "Beyond": "config",
    "Paper": "config",
    "Request": "run",
    "config_for": "config",
    "file_name": "run",
    "finished": "run",
    "run_all": "run",
    "usual_methods": "config",
    "with_others": "others",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
