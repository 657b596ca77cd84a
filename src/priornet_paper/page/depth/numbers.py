"""Numbers of the depth experiment by where they stand: ours and the paper's in one form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from priornet.methods import METHODS
from priornet_paper.page.markdown import with_error
from priornet_paper.page.numbers import MEASURES, Number, number

__all__ = [
    "DEPTH_MEASURES",
    "DEPTH_METHODS",
    "DEPTH_SETS",
    "FAILED",
    "FOREIGN",
    "NONE",
    "TEN_METRES",
    "TITLES",
    "DepthScores",
    "ablation",
    "every_method",
    "published_depth",
    "read_depth",
]

DEPTH_SETS = ("nyu", "kitti")
TITLES = {
    "nyu": "NYU",
    "kitti": "KITTI",
    "lsun_bedroom": "LSUN bedroom",
    "lsun_church": "LSUN church",
}
"""Names of the sets as they are written."""
DEPTH_METHODS = tuple(METHODS)
FOREIGN = {"nyu": ("lsun_bedroom", "kitti"), "kitti": ("lsun_bedroom", "nyu")}
"""Sets that the models of a set have never seen and are scored on."""
DEPTH_MEASURES = {**MEASURES, "expected_entropy": "E[H]"}
"""Measures and their symbols; the last is data uncertainty, which the paper does not report."""
TEN_METRES = math.log(10)
"""What an NLL in units of ten metres lies below the same in metres, in nats."""

NONE, FAILED = "&ndash;", "not finite"
"""What a cell says that has no number: none was to be expected, or a model has failed."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class DepthScores:
    """Numbers by data set, method, and their path below it in the results."""

    numbers: Mapping[Path, Number]
    failed: frozenset[Path] = frozenset()
    """Where a seed's value was not finite, and so has no mean."""

    def get(self, dataset: str, method: str, *path: str) -> Number | None:
        """The number, or None where there is none."""
        return self.numbers.get((dataset, method, *path))

    def mean(self, dataset: str, method: str, *path: str) -> float | None:
        """Its mean over seeds."""
        found = self.get(dataset, method, *path)
        return None if found is None else found.mean

    def text(self, digits: int, dataset: str, method: str, *path: str) -> str:
        """Mean and standard error, or why there are none."""
        found = self.get(dataset, method, *path)
        if found is not None:
            return with_error(found, digits)
        return FAILED if (dataset, method, *path) in self.failed else NONE

    @property
    def datasets(self) -> list[str]:
        """Sets that have numbers, in the paper's order."""
        found = {path[0] for path in (*self.numbers, *self.failed)}
        return [name for name in DEPTH_SETS if name in found]


def every_method(content: Mapping[str, Any]) -> dict[str, Any]:
    """Methods of a results file, and their variants."""
    return {**content["methods"], **content["variants"]}


def read_depth(contents: Mapping[str, Mapping[str, Any]]) -> DepthScores:
    """All means in results files, by data set."""
    found = {
        (dataset, method, *path): value
        for dataset, content in contents.items()
        for method, scores in every_method(content).items()
        for path, value in _summaries(scores)
    }
    numbers = {path: value for path, value in found.items() if value is not None}
    return DepthScores(numbers, frozenset(found.keys() - numbers.keys()))


def _summaries(scores: Mapping[str, Any]) -> Iterator[tuple[Path, Number | None]]:
    """Summaries over seeds, however deep they lie; curves are left out."""
    for name, value in scores.items():
        if not isinstance(value, dict):
            continue
        if "mean" not in value:
            yield from (((name, *path), found) for path, found in _summaries(value))
        elif not isinstance(value["mean"], list):
            yield (name,), number(value)


@cache
def _file() -> dict[str, Any]:
    text = resources.files(__package__ or "").joinpath("published.json").read_text("utf-8")
    return json.loads(text)


@cache
def published_depth() -> DepthScores:
    """The paper's tables, as printed: means over four seeds."""
    return DepthScores(
        {
            (dataset, method, *path): Number(value)
            for dataset, methods in _file()["methods"].items()
            for method, scores in methods.items()
            for path, value in _leaves(scores)
        }
    )


def _leaves(scores: Mapping[str, Any]) -> Iterator[tuple[Path, float]]:
    for name, value in scores.items():
        if isinstance(value, dict):
            yield from (((name, *path), found) for path, found in _leaves(value))
        else:
            yield (name,), value


def ablation(dataset: str) -> tuple[dict[str, dict[str, float]], str]:
    """The paper's NWPN by the weight of foreign images, and the measure of its OOD AUC."""
    return _file()["ablation"][dataset], _file()["ablation_measure"][dataset]
