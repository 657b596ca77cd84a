"""Sections of the page: their Markdown, their goals and misses, and our numbers beside others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from priornet_paper.page.numbers import Number, Scores
from priornet_paper.page.results import OWN, Notes, Results, Run

NOT_RUN = "not run"
INCOMPLETE = "not run on the full table"
ROUNDING = 1e-9
"""Difference up to which two numbers count as equal."""
FAILS, UNFINISHED, HOLDS = "**✗ missed**", "not run in full", "✓ reached"
"""States of a goal, beside ``NOT_RUN``."""
STATES = (FAILS, NOT_RUN, UNFINISHED, HOLDS)
"""All states, the worst first."""
MOST_ERRORS = 2.0
"""Combined standard errors by which a lower-is-better metric may lie above the paper's."""
MARGIN = 0.08
"""Distance by which a PRR or an AUC may lie below the paper's."""
UNEXPLAINED = "not explained yet"


class Goal(NamedTuple):
    """A line of the summary: what was wanted, what was found, and its state."""

    wanted: str
    found: str
    state: str
    caveat: str = ""
    """Rule or settings that were changed after its scores had been seen."""

    @classmethod
    def counted(cls, wanted: str, count: Tally, needed: int, more: str = "") -> Goal:
        """Make a goal about a number of cells, with more counts of the same cells."""
        found = f"{count.good} of {count.measured}{more}" if count.measured else ""
        return cls(wanted, found, state_of(count, needed))

    def after_scores(self, caveat: str) -> Goal:
        """Add a caveat if something was found."""
        return self._replace(caveat=caveat) if self.found else self


class Miss(NamedTuple):
    """A goal missed in one place: a key such as ``paper/boston/rmse/EnD2``, and the numbers."""

    key: str
    text: str


@dataclass
class Section:
    """Lines of Markdown, goals for the summary, and misses."""

    lines: list[str]
    goals: list[Goal] = field(default_factory=list[Goal])
    misses: list[Miss] = field(default_factory=list[Miss])


class Tally(NamedTuple):
    """Counts of cells: the good ones, the measured ones, all."""

    good: int
    measured: int
    total: int


def tally(cells: Iterable[bool | None]) -> Tally:
    """Count cells that are good, bad, or not measured (None)."""
    listed = list(cells)
    measured = [cell for cell in listed if cell is not None]
    return Tally(sum(measured), len(measured), len(listed))


def state_of(count: Tally, needed: int) -> str:
    """Tell if enough cells are good: a cell without a measurement may still turn out either way."""
    if count.measured == 0:
        return NOT_RUN
    if count.good >= needed:
        return HOLDS
    if count.good + count.total - count.measured < needed:
        return FAILS
    return UNFINISHED


def listing(misses: Sequence[Miss], notes: Notes) -> list[str]:
    """List every miss with its explanation; misses with the same one stand together."""
    groups: dict[str, list[str]] = {}
    for miss in misses:
        note = " ".join(notes.about(miss.key)) or UNEXPLAINED
        groups.setdefault(note, []).append(miss.text)
    lines: list[str] = []
    for note, texts in groups.items():
        lines += [f"- {note[:1].upper()}{note[1:].rstrip('.')}:", *(f"  - {t}" for t in texts)]
    return lines


# -- our number beside another -------------------------------------------------------------------


def difference_in_errors(ours: Number, theirs: Number) -> float:
    """Compute by how many standard errors of the difference our number lies above the other.

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
    """Tell if a lower-is-better metric is worse by more than two combined errors."""
    return difference_in_errors(ours, theirs) > MOST_ERRORS + ROUNDING


def is_far_below(ours: Number, theirs: Number, margin: float = MARGIN) -> bool:
    """Tell if a higher-is-better metric falls short by more than the margin."""
    return ours.mean < theirs.mean - margin - ROUNDING


def paired(ours: Number, theirs: Number) -> Number:
    """Compute the mean difference, with its standard error over folds if both have the same."""
    gap = ours.mean - theirs.mean
    if len(ours.values) != len(theirs.values) or len(ours.values) < 2:
        return Number(gap)
    gaps = tuple(a - b for a, b in zip(ours.values, theirs.values, strict=True))
    return Number(gap, _moments(gaps)[1], gaps)


def paired_ratio(ours: Number, theirs: Number) -> Number:
    """Compute the ratio of the means, with the error of the paired difference on its scale."""
    gap = paired(ours, theirs)
    error = None if gap.error is None else gap.error / abs(theirs.mean)
    return Number(ours.mean / theirs.mean, error)


def pooled(numbers: Sequence[Number]) -> Number:
    """Pool runs with different folds: one number over all folds, taken as independent.

    Example:
        >>> pooled([Number(1.0, 1.0, (0.0, 2.0)), Number(4.0, 1.0, (3.0, 5.0))]).mean
        2.5
    """
    if len(numbers) == 1:
        return numbers[0]
    values = tuple(value for number in numbers for value in number.values)
    if len(values) < 2 or not all(number.values for number in numbers):
        raise ValueError("numbers of several runs need the values of their folds.")
    return Number(*_moments(values), values)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Compute the mean and its standard error."""
    centre = math.fsum(values) / len(values)
    spread = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return centre, math.sqrt(spread / len(values))


