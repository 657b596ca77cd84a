"""The whole page, from a results folder and a file of notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from priornet.writing import write_bytes
from priornet_paper.page.claims import CLAIMS, NOT_MEASURED, Part, verdict
from priornet_paper.page.compare import FAILS, HOLDS, Goal
from priornet_paper.page.depth import (
    DEPTH_CLAIMS,
    DEPTH_FIGURES,
    depth_parts,
    draw_depth,
    new_seeds_in_short,
    published_depth,
    read_depth,
    recipes_in_short,
    setting_in_short,
)
from priornet_paper.page.depth.numbers import DEPTH_SETS
from priornet_paper.page.figures import draw_rejection, figures
from priornet_paper.page.markdown import folded, link, table
from priornet_paper.page.notes import Miss, Notes, listing, read_notes
from priornet_paper.page.numbers import SETS, Scores, published
from priornet_paper.page.results import Results, read_folder
from priornet_paper.page.sections.accuracy import accuracy, besides
from priornet_paper.page.sections.beyond import beyond
from priornet_paper.page.sections.detection import detection
from priornet_paper.page.sections.making import making
from priornet_paper.page.sections.peer_table import peer_table
from priornet_paper.page.sections.prior_network import prior_network
from priornet_paper.page.sections.synthetic import SYNTHETIC_CLAIMS, synthetic

__all__ = ["drawn_figures", "make_page", "write_page"]

_HEAD = """\
# Results

The paper's experiments on synthetic data, UCI tables and depth from images (arXiv:2006.11590v2)
run again, its numbers beside ours; for tables also our own recipe against the ensemble, and against
other published methods. This page is made from the files in `results/` by `priornet reproduce
page`: do not edit it.\
"""
_SPEED = (
    "The speed of depth networks has goals of its own, in "
    "[benchmarks/README.md](../benchmarks/README.md)."
)
_UNPRINTED = "no numbers printed"
_ACCURACY = "RMSE and NLL beside the paper's"
_DETECTION = "Errors found, foreign rows told apart"
_SYNTHETIC = "Synthetic data"
_FIGURES = {
    _DETECTION: ("rejection",),
    _SYNTHETIC: ("synthetic-panels", "behaviours"),
    **DEPTH_FIGURES,
}


def make_page(results: Results, notes: Notes, images: Path | None = None) -> str:
    """The page as Markdown.

    Args:
        results: What was measured.
        notes: Explanations of misses; it learns which were used.
        images: Folder whose figures are shown, by their path beside the page.
    """
    paper = published()
    parts = {
        _ACCURACY: accuracy(results, paper),
        _DETECTION: detection(results, paper),
        "Our recipe: EnD2 against its ensemble": beyond(results),
        "Our recipe: NWPN": prior_network(results, paper),
        "Published methods": peer_table(results),
        _SYNTHETIC: synthetic(results),
        **depth_parts(results.depth, results.recipes, results.new_seeds, notes),
        "How it was made": making(results, notes),
    }
    goals = [goal for section in parts.values() for goal in section.goals]
    remarks = [
        setting_in_short(results.depth, read_depth(results.depth), published_depth()),
        recipes_in_short(results.depth, results.recipes),
        new_seeds_in_short(results.new_seeds),
        _SPEED,
    ]
    lines = [_HEAD, "", "## At a glance", *_summary(goals, remarks)]
    lines += ["## What the paper claims", "", *_claims(results, paper, notes)]
    for title, section in parts.items():
        lines += ["", f"## {title}", "", *section.lines, *_misses(section.misses, notes)]
        if title == _ACCURACY:
            lines += ["", *besides(results)]
        lines += figures(images, *_FIGURES.get(title, ()))
    return _tidy(lines)


def drawn_figures() -> list[str]:
    """List the figures that :func:`write_page` may draw."""
    of_sets = [
        f"depth-{kind}-{name}" for name in DEPTH_SETS for kind in ("likelihood", "calibration")
    ]
    return ["rejection", *of_sets, "depth-detection", "depth-gamma", "depth-correlations"]


def write_page(folder: Path, out: Path, notes_path: Path) -> Notes:
    """Make the page and write it, whole or not at all, and the curves it shows.

    Args:
        folder: The results.
        out: The Markdown file; figures are in the folder ``images`` beside it.
        notes_path: Explanations of misses; need not exist.

    Returns:
        The notes, which know which of them were used.
    """
    notes, results, images = read_notes(notes_path), read_folder(folder), out.parent / "images"
    draw_rejection(results, images)
    draw_depth(results.depth, images)
    text = make_page(results, notes, images)
    write_bytes(out, text.encode())
    return notes


def _summary(goals: list[Goal], remarks: Iterable[str]) -> list[str]:
    counts = {
        "reached": sum(goal.state == HOLDS for goal in goals),
        "missed": sum(goal.state == FAILS for goal in goals),
    }
    counts["not run in full"] = len(goals) - sum(counts.values())
    line = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    rows = [(goal.state, goal.found, goal.wanted, goal.caveat) for goal in goals]
    n_late = sum(goal.state == HOLDS and bool(goal.caveat) for goal in goals)
    late = "Reached with a rule or settings that were changed when their scores had been seen "
    late = f"{late}(last column): {n_late}." if n_late else ""
    text = f"Of {len(goals)} goals: {line}."
    points = [f"- {remark}" for remark in (late, *remarks) if remark]
    header = ["", "found", "goal", "changed when scores had been seen"]
    return ["", text, "", *points, *table(header, rows, left=4)]


class _Judged(NamedTuple):
    """A claim with its verdict: ours, what it is counted from, and the paper's own."""

    name: str
    text: str
    found: str
    parts: list[Part]
    own: str


