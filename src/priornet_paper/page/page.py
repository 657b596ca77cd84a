"""The whole page, from a results folder and a file of notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from priornet.cli import (
    PAGE,
    InputError,
    Overwrite,
    blamed_on,
    check_outputs,
    figure_paths,
    print_lines,
)
from priornet.writing import write_bytes
from priornet_paper.page.claims import CLAIMS, DEPTH_CLAIMS, NOT_MEASURED, Claim, Part, verdict
from priornet_paper.page.depth_runs import (
    DEPTH_FIGURES,
    depth_parts,
    earlier_in_short,
    new_seeds_in_short,
)
from priornet_paper.page.figures import draw_figures, drawn_figures, figures
from priornet_paper.page.making import making, setting_in_short
from priornet_paper.page.numbers import (
    DEPTH_SETS,
    SETS,
    Scores,
    published,
    published_depth,
    read_scores,
)
from priornet_paper.page.own_preset import own_students, prior_network
from priornet_paper.page.results import Notes, Results, read_folder, read_notes
from priornet_paper.page.sections import FAILS, HOLDS, Goal, folded, link, listing, table
from priornet_paper.page.synthetic import SYNTHETIC_CLAIMS, synthetic
from priornet_paper.page.tables import accuracy, besides, detection, peer_table

_HEAD = """\
# Results

The paper's experiments on synthetic data, UCI tables and depth from images (arXiv:2006.11590v2),
run again: its numbers beside ours. For tables, the page also compares our own configuration with
the ensemble and with other published methods. It is made from `results/` by `priornet reproduce
page`: do not edit it.\
"""
_SPEED = (
    "The speed of depth networks has goals of its own, in "
    "[benchmarks/README.md](../benchmarks/README.md)."
)
_ABOUT_CLAIMS = (
    "A verdict is counted from the numbers below: *confirmed* when every part of a claim holds "
    "in at least 80 % of its cells, *not confirmed* when no part holds in half of them, "
    "*partly* in between. The last column applies the same rule to the numbers that the paper "
    "prints."
)
_UNPRINTED = "no numbers printed"
_ACCURACY = "RMSE and NLL beside the paper's"
_DETECTION = "Error detection and out-of-domain detection"
_SYNTHETIC = "Synthetic data"
_FIGURES = {
    _DETECTION: ("rejection",),
    _SYNTHETIC: ("synthetic-panels", "behaviours"),
    **DEPTH_FIGURES,
}


def make_page(results: Results, notes: Notes, images: Path | None = None) -> str:
    """Write the page as Markdown.

    Args:
        results: Results to show.
        notes: Explanations of misses; it records which were used.
        images: Folder whose figures are shown, by their path beside the page.
    """
    paper, depth = published(), read_scores(results.depth)
    parts = {
        _ACCURACY: accuracy(results, paper),
        _DETECTION: detection(results, paper),
        "Our configuration: EnD2 against its ensemble": own_students(results),
        "Our configuration: NWPN": prior_network(results, paper),
        "Published methods": peer_table(results),
        _SYNTHETIC: synthetic(results),
        **depth_parts(results.depth, results.earlier, results.new_seeds, notes),
        "How it was made": making(results, notes),
    }
    goals = [goal for section in parts.values() for goal in section.goals]
    in_short = [
        setting_in_short(results.depth, depth, published_depth()),
        earlier_in_short(results.depth, results.earlier),
        new_seeds_in_short(results.new_seeds),
        _SPEED,
    ]
    lines = [_HEAD, "", "## At a glance", *_summary(goals, in_short)]
    lines += [
        "## What the paper claims",
        "",
        *_claims(_judged(results, paper, depth), depth, notes),
    ]
    for title, section in parts.items():
        lines += ["", f"## {title}", "", *section.lines]
        if section.misses:
            lines += ["", f"Misses ({len(section.misses)}):", "", *listing(section.misses, notes)]
        if title == _ACCURACY:
            lines += ["", *besides(results)]
        lines += figures(images, *_FIGURES.get(title, ()))
    return _tidy(lines)


def write_page(folder: Path, out: Path, notes_path: Path) -> Notes:
    """Make the page and write it, whole or not at all, and draw the curves it shows.

    Args:
        folder: The results.
        out: The Markdown file; figures are in the folder ``images`` beside it.
        notes_path: Explanations of misses; need not exist.

    Returns:
        The notes, which record which of them were used.
    """
    notes, results, images = read_notes(notes_path), read_folder(folder), out.parent / "images"
    draw_figures(results, images)
    write_bytes(out, make_page(results, notes, images).encode())
    return notes


def _summary(goals: Sequence[Goal], in_short: Iterable[str]) -> list[str]:
    counts = {
        "reached": sum(goal.state == HOLDS for goal in goals),
        "missed": sum(goal.state == FAILS for goal in goals),
    }
    counts["not run in full"] = len(goals) - sum(counts.values())
    line = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    n_late = sum(goal.state == HOLDS and bool(goal.caveat) for goal in goals)
    late = "Goals reached with a rule or settings that we changed after we had seen their scores "
    late = f"{late}(last column): {n_late}." if n_late else ""
    points = [f"- {text}" for text in (late, *in_short) if text]
    header = ["", "found", "goal", "changed after its scores were seen"]
    rows = [(goal.state, goal.found, goal.wanted, goal.caveat) for goal in goals]
    return ["", f"Of {len(goals)} goals: {line}.", "", *points, *table(header, rows, left=4)]


class _Judged(NamedTuple):
    """A claim with our verdict, the parts it is counted from, and the paper's own verdict."""

    claim: Claim
    found: str
    parts: list[Part]
    own: str


