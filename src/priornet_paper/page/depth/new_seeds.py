"""The present recipes of the depth experiment, run once more with seeds of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priornet_paper.page.compare import HOLDS
from priornet_paper.page.depth.goals import find_goals
from priornet_paper.page.depth.numbers import TITLES, DepthScores, every_method, read_depth
from priornet_paper.page.markdown import link, table
from priornet_paper.page.notes import Notes

__all__ = ["NEW_SEEDS", "new_seeds", "new_seeds_in_short"]

NEW_SEEDS = "Depth: the same recipes with new seeds"
"""Title of the part."""

Contents = Mapping[str, Mapping[str, Any]]

_ABOUT = (
    "The methods that goals are about, with the settings of the last recipes and other seeds. What "
    "a recipe owed to the luck of its first seeds is gone here; what it owes to the test images is "
    "not, for these are the same. Elsewhere on this page numbers are those of the first seeds."
)
_METRICS = {"delta1": ("δ1", 4), "rel": ("rel", 4), "rmse": ("rmse, m", 3), "nll": ("NLL", 3)}


def new_seeds(contents: Contents, new: Contents, notes: Notes) -> list[str]:
    """Goals and numbers with the first seeds and with the new ones.

    Args:
        contents: Results by data set.
        new: Those with new seeds, of sets that are among them.
        notes: Remarks have the key ``new-seeds``.
    """
    first = {name: contents[name] for name in new}
    scores = read_depth(first), read_depth(new)
    judged = zip(find_goals(scores[0], first)[0], find_goals(scores[1], new)[0], strict=True)
    rows = [
        [
            now.wanted.removeprefix("Depth, "),
            f"{was.state}: {was.found}",
            f"{now.state}: {now.found}",
        ]
        for was, now in judged
        if now.found
    ]
    return [
        " ".join([_ABOUT, *notes.about("new-seeds")]),
        "",
        *(f"- {_listed(first[name], content, name)}" for name, content in new.items()),
        *table(["goal", "first seeds", "new seeds"], rows, left=3),
        "Means over the first seeds and over the new ones, ± their standard errors.",
        *table(["", "", *(title for title, _ in _METRICS.values())], _numbers(new, *scores), 2),
    ]


def new_seeds_in_short(new: Contents) -> str:
    """One sentence beside the goals; none where nothing was run."""
    found = [goal for goal in find_goals(read_depth(new), new)[0] if goal.found]
    if not found:
        return ""
    count = sum(goal.state == HOLDS for goal in found)
    where = link("new seeds", NEW_SEEDS)
    return f"With {where}, run once, {count} of the {len(found)} goals about depth are reached."


def _listed(first: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    was, now = (",".join(map(str, content["config"]["seeds"])) for content in (first, new))
    command = f"priornet reproduce depth --data depth/ --dataset {name} --seeds {now} "
    command += f"--methods {','.join(every_method(new))} --out results/depth/new-seeds"
    return f"{TITLES[name]}, beside seeds {was}: `{command}`"


def _numbers(new: Contents, first: DepthScores, second: DepthScores) -> list[list[str]]:
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
