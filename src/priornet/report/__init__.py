"""Reports and figures: evaluations and results in, HTML pages and Matplotlib axes out.

Nothing here shows a window or keeps global state. Each name loads what it needs on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from priornet.report import synthetic
    from priornet.report.comparison import write_comparison
    from priornet.report.evaluation import Evaluation, evaluate
    from priornet.report.html import write_report

__all__ = ["Evaluation", "evaluate", "synthetic", "write_comparison", "write_report"]

_HOME = {
    "Evaluation": "evaluation",
    "evaluate": "evaluation",
    "write_comparison": "comparison",
    "write_report": "html",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module
