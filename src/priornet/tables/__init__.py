"""Raw columns in, a matrix out: read, write and encode tables. No network lives here.

Each name is imported when it is first used: reading a table needs no torch.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.tables import diabetes, files, generators, preprocessing, synthetic
    from priornet.tables.generators import FactorAnalysisGenerator
    from priornet.tables.preprocessing import TablePreprocessor

__all__ = [
    "FactorAnalysisGenerator",
    "TablePreprocessor",
    "diabetes",
    "files",
    "generators",
    "preprocessing",
    "synthetic",
]

_HOMES = {
    "FactorAnalysisGenerator": "generators",
    "TablePreprocessor": "preprocessing",
    "diabetes": "diabetes",
    "files": "files",
    "generators": "generators",
    "preprocessing": "preprocessing",
    "synthetic": "synthetic",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