def _claims(results: Results, paper: Scores, notes: Notes) -> list[str]:
    tables, depth = results.scores("paper"), read_depth(results.depth)
    judged = [
        *_judged(CLAIMS, tables, paper, is_whole=set(SETS) <= set(tables.datasets)),
        *_judged(SYNTHETIC_CLAIMS, results.synthetic),
        *_judged(
            DEPTH_CLAIMS, depth, published_depth(), is_whole=set(DEPTH_SETS) <= set(depth.datasets)
        ),
    ]
    remarks = {
        claim.text: said for claim in judged if (said := notes.about(f"claims/{claim.name}"))
    }
    rows = [
        [
            f"**{claim.found}**",
            f"{claim.text} ({link('remark', claim.text)})" if claim.text in remarks else claim.text,
            "<br>".join(str(part) for part in claim.parts if part.total),
            claim.own,
        ]
        for claim in judged
    ]
    return [
        "A verdict is counted from the numbers below: *confirmed* when every part of a claim holds "
        "in at least 80 % of its cells, *not confirmed* when no part holds in half of them, "
        "*partly* in between. The last column applies the same rule to the numbers that the paper "
        "prints.",
        *table(["verdict", "claim", "counted", "the paper's own numbers"], rows, left=4),
        *_depth_numbers(results),
        *_remarks(remarks),
    ]


def _judged(
    claims: Iterable[Any], ours: Any, paper: Any = None, *, is_whole: bool = True
) -> list[_Judged]:
    """Claims of one part of the paper, each about numbers of its own kind.

    Args:
        claims: With a name, a text, and parts to be counted from numbers.
        ours: Numbers.
        paper: Those that it prints, if any.
        is_whole: Whether all that is to be run has been.
    """
    judged: list[_Judged] = []
    for claim in claims:
        parts: list[Part] = claim.parts(ours)
        found, own = verdict(parts), NOT_MEASURED if paper is None else verdict(claim.parts(paper))
        found = found if is_whole or found == NOT_MEASURED else f"so far {found}"
        own = _UNPRINTED if own == NOT_MEASURED else own
        judged.append(_Judged(claim.name, claim.text, found, parts, own))
    return judged


def _remarks(remarks: Mapping[str, list[str]]) -> list[str]:
    """What was written by hand about verdicts, each under the claim that it is about."""
    lines = ["", "### Remarks on the claims"] if remarks else []
    for claim, paragraphs in remarks.items():
        is_list = len(paragraphs) > 1
        lines += ["", f"#### {claim}", "", *(f"- {p}" if is_list else p for p in paragraphs)]
    return lines


def _depth_numbers(results: Results) -> list[str]:
    """What the verdicts on depth are counted from, for those who do not want to look it up."""
    ours = read_depth(results.depth)
    lines: list[str] = []
    for claim in DEPTH_CLAIMS:
        numbers = claim.numbers(ours)
        lines += [f"- {claim.text}", *(f"  - {line}" for line in numbers)] if numbers else []
    return folded("Numbers behind the verdicts on depth (means over seeds)", lines) if lines else []


def _misses(misses: list[Miss], notes: Notes) -> list[str]:
    if not misses:
        return []
    return ["", f"Misses ({len(misses)}):", "", *listing(misses, notes)]


def _tidy(lines: Iterable[str]) -> str:
    """Join lines, with never more than one empty line in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).rstrip() + "\n"
