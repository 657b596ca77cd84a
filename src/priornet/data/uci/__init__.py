"""The tables of the paper: seven regression sets, and two whose inputs are foreign to them.

Nothing is downloaded on import. Each name is imported when it is first used, and reading an
``.npz`` copy of a table needs NumPy alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from priornet.data.uci.foreign import foreign_inputs
    from priornet.data.uci.loading import UciTable, load_uci, to_npz
    from priornet.data.uci.registry import DATASETS, Dataset, UciError
    from priornet.data.uci.splits import canonical_splits, write_splits

__all__ = [
    "DATASETS",
    "Dataset",
    "UciError",
    "UciTable",
    "canonical_splits",
    "foreign_inputs",
    "load_uci",
    "to_npz",
    "write_splits",
]

_HOME = {
    "DATASETS": "registry",
    "Dataset": "registry",
    "UciError": "registry",
    "UciTable": "loading",
    "canonical_splits": "splits",
    "foreign_inputs": "foreign",
    "load_uci": "loading",
    "to_npz": "loading",
    "write_splits": "splits",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
