"""Steps with a preprocessor that several tests of tables share."""

from __future__ import annotations

from typing import Any

from priornet.tables.encoding import Tally, Unseen
from priornet.tables.preprocessing import TablePreprocessor


def transformed(preprocessor: TablePreprocessor, *tables: Any) -> tuple[Any, Tally]:
    """Return the matrix of the last table, and what training never had in any of them."""
    matrix, tally = None, Tally()
    for table in tables:
        unseen = Unseen()
        matrix = preprocessor.transform(table, unseen=unseen)
        tally.count(unseen)
    return matrix, tally
