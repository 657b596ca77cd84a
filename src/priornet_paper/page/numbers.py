"""Scores by data set, method and metric, ours and published ones in one form, and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean, stdev
from typing import Any, NamedTuple

from priornet.methods import COMPARED

SETS = ("boston", "energy", "concrete", "wine", "power")
"""The UCI tables that the paper reports and that can be run here in full, in its order of size."""
PAPER_METHODS = ("Single", "ENSM", "EnD2", "NWPN")
"""The methods of the paper's UCI tables."""
MEASURES = {
    "total_entropy": "H[E]",
    "total_variance": "V[y]",
    "mutual_information": "I",
    "epkl": "K",
    "variance_of_mean": "V[mu]",
}
"""Measures of the paper's tables, and its symbols for them."""
KNOWLEDGE = ("mutual_information", "epkl", "variance_of_mean")
"""The measures of knowledge uncertainty."""

DEPTH_SETS = ("nyu", "kitti")
TITLES = {
    "nyu": "NYU",
    "kitti": "KITTI",
    "lsun_bedroom": "LSUN bedroom",
    "lsun_church": "LSUN church",
}
"""Names of the image sets as they are written."""
DEPTH_METHODS = tuple(COMPARED)
OOD_SETS = {"nyu": ("lsun_bedroom", "kitti"), "kitti": ("lsun_bedroom", "nyu")}
"""Out-of-domain sets on which the models of a set are scored."""
DEPTH_MEASURES = {**MEASURES, "expected_entropy": "E[H]"}
"""Measures and their symbols; the last is data uncertainty, which the paper does not report."""
TEN_METRES = math.log(10)
"""Nats by which an NLL in units of ten metres lies below the same NLL in metres."""

ROUNDING = 1e-9
"""Difference up to which two numbers count as equal."""
MOST_ERRORS = 2.0
"""Combined standard errors by which a lower-is-better metric may lie above the paper's."""
MARGIN = 0.08
"""Distance by which a PRR or an AUC may lie below the paper's."""

NONE, FAILED = "&ndash;", "not finite"
"""Texts of a cell without a number: none was expected, or the model failed."""

Path = tuple[str, ...]
Content = Mapping[str, Any]
"""What a results file holds."""


class Number(NamedTuple):
    """A mean over folds or seeds, its standard error and its values where they are known."""

    mean: float
    error: float | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scores:
    """Numbers by data set, method, and their path below it in the results."""

    numbers: Mapping[Path, Number]
    order: Collection[str] = DEPTH_SETS
    """Data sets in the order of the page."""
    failed: frozenset[Path] = frozenset()
    """Scores without a mean: the value of a seed was not finite."""

    def get(self, dataset: str, method: str, *path: str) -> Number | None:
        """Return the number, or None."""
        return self.numbers.get((dataset, method, *path))

    def mean(self, dataset: str, method: str, *path: str) -> float | None:
        """Return the mean over folds or seeds, or None."""
        found = self.get(dataset, method, *path)
        return None if found is None else found.mean

    def text(self, digits: int, dataset: str, method: str, *path: str) -> str:
        """Format mean and standard error, or say why there are none."""
        found = self.get(dataset, method, *path)
        if found is not None:
            return with_error(found, digits)
        return FAILED if (dataset, method, *path) in self.failed else NONE

    @property
    def datasets(self) -> list[str]:
        """List the data sets that have numbers."""
        found = {path[0] for path in (*self.numbers, *self.failed)}
        return [name for name in self.order if name in found]


def number(value: Any) -> Number | None:
    """Read a number from its summary in results JSON; None for null and for a mean that is null."""
    if value is None or value["mean"] is None:
        return None
    return Number(value["mean"], value.get("sem"), tuple(value.get("values") or ()))


def every_method(content: Content) -> dict[str, Any]:
    """Join the methods of a results file and their variants."""
    return {**content["methods"], **content.get("variants", {})}


def read_scores(contents: Mapping[str, Content], order: Collection[str] = DEPTH_SETS) -> Scores:
    """Read all summaries of results files, given by data set."""
    found = {
        (dataset, method, *path): number(value)
        for dataset, content in contents.items()
        for method, scores in every_method(content).items()
        for path, value in _leaves(scores)
        if isinstance(value, dict) and not isinstance(value["mean"], list)  # lists are curves
    }
    numbers = {path: value for path, value in found.items() if value is not None}
    return Scores(numbers, order, frozenset(found.keys() - numbers.keys()))