def _judged(results: Results, paper: Scores, depth: Scores) -> list[_Judged]:
    """Count all claims over our numbers, and over the paper's if it prints any."""
    tables = results.scores("paper")
    groups: list[tuple[Sequence[Claim], Any, Any, bool]] = [
        (CLAIMS, tables, paper, set(SETS) <= set(tables.datasets)),
        (SYNTHETIC_CLAIMS, results.synthetic, None, True),
        (DEPTH_CLAIMS, depth, published_depth(), set(DEPTH_SETS) <= set(depth.datasets)),
    ]
    judged: list[_Judged] = []
    for claims, ours, printed, is_whole in groups:
        for claim in claims:
            parts = claim.parts(ours)
            found, own = verdict(parts), "" if printed is None else verdict(claim.parts(printed))
            found = found if is_whole or found == NOT_MEASURED else f"so far {found}"
            own = _UNPRINTED if own in ("", NOT_MEASURED) else own
            judged.append(_Judged(claim, found, parts, own))
    return judged


def _claims(judged: Sequence[_Judged], depth: Scores, notes: Notes) -> list[str]:
    """Write the table of claims, the numbers behind those on depth, and the notes on verdicts."""
    about = {
        claim.text: found for claim, *_ in judged if (found := notes.about(f"claims/{claim.name}"))
    }
    rows = [
        [
            f"**{found}**",
            f"{claim.text} ({link('note', claim.text)})" if claim.text in about else claim.text,
            "<br>".join(str(part) for part in parts if part.total),
            own,
        ]
        for claim, found, parts, own in judged
    ]
    return [
        _ABOUT_CLAIMS,
        *table(["verdict", "claim", "counted", "the paper's own numbers"], rows, left=4),
        *_depth_numbers(depth),
        *_notes_on_claims(about),
    ]


def _notes_on_claims(about: Mapping[str, list[str]]) -> list[str]:
    """Write the notes on verdicts, each under its claim."""
    lines = ["", "### Notes on the claims"] if about else []
    for claim, paragraphs in about.items():
        is_list = len(paragraphs) > 1
        lines += ["", f"#### {claim}", "", *(f"- {p}" if is_list else p for p in paragraphs)]
    return lines


def _depth_numbers(depth: Scores) -> list[str]:
    """Write the numbers from which the verdicts on depth are counted."""
    lines: list[str] = []
    for claim in DEPTH_CLAIMS:
        numbers = claim.numbers(depth)
        lines += [f"- {claim.text}", *(f"  - {line}" for line in numbers)] if numbers else []
    return folded("Numbers behind the verdicts on depth (means over seeds)", lines) if lines else []


def _tidy(lines: Iterable[str]) -> str:
    """Join lines, with never more than one empty line in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


# -- the command -----------------------------------------------------------------------------------


def page(
    results: Annotated[Path, typer.Option(help="Folder with the results files.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The Markdown file to write.")] = Path(
        "docs/results.md"
    ),
    notes: Annotated[
        Path, typer.Option(help="JSON file with explanations of misses, by key.")
    ] = Path("docs/results-notes.json"),
    overwrite: Overwrite = False,
) -> None:
    """Write the page of results: our numbers beside the paper's, and a verdict on each claim.

    Everything comes from the files in the results folder; missing runs
    are called "not run". Curves and charts are drawn into the folder "images"
    beside the page; it shows the other figures that are there, such as those
    of `reproduce depth-maps`.
    """
    if not results.is_dir():
        raise InputError(f"{results}: no such folder; `--results` names the folder of results.")
    written = [(out, PAGE), *figure_paths(out.parent / "images", *drawn_figures())]
    check_outputs(written, [notes], overwrite=overwrite)
    with blamed_on(results):
        used = write_page(results, out, notes)
    print_lines([f"Page: {out}"])
    if used.unused:
        typer.echo(
            f"{notes}: explains goals that are not missed: {', '.join(used.unused)}", err=True
        )
