"""What ``priornet predict`` adds to each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from priornet.cli.errors import InputError
from priornet.estimators.prediction import ENTROPIES, PER_ROW, PER_TARGET, PREFIX, added_names
from priornet.tables.unseen import Tally

if TYPE_CHECKING:
    import pyarrow as pa

    from priornet.tables.preprocessing import RawColumn

__all__ = ["Scorer", "is_scored"]


def is_scored(names: Sequence[str]) -> bool:
    """Tell whether the columns of a table end in those that a :class:`Scorer` adds.

    Files of earlier versions count too: they lack ``unseen``.
    """
    for prefix in (PREFIX, ""):
        added = [name.removeprefix(prefix) if name.startswith(prefix) else "" for name in names]
        for last in ((), ENTROPIES):
            for per_row in (PER_ROW, PER_ROW[:-1]):
                end = [*per_row, *last]
                start = len(added) - len(end) - len(PER_TARGET)
                if start < 0 or added[start + len(PER_TARGET) :] != end:
                    continue
                suffix = added[start].removeprefix(PER_TARGET[0])  # of the last target, or none
                if added[start : -len(end)] == [f"{name}{suffix}" for name in PER_TARGET]:
                    return True
    return False


class Scorer:
    """Adds a model's columns to batches of rows.

    ``prediction``, ``lower`` and ``upper`` and the standard deviations ``total``, ``data`` and
    ``knowledge`` are in units of the target (total² = data² + knowledge²); with several targets
    each has the target's name behind it. ``in_domain`` is the share of reference rows at least as
    uncertain, empty for a model without knowledge uncertainty; ``verdict`` is a word; ``unseen``
    names the columns in which a row has what training never had, empty for most rows.

    Args:
        model: A fitted estimator.
        coverage: Of the interval from ``lower`` to ``upper``.
        method: Where the interval comes from.
        entropies: Whether to add ``total_entropy``, ``data_entropy``, ``mutual_information`` and
            ``epkl``, in nats.
        taken: Names that the table has; where one of ours is among them, all of ours begin with
            ``priornet_``.

    Attributes:
        names: The columns that it adds.
        prefix: What they begin with.
        targets: What the model predicts.
        columns: What training learnt about the columns that it reads.
        plain: Those that hold plain numbers: no dates, no decimal commas.
    """

    def __init__(
        self, model: Any, coverage: float, method: str, *, entropies: bool, taken: Sequence[str]
    ) -> None:
        self._fitted, self._entropies = model.fitted_, entropies
        self._interval: Any = {"coverage": coverage, "method": method}
        self.targets: tuple[str, ...] = tuple(self._fitted.targets.names)
        self.columns: tuple[RawColumn, ...] = self._fitted.preprocessor.columns_
        self.plain = [str(column.name) for column in self.columns if column.is_plain]
        try:
            self.names = added_names(self.targets, taken, entropies=entropies)
        except ValueError as error:
            raise InputError(str(error)) from error
        self.prefix = PREFIX if self.names[0].startswith(PREFIX) else ""

    def score(self, rows: Any, tally: Tally) -> list[pa.Array]:
        """Return the added columns for some rows, in the order of :attr:`names`.

        Args:
            rows: Some of the table.
            tally: Counts what training never had.
        """
        import pyarrow as pa

        found = self._fitted.predict(rows, dtype=np.float32, **self._interval)
        tally.count(found.unseen)
        n_numbers = len(self.targets) * len(PER_TARGET)
        columns = found.columns(entropies=self._entropies)
        in_domain, verdict, unseen = columns[n_numbers : n_numbers + len(PER_ROW)]
        return [
            *(pa.array(values) for values in columns[:n_numbers]),
            pa.array(in_domain, from_pandas=True),  # nan: no answer
            pa.array(verdict, pa.string()),
            pa.array(unseen, pa.string(), mask=~found.unseen.rows),
            *(
                pa.nulls(len(verdict), pa.float64()) if values is None else pa.array(values)
                for values in columns[n_numbers + len(PER_ROW) :]
            ),
        ]
