"""What a part of the page is made of, and what it hands to the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from priornet_paper.page.compare import Goal, pooled, tally
from priornet_paper.page.markdown import INCOMPLETE, NOT_RUN
from priornet_paper.page.notes import Miss
from priornet_paper.page.numbers import Key, Number, Scores
from priornet_paper.page.results import Results, Run

__all__ = [
    "Section",
    "are_whole",
    "cell_text",
    "draws_of",
    "found_in",
    "in_part",
    "is_good",
    "names_of",
    "over_draws",
    "over_folds",
]


@dataclass
class Section:
    """Lines of Markdown, goals for the summary, and what was missed."""

    lines: list[str]
    goals: list[Goal] = field(default_factory=list[Goal])
    misses: list[Miss] = field(default_factory=list[Miss])


def found_in(run: Run | None, key: Key) -> Number | None:
    """A number of a run, on whatever rows it ran."""
    return None if run is None else run.numbers.get(key)


def draws_of(results: Results, dataset: str, method: str) -> list[Run]:
    """Runs of our recipe with the first folds and with others; none without the first.

    A draw that has not run the method is left out.
    """
    first = results.get("beyond", dataset)
    if first is None:
        return []
    others = results.draws.get(dataset, [])
    return [first, *(run for run in others if method in run.content["methods"])]


def over_folds(runs: Sequence[Run], key: Key) -> Number | None:
    """A number over the folds of several runs; None where one does not have it."""
    found = [found_in(run, key) for run in runs]
    numbers = [number for number in found if number is not None]
    if not numbers or len(numbers) < len(runs):
        return None
    is_known = len(numbers) == 1 or all(number.values for number in numbers)
    return pooled(numbers) if is_known else None


def over_draws(wanted: str, cells: Sequence[bool | None], first: Sequence[bool | None]) -> Goal:
    """A goal about all cells, judged over the folds of all draws.

    Args:
        wanted: What it says.
        cells: Whether each is good; None where it was not measured.
        first: The same with the folds of the first draw alone, told of where it differs.
    """
    goal = Goal.counted(wanted, tally(cells), len(cells))
    if list(cells) == list(first) or not goal.found:
        return goal
    text = f"{goal.found} over all folds, {tally(first).good} with those of the first draw"
    return goal._replace(found=text).after_scores(
        "further draws of the folds count since the first draw had missed"
    )


def is_good(
    results: Results, paper: Scores, key: Key, is_bad: Callable[[Number, Number], bool]
) -> bool | None:
    """Whether our number holds beside the paper's; None where no whole table was run."""
    run = results.get("paper", key.dataset)
    ours = found_in(run, key)
    if run is None or ours is None or not run.is_complete:
        return None
    return not is_bad(ours, paper.numbers[key])


def cell_text(run: Run | None, value: Number | None, whole: str) -> str:
    """What a cell says: ``whole`` for a complete table, otherwise what is missing."""
    if run is None or value is None:
        return NOT_RUN
    return whole if run.is_complete else in_part([whole])[0]


def are_whole(runs: Iterable[Run]) -> bool:
    """Whether all of them had their whole table."""
    return all(run.is_complete for run in runs)


def in_part(cells: Iterable[str]) -> list[str]:
    """Cells of a table of which only a part was to be had."""
    return [cell if cell in ("", NOT_RUN) else f"{cell}<br>{INCOMPLETE}" for cell in cells]


def names_of(wanted: Iterable[str], found: Iterable[str]) -> list[str]:
    """Data sets to show: those that are wanted, then others that were run."""
    wanted = list(wanted)
    return wanted + [name for name in found if name not in wanted]
