"""Raw columns in, a matrix out. No network lives here.

A column goes one way: ``read`` (a file becomes batches or a frame; ``formats`` cuts CSV and
Parquet), ``raw`` (a table of any kind becomes columns), ``values`` (numbers or labels),
``learning`` (training learns the column), ``encoding`` (the column that training learnt reads later
values as training did), ``column_summaries`` (a description for people) and ``preprocessing`` (all
columns become the matrix). ``write`` writes tables; ``factor_analysis`` draws out-of-domain rows;
``boosting`` fits boosted trees out of fold, ``trees`` keeps and reads them.

Each name is imported when it is first used: reading a table needs no torch.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.tables import diabetes
    from priornet.tables.boosting import fit_trees
    from priornet.tables.factor_analysis import FactorAnalysisGenerator
    from priornet.tables.preprocessing import TablePreprocessor
    from priornet.tables.read import TableError, TableReader
    from priornet.tables.trees import Trees
    from priornet.tables.write import TableWriter

__all__ = [
    "FactorAnalysisGenerator",
    "TableError",
    "TablePreprocessor",
    "TableReader",
    "TableWriter",
    "Trees",
    "diabetes",
    "fit_trees",
]

_HOMES = {
    "FactorAnalysisGenerator": "factor_analysis",
    "TableError": "read",
    "TablePreprocessor": "preprocessing",
    "TableReader": "read",
    "TableWriter": "write",
    "Trees": "trees",
    "diabetes": "diabetes",
    "fit_trees": "boosting",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
