"""The paper's claims, each with a rule that turns numbers into a verdict.

A claim has parts, a part is counted over cells. The same rules judge our numbers and the paper's
own, which shows how strict they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

from priornet_paper.page.numbers import KNOWLEDGE, METHODS, Number, Scores

__all__ = ["CLAIMS", "NOT_MEASURED", "Claim", "Part", "verdict"]

CONFIRMED, PARTLY = "confirmed", "partly"
NOT_CONFIRMED, NOT_MEASURED = "not confirmed", "not measured"
MOST, HALF = 0.8, 0.5
_BELIEFS = ("ENSM", "EnD2", "NWPN")
# I and K do not depend on the scale of the noise, V[mu] does: they are counted apart.
_KNOWLEDGE = {"I or K": ("mutual_information", "epkl"), "V[mu]": ("variance_of_mean",)}
_TIE = 1.01  # RMSE within one per cent
_CLOSE_RMSE, _CLOSE_NLL = 1.05, 0.05


class Part(NamedTuple):
    """Part of a claim: in how many of its cells it held."""

    what: str
    held: int
    total: int

    def __str__(self) -> str:
        return f"{self.what}: {self.held} of {self.total}"


class Claim(NamedTuple):
    """What the paper says, and how it is judged from scores."""

    name: str
    text: str
    parts: Callable[[Scores], list[Part]]


def verdict(parts: Sequence[Part]) -> str:
    """Confirmed when every part holds in 80 % of its cells, not when none does in half of them.

    Example:
        >>> verdict([Part("a", 5, 5), Part("b", 1, 5)])
        'partly'
    """
    if not parts or any(part.total == 0 for part in parts):
        return NOT_MEASURED
    shares = [part.held / part.total for part in parts]
    if min(shares) >= MOST:
        return CONFIRMED
    return NOT_CONFIRMED if max(shares) < HALF else PARTLY


def _part(what: str, cells: Sequence[bool]) -> Part:
    return Part(what, sum(cells), len(cells))


def _best_rmse(scores: Scores) -> list[Part]:
    cells: list[bool] = []
    for dataset in scores.datasets:
        found = {method: scores.get(dataset, "rmse", method) for method in METHODS}
        means = {method: value.mean for method, value in found.items() if value is not None}
        if len(means) == len(METHODS):
            cells.append(means["ENSM"] <= _TIE * min(means.values()))
    return [_part("data sets where the ensemble's RMSE is lowest, or within 1 % of it", cells)]


def _gaps(scores: Scores) -> list[tuple[float, float]]:
    """RMSE ratio and NLL difference of EnD2 to ENSM, from the smallest table to the largest."""
    gaps: list[tuple[float, float]] = []
    for dataset in scores.datasets:
        student, teacher = (
            [scores.get(dataset, metric, method) for metric in ("rmse", "nll")]
            for method in ("EnD2", "ENSM")
        )
        if None not in student and None not in teacher:
            (rmse, nll), (rmse0, nll0) = _means(student), _means(teacher)
            gaps.append((rmse / rmse0, nll - nll0))
    return gaps


def _means(values: Sequence[Number | None]) -> list[float]:
    return [value.mean for value in values if value is not None]


def _close_to_ensemble(scores: Scores) -> list[Part]:
    gaps = _gaps(scores)
    close = [ratio <= _CLOSE_RMSE and gap <= _CLOSE_NLL for ratio, gap in gaps]
    pairs = list(combinations(gaps, 2))  # the second of a pair is the larger table
    return [
        _part("data sets where EnD2's RMSE is within 5 % and its NLL within 0.05 of ENSM's", close),
        _part(
            "pairs of data sets where the larger one has the smaller RMSE gap",
            [large[0] <= small[0] for small, large in pairs],
        ),
        _part(
            "pairs where it has the smaller NLL gap",
            [large[1] <= small[1] for small, large in pairs],
        ),
    ]


def _by_measure(
    scores: Scores, metric: str, measures: Sequence[str]
) -> list[tuple[Number, Number]]:
    """Scores by each measure beside that of the same model by total variance."""
    found = [
        (
            scores.get(dataset, metric, method, measure),
            scores.get(dataset, metric, method, "total_variance"),
        )
        for dataset in scores.datasets
        for method in _BELIEFS
        for measure in measures
    ]
    return [(value, total) for value, total in found if value is not None and total is not None]


def _beats(value: Number, chance: float) -> bool:
    return value.mean - 2 * (value.error or 0.0) > chance


def _errors_by_total(scores: Scores) -> list[Part]:
    total = _by_measure(scores, "prr", ["total_variance"])
    return [
        _part(
            "PRR by V[y] above 0 by more than two standard errors",
            [_beats(value, 0.0) for value, _ in total],
        ),
        *(
            _part(
                f"PRR by {title} less than half of that by V[y]",
                [v.mean < 0.5 * t.mean for v, t in _by_measure(scores, "prr", measures)],
            )
            for title, measures in _KNOWLEDGE.items()
        ),
    ]


def _foreign_by_knowledge(scores: Scores) -> list[Part]:
    known = _by_measure(scores, "ood_auc", KNOWLEDGE)
    return [
        _part(
            "AUC by I, K or V[mu] above 0.5 by more than two standard errors",
            [_beats(value, 0.5) for value, _ in known],
        ),
        *(
            _part(
                f"AUC by {title} above that by V[y]",
                [v.mean > t.mean for v, t in _by_measure(scores, "ood_auc", measures)],
            )
            for title, measures in _KNOWLEDGE.items()
        ),
    ]


CLAIMS = (
    Claim("best-rmse", "Ensembles have the best RMSE", _best_rmse),
    Claim(
        "close-to-ensemble",
        "EnD2 comes close to the ensemble, more so on larger sets",
        _close_to_ensemble,
    ),
    Claim(
        "errors-by-total",
        "Total uncertainty detects errors, knowledge uncertainty does not",
        _errors_by_total,
    ),
    Claim(
        "foreign-by-knowledge",
        "Knowledge uncertainty detects out-of-domain rows",
        _foreign_by_knowledge,
    ),
)
