"""What rows hold that training never had: the reasons why no model can vouch for them.

A row is without grounds where

- a value is missing in a column that was complete in training;
- a label is new to a column whose training labels are all known (none were pooled);
- a number lies further outside the training range than that range is wide;
- a number is neither 0 nor 1 where training had no others;
- the row lacks more values than 99 of 100 training rows, or has no value at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tally", "Unseen", "most_missing"]

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

RARE = 0.01
"""A row lacks too much where a smaller share of the training rows lacks as many values."""


def most_missing(n_missing: NDArray[np.int64], weight: FloatArray | None) -> int:
    """Return how many values a row may lack: as many as 1 % of the training rows lack, or more.

    Args:
        n_missing: Missing values of each training row.
        weight: Weight per row.
    """
    mass = np.bincount(n_missing, weight)
    at_least = np.cumsum(mass[::-1])[::-1] / mass.sum()
    return int(np.flatnonzero(at_least >= RARE * (1 - 1e-9))[-1])


@dataclass
class Unseen:
    """Rows of one table with what training never had, column by column.

    Each attribute but the last two holds a mask of the rows, ``(n_rows,)``, by column.

    Attributes:
        absent: The value is missing, which it never was in training.
        unknown: The label is new.
        far: The number lies far outside the training range.
        missing: The value is missing, as it was in some rows of training.
        n_rows: Rows of the table.
        most_missing: More missing values than these are too many for a row.
    """

    absent: dict[str, Mask] = field(default_factory=dict[str, Mask])
    unknown: dict[str, Mask] = field(default_factory=dict[str, Mask])
    far: dict[str, Mask] = field(default_factory=dict[str, Mask])
    missing: dict[str, Mask] = field(default_factory=dict[str, Mask])
    n_rows: int = 0
    most_missing: int = 0

    def note_missing(self, column: str | int, rows: Mask, *, is_new: bool) -> None:
        """Remember where the values of a column are missing."""
        if rows.any():
            (self.absent if is_new else self.missing)[str(column)] = rows

    def note_unknown(self, column: str | int, rows: Mask) -> None:
        """Remember where a column has labels that training had not."""
        if rows.any():
            self.unknown[str(column)] = rows

    def note_far(
        self,
        column: str | int,
        values: FloatArray,
        reach: tuple[float, float],
        *,
        is_whole: bool = False,
    ) -> None:
        """Remember where the numbers of a column are out of reach; nan never is.

        Args:
            column: Its name or number.
            values: Its numbers.
            reach: The least and the largest number within it.
            is_whole: Whether only whole numbers are.
        """
        rows = (values < reach[0]) | (values > reach[1])
        if is_whole:
            rows |= values > np.floor(values)
        if rows.any():
            self.far[str(column)] = rows

    @property
    def bare(self) -> Mask:
        """Rows that lack too many of the values that training lacked too, ``(n_rows,)``."""
        count = np.zeros(self.n_rows, np.int64)
        for rows in self.missing.values():
            count += rows
        return count > self.most_missing

    @property
    def rows(self) -> Mask:
        """Rows with anything that training never had, ``(n_rows,)``."""
        found = self.bare
        for kind in (self.absent, self.unknown, self.far):
            for rows in kind.values():
                found |= rows
        return found

    @property
    def columns(self) -> NDArray[np.object_]:
        """Names of the columns behind that in each row, joined by ``"; "``; empty for most rows."""
        found = np.full(self.n_rows, "", object)
        bare = self.bare
        names = [*self.absent, *self.unknown, *self.far, *(self.missing if bare.any() else ())]
        for name in dict.fromkeys(names):
            rows = bare & self.missing.get(name, False)
            for kind in (self.absent, self.unknown, self.far):
                rows = rows | kind.get(name, False)
            for i in np.flatnonzero(rows):
                found[i] = f"{found[i]}; {name}" if found[i] else name
        return found


@dataclass
class Tally:
    """Counts of rows with what training never had, over any number of tables.

    Attributes:
        n_rows: Rows seen.
        imputed: Missing values per column in which training had none.
        unknown: Labels per column that training had not.
        far: Numbers per column that lie far outside the training range.
        bare: Rows that lack too many values.
        unseen: Rows with any of these.
    """

    n_rows: int = 0
    imputed: dict[str, int] = field(default_factory=dict[str, int])
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    far: dict[str, int] = field(default_factory=dict[str, int])
    bare: int = 0
    unseen: int = 0

    def count(self, met: Unseen) -> None:
        """Add the rows of a table."""
        absent, unknown, far = (
            {name: int(rows.sum()) for name, rows in kind.items()}
            for kind in (met.absent, met.unknown, met.far)
        )
        bare, unseen = int(met.bare.sum()), int(met.rows.sum())
        self.merge(Tally(met.n_rows, absent, unknown, far, bare, unseen))

    def merge(self, other: Tally) -> None:
        """Add what another one counted."""
        self.n_rows += other.n_rows
        self.bare += other.bare
        self.unseen += other.unseen
        pairs = (
            (self.imputed, other.imputed),
            (self.unknown, other.unknown),
            (self.far, other.far),
        )
        for mine, theirs in pairs:
            for column, count in theirs.items():
                mine[column] = mine.get(column, 0) + count
