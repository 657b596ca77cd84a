"""Draw evaluations and results: HTML pages and Matplotlib axes. Nothing is computed here.

Nothing here shows a window or keeps global state. Each name loads what it needs on first use.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.report import curves
    from priornet.report.comparison import write_comparison
    from priornet.report.figures import GREY, TEXT, tidy, write_figure
    from priornet.report.html import write_report

__all__ = [
    "GREY",
    "TEXT",
    "curves",
    "tidy",
    "write_comparison",
    "write_figure",
    "write_report",
]

_HOMES = {
    **dict.fromkeys(("GREY", "TEXT", "tidy"), "figures"),
    "curves": "curves",
    "write_comparison": "comparison",
    "write_figure": "figures",
    "write_report": "html",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
