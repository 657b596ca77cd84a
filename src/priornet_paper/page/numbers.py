"""Numbers by data set, metric, method and measure: ours and the paper's in one form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

__all__ = [
    "KNOWLEDGE",
    "MEASURES",
    "METHODS",
    "SETS",
    "Key",
    "Number",
    "Scores",
    "number",
    "peers",
    "published",
    "read_methods",
]

SETS = ("boston", "energy", "concrete", "wine", "power")
"""The sets that the paper reports and that can be run here in full, in its order of size."""
METHODS = ("Single", "ENSM", "EnD2", "NWPN")
"""The methods of the paper's tables."""
MEASURES = {
    "total_entropy": "H[E]",
    "total_variance": "V[y]",
    "mutual_information": "I",
    "epkl": "K",
    "variance_of_mean": "V[mu]",
}
"""Measures of the paper's tables, and its symbols for them."""
KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
"""Those that measure knowledge uncertainty."""


class Number(NamedTuple):
    """A mean over folds, its standard error where it is known, and the folds where they are."""

    mean: float
    error: float | None = None
    values: tuple[float, ...] = ()


class Key(NamedTuple):
    """Where a number stands; ``measure`` is empty for metrics that need none."""

    dataset: str
    metric: str
    method: str
    measure: str = ""


@dataclass(frozen=True)
class Scores:
    """Numbers by key, and how many rows each table has."""

    numbers: Mapping[Key, Number]
    n_rows: Mapping[str, int]

    def get(self, dataset: str, metric: str, method: str, measure: str = "") -> Number | None:
        """The number, or None where there is none."""
        return self.numbers.get(Key(dataset, metric, method, measure))

    @property
    def datasets(self) -> list[str]:
        """Tables that have numbers, smallest first."""
        found = {key.dataset for key in self.numbers}
        return sorted(found, key=lambda name: (self.n_rows[name], name))


def number(value: Any) -> Number | None:
    """A number from its summary in results JSON; null, and a mean that is not finite, are None."""
    if value is None or value["mean"] is None:
        return None
    values: list[float] = value.get("values") or []
    return Number(value["mean"], value.get("sem"), tuple(values))


def read_methods(dataset: str, methods: Mapping[str, Any]) -> dict[Key, Number]:
    """Everything in the ``methods`` of one results file, by key."""
    found = ((key, number(value)) for key, value in _summaries(dataset, methods))
    return {key: value for key, value in found if value is not None}


def _summaries(dataset: str, methods: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    for method, content in methods.items():
        for metric in ("rmse", "nll", "crps", "coverage90"):
            yield Key(dataset, metric, method), content.get(metric)
        for metric in ("prr", "ood_auc"):
            for measure, value in (content.get(metric) or {}).items():
                yield Key(dataset, metric, method, measure), value


@cache
def _file() -> dict[str, Any]:
    text = resources.files(__package__ or "").joinpath("published.json").read_text("utf-8")
    return json.loads(text)


def published() -> Scores:
    """The paper's tables. What it calls a standard deviation behaves like a standard error."""
    numbers: dict[Key, Number] = {}
    content = _file()
    for dataset, metrics in content["uci"].items():
        for metric, methods in metrics.items():
            for method, value in methods.items():
                by_measure = value if isinstance(value, dict) else {"": value}
                for measure, pair in by_measure.items():
                    if pair is not None:
                        numbers[Key(dataset, metric, method, measure)] = Number(*pair)
    return Scores(numbers, content["n_rows"])


def peers() -> dict[str, dict[str, Any]]:
    """Other published methods: where the numbers come from, NLL and RMSE by data set."""
    return _file()["peers"]
