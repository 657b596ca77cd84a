"""The tables of the paper: seven regression sets, and two whose inputs are foreign to them.

Nothing is downloaded on import. Each name is imported when it is first used, and reading an
``.npz`` copy of a table needs NumPy alone.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet_paper.uci.data.foreign import foreign_inputs
    from priornet_paper.uci.data.loading import UciTable, load_uci, to_npz
    from priornet_paper.uci.data.registry import DATASETS, Dataset, UciError
    from priornet_paper.uci.data.splits import canonical_splits, write_splits

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

_HOMES = {
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
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
