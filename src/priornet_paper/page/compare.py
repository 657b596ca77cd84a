"""Arithmetic of the page: differences, what counts as a miss, and whether a goal holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from priornet_paper.page.numbers import Number

__all__ = [
    "FAILS",
    "HOLDS",
    "MARGIN",
    "NOT_RUN",
    "ROUNDING",
    "UNFINISHED",
    "Goal",
    "Tally",
    "difference_in_errors",
    "is_far_below",
    "is_worse",
    "paired",
    "paired_ratio",
    "pooled",
    "state_of",
    "tally",
]

ROUNDING = 1e-9
"""What two numbers may differ by and still count as equal."""
FAILS, NOT_RUN, UNFINISHED, HOLDS = "**✗ missed**", "not run", "not run in full", "✓ reached"
"""States of a goal, the worst first."""
MOST_ERRORS = 2.0
"""Combined standard errors by which a lower-is-better metric may lie above the paper's."""
MARGIN = 0.08
"""How far a PRR or an AUC may lie below the paper's."""


class Goal(NamedTuple):
    """A line of the summary: what was wanted, what was found, and whether it holds."""

    wanted: str
    found: str
    state: str
    caveat: str = ""
    """Rule or settings that were changed after its scores had been seen."""

    @classmethod
    def counted(cls, wanted: str, count: Tally, needed: int, more: str = "") -> Goal:
        """A goal about a number of cells, with more counts of the same cells."""
        found = f"{count.good} of {count.measured}{more}" if count.measured else ""
        return cls(wanted, found, state_of(count, needed))

    def after_scores(self, caveat: str) -> Goal:
        """The same with its caveat, where something was found."""
        return self._replace(caveat=caveat) if self.found else self


class Tally(NamedTuple):
    """How many cells are good, how many have been measured, how many there should be."""

    good: int
    measured: int
    total: int


def difference_in_errors(ours: Number, theirs: Number) -> float:
    """How far ours lies above theirs, in standard errors of the difference.

    Example:
        >>> difference_in_errors(Number(3.5, 0.3), Number(3.0, 0.4))
        1.0
    """
    gap = ours.mean - theirs.mean
    error = math.hypot(ours.error or 0.0, theirs.error or 0.0)
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if gap else 0.0


def is_worse(ours: Number, theirs: Number) -> bool:
    """Whether a metric of which less is better is worse by more than two combined errors."""
    return difference_in_errors(ours, theirs) > MOST_ERRORS + ROUNDING


def is_far_below(ours: Number, theirs: Number, margin: float = MARGIN) -> bool:
    """Whether a metric of which more is better falls short by more than the margin."""
    return ours.mean < theirs.mean - margin - ROUNDING


def pooled(numbers: Sequence[Number]) -> Number:
    """One number from runs with different folds: over all of them, as if they were independent.

    Example:
        >>> pooled([Number(1.0, 1.0, (0.0, 2.0)), Number(4.0, 1.0, (3.0, 5.0))]).mean
        2.5
    """
    if len(numbers) == 1:
        return numbers[0]
    values = [value for number in numbers for value in number.values]
    if len(values) < 2 or not all(number.values for number in numbers):
        raise ValueError("numbers of several runs need the values of their folds.")
    centre = math.fsum(values) / len(values)
    spread = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return Number(centre, math.sqrt(spread / len(values)), tuple(values))


def paired(ours: Number, theirs: Number) -> Number:
    """Mean difference, with its standard error over folds where both have the same folds."""
    gap = ours.mean - theirs.mean
    if len(ours.values) != len(theirs.values) or len(ours.values) < 2:
        return Number(gap)
    gaps = [a - b for a, b in zip(ours.values, theirs.values, strict=True)]
    centre = math.fsum(gaps) / len(gaps)
    spread = math.fsum((g - centre) ** 2 for g in gaps) / (len(gaps) - 1)
    return Number(gap, math.sqrt(spread / len(gaps)), tuple(gaps))


def paired_ratio(ours: Number, theirs: Number) -> Number:
    """Ratio of the means, with the error of the paired difference put on the same scale."""
    gap = paired(ours, theirs)
    error = None if gap.error is None else gap.error / abs(theirs.mean)
    return Number(ours.mean / theirs.mean, error)


def tally(cells: Iterable[bool | None]) -> Tally:
    """Count cells that are good, bad, or not measured (None)."""
    listed = list(cells)
    measured = [cell for cell in listed if cell is not None]
    return Tally(sum(measured), len(measured), len(listed))


def state_of(count: Tally, needed: int) -> str:
    """Whether enough cells are good: what has not been measured may still turn out either way."""
    if count.measured == 0:
        return NOT_RUN
    if count.good >= needed:
        return HOLDS
    if count.good + count.total - count.measured < needed:
        return FAILS
    return UNFINISHED
