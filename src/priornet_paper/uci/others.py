"""Merge new results into an existing file, and keep the methods that were not run again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from priornet.evaluation.results import provenance_of, read_results, signature_of
from priornet.evaluation.summaries import check_scores
from priornet_paper.runs.scores import SCORES
from priornet_paper.uci.config import METHODS, STUDENTS, own_settings

__all__ = ["with_others"]

_SAME = ("dataset", "preset", "complete", "n_rows", "n_features", "device", "versions")
_TOGETHER = ("ENSM", *STUDENTS)  # a student is compared with the ensemble that taught it


def with_others(path: Path, new: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """New results, with what the file says of other methods whose settings are the same.

    Args:
        path: Where the results will be written; need not exist.
        new: The results.

    Returns:
        The results for the file, every method with its own signature, and the methods that it
        loses: damaged ones, those of other settings, and students and ensembles where others of
        these are new.
    """
    try:
        old = read_results(path)
        sound = {name: scores for name, scores in old["methods"].items() if _is_sound(scores)}
        found = _merged({**old, "methods": sound}, new)
        return found, [name for name in old["methods"] if name not in found["methods"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return new, []  # there is none, or it is no results file: it will be replaced


def _is_sound(scores: Any) -> bool:
    try:
        check_scores(scores, SCORES)
    except ValueError:
        return False
    return True


def _merged(old: Mapping[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    taught_anew = any(name in new["methods"] for name in _TOGETHER)
    kept = {
        name: {**scores, **signature_of(old, scores)}
        for name, scores in old["methods"].items()
        if name not in new["methods"]
        and not (taught_anew and name in _TOGETHER)
        and own_settings(old["config"], name) == own_settings(new["config"], name)
    }
    if not kept or any(old[name] != new[name] for name in _SAME):
        return new
    methods = {**kept, **new["methods"]}
    earlier = sum(scores["seconds"] for scores in kept.values()) / old["workers"]
    return {
        **new,
        "methods": {name: methods[name] for name in sorted(methods, key=METHODS.index)},
        "seconds": round(new["seconds"] + earlier, 1),
        **provenance_of([signature_of(new, scores) for scores in methods.values()]),
    }
