"""The tables of the paper: seven regression tables, and two with out-of-domain inputs for them.

Nothing is downloaded on import. Each name is imported when it is first used, and reading an
``.npz`` copy of a table needs NumPy alone.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet_paper.uci.data.protocol import canonical_splits, ood_inputs, write_splits
    from priornet_paper.uci.data.registry import DATASETS, Dataset, UciError
    from priornet_paper.uci.data.tables import UciTable, load_uci, to_npz

__all__ = [
    "DATASETS",
    "Dataset",
    "UciError",
    "UciTable",
    "canonical_splits",
    "load_uci",
    "ood_inputs",
    "to_npz",
    "write_splits",
]

_HOMES = {
    "DATASETS": "registry",
    "Dataset": "registry",
    "UciError": "registry",
    "UciTable": "tables",
    "canonical_splits": "protocol",
    "load_uci": "tables",
    "ood_inputs": "protocol",
    "to_npz": "tables",
    "write_splits": "protocol",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
