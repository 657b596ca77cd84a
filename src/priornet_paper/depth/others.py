"""Merge new results into an existing file, and keep the methods that were not run again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from priornet.evaluation.results import provenance_of, read_results, signature_of
from priornet.evaluation.summaries import check_summaries
from priornet_paper.depth.config import METHODS, STUDENTS, Config
from priornet_paper.depth.digests import same_digests

__all__ = ["total_seconds", "with_others"]

_GROUPS = ("methods", "variants")


def with_others(path: Path, new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """New results, with what the file says of other methods that would come out the same.

    That takes the same images and seeds, and the same settings as far as a method looks at them.
    Students belong to the ensemble that taught them, and go with it where it was trained anew.

    Args:
        path: Where the results will be written; need not exist.
        new: The results.

    Returns:
        The results for the file, and the methods that it loses.
    """
    try:
        old = read_results(path)
        check_summaries([old[group] for group in _GROUPS])
        found = _merged(old, new)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return new, []  # there is none, or it is no results file: it will be replaced
    lost = [name for group in _GROUPS for name in old[group] if name not in found[group]]
    return found, lost


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    if old.get("protocol") != new["protocol"]:
        return new
    if not same_digests(old.get("digests", {}), new["digests"]):
        return new
    kept = {
        group: {
            name: found
            for name, found in old[group].items()
            if name not in new[group] and _stands(name, found, old, new)
        }
        for group in _GROUPS
    }
    if not any(kept.values()):
        return new
    signatures = [signature_of(old, found) for group in kept.values() for found in group.values()]
    groups = {group: _in_order(kept[group] | new[group]) for group in _GROUPS}
    return {
        **new,
        **groups,
        "digests": old["digests"],  # no more than is known of all methods
        "seconds": total_seconds(groups),
        **provenance_of([new, *signatures]),
    }


def _in_order(methods: dict[str, Any]) -> dict[str, Any]:
    names = sorted(methods, key=lambda name: METHODS.index(_method(name)))
    return {name: methods[name] for name in names}


def _stands(
    name: str, found: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> bool:
    """Whether an old method's results are what the new settings would give."""
    method = _method(name)
    if method in STUDENTS and not _same_teachers(old["methods"], new["methods"]):
        return False
    changes = found.get("settings", {})  # in which a variant differs from what stands above it
    try:
        was, asked = (Config.from_json(run["config"] | changes) for run in (old, new))
    except ValueError:  # settings of another version
        return False
    return was.seeds == asked.seeds and was.settings_of(method) == asked.settings_of(method)


def _same_teachers(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether an ensemble is not new, or only scored anew."""
    if "ENSM" not in new:
        return True
    return "ENSM" in old and old["ENSM"]["training"] == new["ENSM"]["training"]


def _method(name: str) -> str:
    """That a recipe is of."""
    return name if name in METHODS else name.partition("-")[0]


def total_seconds(groups: Mapping[str, Any]) -> float:
    """Seconds of all methods; what two of them share was done once."""
    methods = groups["methods"]
    total = sum(method["seconds"] for group in groups.values() for method in group.values())
    if {"Single", "ENSM"} <= methods.keys():  # Single is the ensemble's first member
        total -= sum(networks[0]["seconds"] for networks in methods["Single"]["training"])
    return round(total, 1)
