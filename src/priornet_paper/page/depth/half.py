"""The depth half of the page, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from priornet_paper.page.depth.accuracy import accuracy, likelihood
from priornet_paper.page.depth.detection import detection, gamma_table
from priornet_paper.page.depth.goals import find_goals
from priornet_paper.page.depth.new_seeds import NEW_SEEDS, new_seeds
from priornet_paper.page.depth.numbers import DEPTH_SETS, TITLES, published_depth, read_depth
from priornet_paper.page.depth.ranks import ranks
from priornet_paper.page.depth.recipes import RECIPES, Earlier, recipes
from priornet_paper.page.depth.setting import SETTING, setting
from priornet_paper.page.notes import Notes
from priornet_paper.page.section import Section

__all__ = ["DEPTH_FIGURES", "depth_parts"]

_LIKELIHOOD = "Depth: likelihood and calibration"
_DETECTION = "Depth: foreign images told apart"
_WEIGHT = "Depth: the weight of foreign images"
_RANKS = "Depth: what uncertainty goes along with"
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
    "What the ensemble and EnD2, of the first seed, say of the first images of each set. `priornet "
    "reproduce depth-maps` draws them, and once more beside the photographs in an ignored folder: "
    "these have owners."
)
_MISSING = (
    "**The depth experiment has not been run {where}**: there is no {files}. "
    "`priornet reproduce depth --dataset {first}` makes {it}."
)


def depth_parts(
    contents: Mapping[str, Mapping[str, Any]],
    earlier: Earlier | None = None,
    new: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Notes | None = None,
) -> dict[str, Section]:
    """Sections by title; one that says so where nothing has been run.

    Args:
        contents: Results by data set.
        earlier: Those of earlier recipes, by data set and name; they have a part if there are any.
        new: The results once more with other seeds, by data set; they have a part, too.
        notes: Remarks on both.
    """
    ours, paper = read_depth(contents), published_depth()
    goals, misses = find_goals(ours, contents)
    start = Section(_missing(contents), goals, misses)
    if not contents:
        return {"Depth": start}
    start.lines += setting(contents)
    known = {name: found for name, found in (earlier or {}).items() if name in contents and found}
    notes, more = notes or Notes(), dict[str, Section]()
    if known:
        more[RECIPES] = Section(recipes(contents, known, notes))
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


def _missing(contents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    absent = [name for name in DEPTH_SETS if name not in contents]
    if not absent:
        return []
    files = " and no ".join(f"`results/depth/{name}.json`" for name in absent)
    where = "on " + " and ".join(TITLES[name] for name in absent)
    it = "it" if len(absent) == 1 else "the first"
    return [_MISSING.format(where=where, files=files, first=absent[0], it=it), ""]
