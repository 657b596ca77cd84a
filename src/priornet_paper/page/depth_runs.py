"""The depth half of the page, part by part, with its earlier and repeated runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from priornet_paper.page.depth_goals import Verdict, find_goals, find_verdicts
from priornet_paper.page.depth_tables import accuracy, detection, gamma_table, likelihood, ranks
from priornet_paper.page.making import SETTING, setting
from priornet_paper.page.numbers import (
    DEPTH_SETS,
    NONE,
    TITLES,
    Content,
    Scores,
    every_method,
    published_depth,
    read_scores,
)
from priornet_paper.page.results import Notes
from priornet_paper.page.sections import HOLDS, Section, link, table

Contents = Mapping[str, Content]
Earlier = Mapping[str, Contents]

EARLIER = "Depth: earlier configurations"
NEW_SEEDS = "Depth: the same configurations with new seeds"
_LIKELIHOOD = "Depth: likelihood and calibration"
_DETECTION = "Depth: out-of-domain detection"
_WEIGHT = "Depth: the weight of out-of-domain images"
_RANKS = "Depth: correlations of uncertainty"
_MAPS = "Depth: maps"

DEPTH_FIGURES = {
    _LIKELIHOOD: tuple(f"depth-{k}-{n}" for n in DEPTH_SETS for k in ("likelihood", "calibration")),
    _DETECTION: ("depth-detection",),
    _WEIGHT: ("depth-gamma",),
    _RANKS: ("depth-correlations",),
    _MAPS: tuple(f"depth-{k}-{n}" for n in DEPTH_SETS for k in ("maps", "foreign", "scale")),
}
"""Figures by the title of the part that shows them."""

_ABOUT_MAPS = (
    "Predictions of the ensemble and of EnD2, with the first seed, for the first images of each "
    "set. `priornet reproduce depth-maps` draws them, and once more beside the photographs in a "
    "folder that git ignores: photographs have owners."
)
_MISSING = (
    "**The depth experiment has not been run {where}**: there is no {files}. "
    "`priornet reproduce depth --dataset {first}` makes {it}."
)


def depth_parts(
    contents: Contents,
    earlier: Earlier | None = None,
    new: Contents | None = None,
    notes: Notes | None = None,
) -> dict[str, Section]:
    """Write the sections by title; a single one if nothing has been run.

    Args:
        contents: Results by data set.
        earlier: Results of earlier configurations, by data set and name; an extra part if any.
        new: Results with other seeds, by data set; an extra part if any.
        notes: Notes on both.
    """
    ours, paper = read_scores(contents), published_depth()
    start = Section(_missing(contents), *find_goals(ours, contents))
    if not contents:
        return {"Depth": start}
    start.lines += setting(contents)
    known = {name: found for name, found in (earlier or {}).items() if name in contents and found}
    notes, more = notes or Notes(), dict[str, Section]()
    if known:
        more[EARLIER] = Section(earlier_runs(contents, known, notes))
    if new:
        more[NEW_SEEDS] = Section(new_seeds(contents, new, notes))
    return {
        SETTING: start,
        **more,
        "Depth: accuracy": Section(accuracy(ours, paper)),
        _LIKELIHOOD: Section(likelihood(ours)),
        _DETECTION: Section(detection(ours, paper)),
        _WEIGHT: Section(gamma_table(ours, contents)),
        _RANKS: Section(ranks(ours)),
        _MAPS: Section([_ABOUT_MAPS]),
    }


def _missing(contents: Contents) -> list[str]:
    absent = [name for name in DEPTH_SETS if name not in contents]
    if not absent:
        return []
    files = " and no ".join(f"`results/depth/{name}.json`" for name in absent)
    where = "on " + " and ".join(TITLES[name] for name in absent)
    it = "it" if len(absent) == 1 else "the first"
    return [_MISSING.format(where=where, files=files, first=absent[0], it=it), ""]


# -- earlier configurations -----------------------------------------------------------------------

_ABOUT_EARLIER = (
    "We chose the values of settings on training images held out, except the students' epochs, for "
    "which no file shows such a trial. We decided on another configuration after we had seen the "
    "test scores of the one before, always on the same test images. Goals are judged by the last "
    "one, and are optimistic by what that choice can do. Here each configuration is judged by the "
    "same rules, with the seeds that it has. EnD2 is judged at the temperature of its "
    "configuration, which stands first. The goal about out-of-domain images asks for three of the "
    "four pairs of both sets."
)
# Settings that older files do not name had no effect then; the experiment also has this table.
_UNNAMED = {"strange": 0.0, "structure": 0.0, "student_evenness": 0.0, "evenness": 0.0}
_NEVER_COMPARED = ("seeds", "gamma_seeds")
_SIGNS = {True: "✓ ", False: "✗ "}


def earlier_runs(contents: Contents, earlier: Earlier, notes: Notes) -> list[str]:
    """List the configurations of each set, the present one last, with a table of their goals.

    Args:
        contents: The present results by data set.
        earlier: Results of earlier configurations, by data set and file name, first run first.
        notes: Notes on a configuration have the key ``recipes/NAME``.
    """
    lines = [_ABOUT_EARLIER]
    for dataset, present in contents.items():
        before = earlier.get(dataset, {})
        files = {f"again/{name}": content for name, content in before.items()} | {dataset: present}
        lines += ["", f"**{TITLES[dataset]}**", ""]
        for place, (file, content) in enumerate(files.items(), start=1):
            what = "the present one" if content is present else _changes(content, present)
            n_seeds, name = len(content["config"]["seeds"]), file.removeprefix("again/")
            text = f"{place}. `results/depth/{file}.json`, {n_seeds} seeds: {what}."
            lines.append(" ".join([text, *notes.about(f"recipes/{name}")]))
        lines += _goals_by_file(
            [find_verdicts(read_scores({dataset: c}), dataset, c) for c in files.values()]
        )
    return lines


def earlier_in_short(contents: Contents, earlier: Earlier) -> str:
    """Write one sentence beside the goals; none if no earlier configuration is known."""
    counts = {name: len(earlier.get(name, {})) + 1 for name in contents}
    if all(count == 1 for count in counts.values()):
        return ""
    listed = " and ".join(f"{count} on {TITLES[name]}" for name, count in counts.items())
    return (
        f"We looked at the test scores of several configurations for depth, {listed}, and judge "
        f"goals by the last one. They are optimistic by {link('that choice', EARLIER)}."
    )


def _changes(content: Content, present: Content) -> str:
    """List settings that differ from the present ones and concern a method that was run."""
    texts = [
        f"`{name}` {_plain(then)} (now {_plain(now)})"
        for name, then, now in _differences(content["config"], present["config"])
        if name != "beta" or "NWPN" in content["methods"]
    ]
    return ", ".join(texts) or "the present settings"


def _differences(then: Content, now: Content) -> Iterator[tuple[str, Any, Any]]:
    for name in {**now, **then}:
        default = _UNNAMED.get(name)
        pair = then.get(name, default), now.get(name, default)
        if name not in _NEVER_COMPARED and pair[0] != pair[1]:
            yield name, *pair


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _goals_by_file(found: Sequence[Mapping[str, Verdict]]) -> list[str]:
    """Write a row for each file and a column for each goal, in the words of the last file."""
    wanted = {key: verdict.wanted for verdicts in found for key, verdict in verdicts.items()}
    rows = [
        [str(place), *(_cell(verdicts.get(key)) for key in wanted)]
        for place, verdicts in enumerate(found, start=1)
    ]
    return table(["", *wanted.values()], rows, left=len(wanted) + 1)


def _cell(verdict: Verdict | None) -> str:
    if verdict is None or verdict.is_good is None:
        return NONE
    return f"{_SIGNS[verdict.is_good]}{verdict.found}"


# -- new seeds ------------------------------------------------------------------------------------

_ABOUT_NEW_SEEDS = (
    "The methods that have goals, with the settings of the last configurations and other seeds. "
    "The luck of the first seeds has no part in these numbers; the choice by test images has, for "
    "the images are the same. All other numbers on this page are those of the first seeds."
)
_METRICS = {"delta1": ("δ1", 4), "rel": ("rel", 4), "rmse": ("rmse, m", 3), "nll": ("NLL", 3)}


def new_seeds(contents: Contents, new: Contents, notes: Notes) -> list[str]:
    """Write goals and numbers with the first seeds and with the new ones.

    Args:
        contents: Results by data set.
        new: Results with new seeds, of sets that are among them.
        notes: Notes have the key ``new-seeds``.
    """
    first = {name: contents[name] for name in new}
    scores = read_scores(first), read_scores(new)
    judged = zip(find_goals(scores[0], first)[0], find_goals(scores[1], new)[0], strict=True)
    rows = [
        [
            now.wanted.removeprefix("Depth, "),
            *(f"{goal.state}: {goal.found}" for goal in (was, now)),
        ]
        for was, now in judged
        if now.found
    ]
    return [
        " ".join([_ABOUT_NEW_SEEDS, *notes.about("new-seeds")]),
        "",
        *(f"- {_command(first[name], content, name)}" for name, content in new.items()),
        *table(["goal", "first seeds", "new seeds"], rows, left=3),
        "Means over the first seeds and over the new ones, ± their standard errors.",
        *table(["", "", *(title for title, _ in _METRICS.values())], _numbers(new, *scores), 2),
    ]


def new_seeds_in_short(new: Contents) -> str:
    """Write one sentence beside the goals; none if nothing was run."""
    found = [goal for goal in find_goals(read_scores(new), new)[0] if goal.found]
    if not found:
        return ""
    count = sum(goal.state == HOLDS for goal in found)
    where = link("new seeds", NEW_SEEDS)
    return f"With {where}, run once, {count} of the {len(found)} goals about depth are reached."


def _command(first: Content, new: Content, name: str) -> str:
    was, now = (",".join(map(str, content["config"]["seeds"])) for content in (first, new))
    command = f"priornet reproduce depth --data depth/ --dataset {name} --seeds {now} "
    command += f"--methods {','.join(every_method(new))} --out results/depth/new-seeds"
    return f"{TITLES[name]}, beside seeds {was}: `{command}`"


def _numbers(new: Contents, first: Scores, second: Scores) -> list[list[str]]:
    return [
        [
            TITLES[name],
            method,
            *(
                "<br>".join(scores.text(digits, name, method, metric) for scores in (first, second))
                for metric, (_, digits) in _METRICS.items()
            ),
        ]
        for name, content in new.items()
        for method in every_method(content)
    ]
