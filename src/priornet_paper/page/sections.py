"""Sections of the page: their Markdown, their goals, and the misses of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from priornet_paper.page.numbers import Number, Scores
from priornet_paper.page.results import Notes, Results

NOT_RUN, INCOMPLETE = "not run", "not run on the full table"
FAILS, UNFINISHED, HOLDS = "**✗ missed**", "not run in full", "✓ reached"
"""States of a goal, beside ``NOT_RUN``."""
STATES = (FAILS, NOT_RUN, UNFINISHED, HOLDS)
"""All states, the worst first."""
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
    return FAILS if count.good + count.total - count.measured < needed else UNFINISHED


def is_good(
    results: Results, paper: Scores, path: Sequence[str], is_bad: Callable[[Number, Number], bool]
) -> bool | None:
    """Compare our number with the paper's; None if no whole table was run."""
    run = results.get("paper", path[0])
    ours = run and run.get(*path[1:])
    if run is None or ours is None or not run.is_complete:
        return None
    return not is_bad(ours, paper.numbers[tuple(path)])


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


# -- Markdown -------------------------------------------------------------------------------------


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
