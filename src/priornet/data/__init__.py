"""Data: tables and what becomes of their columns, out-of-domain inputs, the paper's tasks.

Each name is imported when it is first used: reading a table needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from priornet.data import generators, preprocessing, synthetic, tables, uci
    from priornet.data.generators import FactorAnalysisGenerator
    from priornet.data.preprocessing import TablePreprocessor

__all__ = [
    "FactorAnalysisGenerator",
    "TablePreprocessor",
    "generators",
    "preprocessing",
    "synthetic",
    "tables",
    "uci",
]

_HOME = {"FactorAnalysisGenerator": "generators", "TablePreprocessor": "preprocessing"}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module
