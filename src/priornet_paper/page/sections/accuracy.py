"""RMSE and NLL beside the paper's, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

from priornet_paper.page.compare import (
    ROUNDING,
    Goal,
    difference_in_errors,
    is_worse,
    tally,
)
from priornet_paper.page.markdown import (
    INCOMPLETE,
    NOT_RUN,
    decimals,
    folded,
    marked,
    shown,
    signed,
    table,
    with_error,
)
from priornet_paper.page.notes import Miss
from priornet_paper.page.numbers import METHODS, SETS, Key, Number, Scores
from priornet_paper.page.results import Results
from priornet_paper.page.section import Section, cell_text, found_in, is_good, names_of

__all__ = ["SETTLED", "accuracy", "besides"]

SETTLED = (
    "grids, schedule and rule of choice were changed when scores of these tables had been seen"
)

_OWN_CHOICES = (
    "Preset `paper` has the paper's networks, folds and epochs. Where the paper is silent it "
    "makes choices of its own: the learning rate falls along half a cosine, long "
    "gradients are clipped, students start as a member of their ensemble, EnD2 and NWPN have one "
    "output for belief and excess, and settings that the NLL cannot tell apart are chosen by "
    "generated rows. Another reading of the paper gives other numbers."
)
_TITLES = {"rmse": "RMSE", "nll": "NLL"}
_LONG = {
    "rmse": "RMSE of three more methods",
    "nll": "NLL of three more methods",
    "crps": "CRPS",
    "coverage90": "Share of targets inside the 90 % interval",
}
_NEEDED = 0.9  # 36 of 40
_OTHERS = ("DER", "EnD", "MD-EnD")


def accuracy(results: Results, paper: Scores) -> Section:
    """Tables of both metrics, the count, and every miss."""
    section = Section(
        [
            "Each cell: ours, the paper's, and the difference in combined standard errors (below "
            "zero ours is better). ✗: worse by more than two. What the paper prints after ± it "
            "calls a standard deviation, but it has the size of a standard error over folds, and "
            "is used as one.",
            "",
            "Every method chooses among 32 settings, listed at the end of this page; of ENSM's, "
            "three networks are tried together. EnD2 and NWPN, which have more to choose, have "
            "one weight decay.",
            "",
            _OWN_CHOICES,
        ]
    )
    for metric in ("rmse", "nll"):
        rows = [
            _row(results, paper, dataset, metric, section) for dataset in names_of(SETS, ["msd"])
        ]
        section.lines += ["", f"**{_TITLES[metric]}**"]
        section.lines += table(["data", *METHODS], rows)
    count, strict, below = (
        tally(
            is_good(results, paper, Key(dataset, metric, method), is_bad)
            for dataset in SETS
            for metric in ("rmse", "nll")
            for method in METHODS
        )
        for is_bad in (is_worse, _is_worse_by_the_papers_error, _is_above)
    )
    needed = round(_NEEDED * count.total)
    section.goals.append(
        Goal.counted(
            "RMSE and NLL no worse than the paper's by more than two combined standard errors, "
            f"in {needed} of {count.total} cells",
            count,
            needed,
            f"; by the paper's errors alone {strict.good}; {below.good} means are at or below the "
            "paper's",
        ).after_scores(SETTLED)
    )
    return section


def _is_worse_by_the_papers_error(ours: Number, theirs: Number) -> bool:
    """Whether a cell is worse by more than two standard errors of the paper's mean alone."""
    return is_worse(Number(ours.mean), theirs)


def _is_above(ours: Number, theirs: Number) -> bool:
    return ours.mean > theirs.mean + ROUNDING


def _row(results: Results, paper: Scores, dataset: str, metric: str, section: Section) -> list[str]:
    cells = [f"**{dataset}**<br>the paper<br>difference"]
    run = results.get("paper", dataset)
    for method in METHODS:
        key = Key(dataset, metric, method)
        ours, theirs = found_in(run, key), paper.numbers[key]
        digits = decimals(theirs.mean)
        printed = with_error(theirs, 2)
        if run is None or ours is None:
            cells.append(f"{NOT_RUN}<br>{printed}<br>&ndash;")
            continue
        if not run.is_complete:
            cells.append(f"{with_error(ours, digits)}<br>{printed}<br>{INCOMPLETE}")
            continue
        gap, is_miss = difference_in_errors(ours, theirs), is_worse(ours, theirs)
        cells.append(
            f"{with_error(ours, digits)}<br>{printed}<br>{marked(signed(gap, 1), is_miss)}"
        )
        if is_miss:
            section.misses.append(
                Miss(
                    f"paper/{dataset}/{metric}/{method}",
                    f"{dataset}, {method}, {_TITLES[metric]} {shown(ours.mean, digits)} against "
                    f"{shown(theirs.mean)} ({signed(gap, 1)})",
                )
            )
    return cells


def besides(results: Results) -> list[str]:
    """What the paper does not report: other methods, CRPS and coverage, ours only."""
    every = (*METHODS, *_OTHERS)
    columns = {"rmse": _OTHERS, "nll": _OTHERS, "crps": every, "coverage90": every}
    lines: list[str] = []
    for metric, methods in columns.items():
        lines += [f"**{_LONG[metric]}**", *_ours_only(results, metric, methods)]
    return folded("Not in the paper: DER, EnD and MD-EnD; CRPS; coverage", lines)


def _ours_only(results: Results, metric: str, methods: Sequence[str]) -> list[str]:
    rows: list[list[str]] = []
    for dataset in names_of((*SETS, "msd"), results.datasets("paper")):
        run = results.get("paper", dataset)
        found = [found_in(run, Key(dataset, metric, method)) for method in methods]
        texts = [_ours(metric, value) for value in found]
        cells = [cell_text(run, v, text) for v, text in zip(found, texts, strict=True)]
        rows.append([dataset, *cells])
    return table(["data", *methods], rows)


def _ours(metric: str, value: Number | None) -> str:
    if value is None:
        return ""
    if metric == "coverage90":
        return f"{100 * value.mean:.1f} %"
    return with_error(value, decimals(value.mean))