def _leaves(scores: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield the summaries and the plain values of nested dictionaries with their paths."""
    for name, value in scores.items():
        if isinstance(value, dict) and "mean" not in value:
            yield from (((name, *path), found) for path, found in _leaves(value))
        else:
            yield (name,), value


@cache
def _published() -> dict[str, Any]:
    text = resources.files(__package__ or "").joinpath("published.json").read_text("utf-8")
    return json.loads(text)


@cache
def published() -> Scores:
    """Read the paper's UCI tables; its "standard deviation" has the size of a standard error."""
    numbers = {
        (dataset, method, metric, *path): Number(*pair)
        for dataset, metrics in _published()["uci"].items()
        for metric, methods in metrics.items()
        for (method, *path), pair in _leaves(methods)
        if pair is not None
    }
    n_rows: dict[str, int] = _published()["n_rows"]
    return Scores(numbers, sorted(n_rows, key=lambda name: n_rows[name]))


@cache
def published_depth() -> Scores:
    """Read the paper's depth tables, as printed: means over four seeds."""
    numbers = {
        (dataset, *path): Number(value)
        for dataset, methods in _published()["depth"]["methods"].items()
        for path, value in _leaves(methods)
    }
    return Scores(numbers)


def ablation(dataset: str) -> tuple[dict[str, dict[str, float]], str]:
    """Read the paper's NWPN by the weight of OOD images, and the measure of its OOD AUC."""
    depth = _published()["depth"]
    return depth["ablation"][dataset], depth["ablation_measure"][dataset]


def peers() -> dict[str, dict[str, Any]]:
    """Read other published methods: source, NLL and RMSE by data set."""
    return _published()["peers"]


def decimals(value: float) -> int:
    """Choose decimals that show an RMSE or NLL to about three figures.

    Example:
        >>> [decimals(v) for v in (0.64, 3.2, 54.0)]
        [3, 2, 1]
    """
    size = abs(value)
    return 3 if size < 1 else 2 if size < 10 else 1


def shown(value: float, digits: int = 2) -> str:
    """Format a number with fixed decimals, never as a negative zero.

    Example:
        >>> shown(-0.001), shown(1.005, 1)
        ('0.00', '1.0')
    """
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def signed(value: float, digits: int = 2) -> str:
    """Format a difference, with its sign.

    Example:
        >>> signed(0.5), signed(-0.001)
        ('+0.50', '0.00')
    """
    text = shown(value, digits)
    return f"+{text}" if float(text) > 0 else text


def with_error(number: Number, digits: int = 2, *, is_signed: bool = False) -> str:
    """Format a mean and its standard error.

    Example:
        >>> with_error(Number(3.524, 0.321)), with_error(Number(0.02), 3, is_signed=True)
        ('3.52 ± 0.32', '+0.020')
    """
    mean = signed(number.mean, digits) if is_signed else shown(number.mean, digits)
    return mean if number.error is None else f"{mean} ± {shown(number.error, digits)}"


# -- our number beside another -------------------------------------------------------------------


def difference_in_errors(ours: Number, theirs: Number) -> float:
    """Compute by how many standard errors of the difference our number lies above the other.

    Example:
        >>> difference_in_errors(Number(3.5, 0.3), Number(3.0, 0.4))
        1.0
    """
    gap = ours.mean - theirs.mean
    error = math.hypot(ours.error or 0.0, theirs.error or 0.0)
    if error > 0:
        return gap / error
    return math.copysign(math.inf, gap) if gap else 0.0


def is_worse(ours: Number, theirs: Number) -> bool:
    """Tell if a lower-is-better metric is worse by more than two combined errors."""
    return difference_in_errors(ours, theirs) > MOST_ERRORS + ROUNDING


def is_far_below(ours: Number, theirs: Number, margin: float = MARGIN) -> bool:
    """Tell if a higher-is-better metric falls short by more than the margin."""
    return ours.mean < theirs.mean - margin - ROUNDING


def paired(ours: Number, theirs: Number) -> Number:
    """Compute the mean difference, with its standard error over folds if both have the same."""
    gap = ours.mean - theirs.mean
    if len(ours.values) != len(theirs.values) or len(ours.values) < 2:
        return Number(gap)
    gaps = tuple(a - b for a, b in zip(ours.values, theirs.values, strict=True))
    return Number(gap, stdev(gaps) / math.sqrt(len(gaps)), gaps)


def paired_ratio(ours: Number, theirs: Number) -> Number:
    """Compute the ratio of the means, with the error of the paired difference on its scale."""
    gap = paired(ours, theirs)
    error = None if gap.error is None else gap.error / abs(theirs.mean)
    return Number(ours.mean / theirs.mean, error)


def pooled(numbers: Sequence[Number]) -> Number:
    """Pool runs with different folds: one number over all folds, taken as independent.

    Example:
        >>> pooled([Number(1.0, 1.0, (0.0, 2.0)), Number(4.0, 1.0, (3.0, 5.0))]).mean
        2.5
    """
    if len(numbers) == 1:
        return numbers[0]
    values = tuple(value for number in numbers for value in number.values)
    if len(values) < 2 or not all(number.values for number in numbers):
        raise ValueError("numbers of several runs need the values of their folds.")
    return Number(fmean(values), stdev(values) / math.sqrt(len(values)), values)
