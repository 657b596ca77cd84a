"""Recipes of the depth experiment whose scores on test images were looked at, and their goals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from priornet_paper.page.depth.goals import Verdict, find_verdicts
from priornet_paper.page.depth.numbers import NONE, TITLES, read_depth
from priornet_paper.page.markdown import link, table
from priornet_paper.page.notes import Notes

__all__ = ["RECIPES", "Earlier", "recipes", "recipes_in_short"]

RECIPES = "Depth: which recipes were looked at"
"""Title of the part."""

Content = Mapping[str, Any]
Earlier = Mapping[str, Mapping[str, Content]]

_ABOUT = (
    "Values of settings were chosen on training images held out, but for the epochs of students, "
    "of which no file shows such a trial. That there should be another recipe was decided when the "
    "test scores of the one before had been seen, always on the same test images: goals are judged "
    "by the last one, and are optimistic by what that choice can do. Here each recipe is judged by "
    "the same rules, with the seeds that it has. EnD2 is judged at the temperature of its recipe, "
    "which stands first. The goal about foreign images asks for three of the four pairs of both "
    "sets."
)
# What older files do not name had no effect then; the experiment, above this layer, knows it too.
_UNNAMED = {"strange": 0.0, "structure": 0.0, "student_evenness": 0.0, "evenness": 0.0}
_NOT_OF_A_RECIPE = ("seeds", "gamma_seeds")
_SIGNS = {True: "✓ ", False: "✗ ", None: ""}


def recipes(contents: Mapping[str, Content], earlier: Earlier, notes: Notes) -> list[str]:
    """For each set: its recipes from the first to the present one, and a table of their goals.

    Args:
        contents: The present results by data set.
        earlier: Those of earlier recipes, by data set and name of the file, first run first.
        notes: Remarks on a recipe have the key ``recipes/NAME``.
    """
    lines = [_ABOUT]
    for dataset, present in contents.items():
        ran = {**earlier.get(dataset, {}), dataset: present}
        lines += ["", f"**{TITLES[dataset]}**", ""]
        for place, (name, content) in enumerate(ran.items(), start=1):
            text = f"{place}. `{_file(name, dataset)}`, {_n_seeds(content)} seeds: "
            text += "the present one" if name == dataset else _changes(content, present)
            lines.append(" ".join([f"{text}.", *notes.about(f"recipes/{name}")]))
        found = [find_verdicts(read_depth({dataset: c}), dataset, c) for c in ran.values()]
        lines += _goals(found)
    return lines


def recipes_in_short(contents: Mapping[str, Content], earlier: Earlier) -> str:
    """One sentence beside the goals; none where no earlier recipe is known."""
    counts = {name: len(earlier.get(name, {})) + 1 for name in contents}
    if all(count == 1 for count in counts.values()):
        return ""
    listed = " and ".join(f"{count} on {TITLES[name]}" for name, count in counts.items())
    return (
        f"Goals about depth are judged by the last of the recipes whose scores on test images were "
        f"looked at, {listed}, and are optimistic by that: {link('which', RECIPES)}."
    )


def _file(name: str, dataset: str) -> str:
    return f"results/depth/{name}.json" if name == dataset else f"results/depth/again/{name}.json"


def _n_seeds(content: Content) -> int:
    return len(content["config"]["seeds"])


def _changes(content: Content, present: Content) -> str:
    """Settings that differ from the present ones, as far as they concern a method that was run."""
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
        if name not in _NOT_OF_A_RECIPE and pair[0] != pair[1]:
            yield name, *pair


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _goals(found: list[dict[str, Verdict]]) -> list[str]:
    """Recipes by goals, named by their places; goals are worded as for the present recipe."""
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