def is_good(
    results: Results, paper: Scores, path: Sequence[str], is_bad: Callable[[Number, Number], bool]
) -> bool | None:
    """Compare our number with the paper's; None if no whole table was run."""
    run = results.get("paper", path[0])
    ours = run and run.get(*path[1:])
    if run is None or ours is None or not run.is_complete:
        return None
    return not is_bad(ours, paper.numbers[tuple(path)])


# -- several draws of the folds ------------------------------------------------------------------


def draws_of(results: Results, dataset: str, method: str) -> list[Run]:
    """List the runs of preset :data:`OWN` with the first folds and with others.

    There are none without the first; a draw that has not run the method is left out.
    """
    first = results.get(OWN, dataset)
    if first is None:
        return []
    others = results.draws.get(dataset, [])
    return [first, *(run for run in others if method in run.content["methods"])]


def over_folds(runs: Sequence[Run], method: str, *path: str) -> Number | None:
    """Pool a number over the folds of several runs; None if one does not have it."""
    found = [run.get(method, *path) for run in runs]
    numbers = [number for number in found if number is not None]
    if not numbers or len(numbers) < len(runs):
        return None
    is_known = len(numbers) == 1 or all(number.values for number in numbers)
    return pooled(numbers) if is_known else None


def over_draws(wanted: str, cells: Sequence[bool | None], first: Sequence[bool | None]) -> Goal:
    """Make a goal about all cells, judged over the folds of all draws.

    Args:
        wanted: Text of the goal.
        cells: True for a good cell, None for one without a measurement.
        first: The same with the folds of the first draw alone, named where it differs.
    """
    goal = Goal.counted(wanted, tally(cells), len(cells))
    if list(cells) == list(first) or not goal.found:
        return goal
    text = f"{goal.found} over all folds, {tally(first).good} with those of the first draw"
    return goal._replace(found=text).after_scores(
        "further draws of the folds count since the first draw had missed"
    )


def are_whole(runs: Iterable[Run]) -> bool:
    """Tell if all runs had their whole table."""
    return all(run.is_complete for run in runs)


def names_of(wanted: Iterable[str], found: Iterable[str]) -> list[str]:
    """List the data sets to show: first the wanted ones, then others that were run."""
    return list(dict.fromkeys((*wanted, *found)))


# -- Markdown --------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Format a table; columns after the first ``left`` are aligned to the right."""
    rule = [":--" if column < left else "--:" for column in range(len(header))]
    return ["", *(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)), ""]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Wrap lines so that the reader opens them with a click."""
    return ["", f"<details><summary>{title}</summary>", "", *lines, "", "</details>", ""]


def link(text: str, heading: str) -> str:
    """Format a link to a heading of the same page, by the name that GitHub gives it.

    Example:
        >>> link("note", "Depth: EnD2 with T = 10 (here)")
        '[note](#depth-end2-with-t--10-here)'
    """
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return f"[{text}](#{kept.replace(' ', '-')})"


def marked(text: str, is_miss: bool) -> str:
    """Format a text in bold with a cross if it is a missed goal."""
    return f"**✗ {text}**" if is_miss else text


def in_part(cells: Iterable[str]) -> list[str]:
    """Add a note to the cells of a run that had only a part of its table."""
    return [cell if cell in ("", NOT_RUN) else f"{cell}<br>{INCOMPLETE}" for cell in cells]
