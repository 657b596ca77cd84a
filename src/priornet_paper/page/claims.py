"""The paper's claims, each with a rule that turns numbers into a verdict.

A claim has parts, a part is counted over cells. The same rules judge our numbers and the paper's
own, which shows how strict they are.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from priornet_paper.page.numbers import (
    DEPTH_MEASURES,
    DEPTH_METHODS,
    KNOWLEDGE,
    OOD_SETS,
    PAPER_METHODS,
    ROUNDING,
    TITLES,
    Number,
    Scores,
    shown,
)

CONFIRMED, PARTLY = "confirmed", "partly"
NOT_CONFIRMED, NOT_MEASURED = "not confirmed", "not measured"
MOST, HALF = 0.8, 0.5


class Part(NamedTuple):
    """Part of a claim: the number of its cells in which it held."""

    what: str
    held: int
    total: int

    def __str__(self) -> str:
        return f"{self.what}: {self.held} of {self.total}"


class Claim(NamedTuple):
    """A claim of the paper, the rule that counts its parts, and the numbers behind them."""

    name: str
    text: str
    parts: Callable[[Any], list[Part]]
    numbers: Callable[[Any], list[str]] = lambda _: []


def counted(what: str, cells: Iterable[bool]) -> Part:
    """Count the cells in which a part held."""
    listed = list(cells)
    return Part(what, sum(listed), len(listed))


def verdict(parts: Sequence[Part]) -> str:
    """Return confirmed if every part holds in 80 % of its cells, not if none does in half of them.

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


def _known(scores: Scores, dataset: str, methods: Sequence[str], *path: str) -> dict[str, float]:
    """Collect the means of those methods that have one."""
    found = {method: scores.mean(dataset, method, *path) for method in methods}
    return {method: value for method, value in found.items() if value is not None}


# -- UCI tables -----------------------------------------------------------------------------------

_WITH_KNOWLEDGE = ("ENSM", "EnD2", "NWPN")
# I and K do not depend on the scale of the noise, V[mu] does: they are counted apart.
_BY_KNOWLEDGE = {"I or K": ("mutual_information", "epkl"), "V[mu]": ("variance_of_mean",)}
_TIE = 1.01  # RMSE within one per cent
_CLOSE_RMSE, _CLOSE_NLL = 1.05, 0.05


def _best_rmse(scores: Scores) -> list[Part]:
    found = [_known(scores, dataset, PAPER_METHODS, "rmse") for dataset in scores.datasets]
    whole = [means for means in found if len(means) == len(PAPER_METHODS)]
    cells = [means["ENSM"] <= _TIE * min(means.values()) for means in whole]
    return [counted("data sets where the ensemble's RMSE is lowest, or within 1 % of it", cells)]


def _close_to_ensemble(scores: Scores) -> list[Part]:
    gaps: list[tuple[float, float]] = []  # RMSE ratio, NLL difference; the smallest table first
    for dataset in scores.datasets:
        rmse, nll = (_known(scores, dataset, ("EnD2", "ENSM"), m) for m in ("rmse", "nll"))
        if len(rmse) == len(nll) == 2:
            gaps.append((rmse["EnD2"] / rmse["ENSM"], nll["EnD2"] - nll["ENSM"]))
    pairs = list(combinations(gaps, 2))  # the second of a pair is the larger table
    return [
        counted(
            "data sets where EnD2's RMSE is within 5 % and its NLL within 0.05 of ENSM's",
            (ratio <= _CLOSE_RMSE and gap <= _CLOSE_NLL for ratio, gap in gaps),
        ),
        counted(
            "pairs of data sets where the larger one has the smaller RMSE gap",
            (large[0] <= small[0] for small, large in pairs),
        ),
        counted(
            "pairs where it has the smaller NLL gap",
            (large[1] <= small[1] for small, large in pairs),
        ),
    ]


def _by_measures(
    scores: Scores, metric: str, measures: Sequence[str], holds: Callable[[Number, Number], bool]
) -> list[bool]:
    """Compare the score by each measure with that of the same model by total variance."""
    return [
        holds(value, total)
        for dataset in scores.datasets
        for method in _WITH_KNOWLEDGE
        for measure in measures
        if (value := scores.get(dataset, method, metric, measure)) is not None
        and (total := scores.get(dataset, method, metric, "total_variance")) is not None
    ]


def _beats(value: Number, chance: float) -> bool:
    return value.mean - 2 * (value.error or 0.0) > chance


def _errors_by_total(scores: Scores) -> list[Part]:
    first = _by_measures(scores, "prr", ["total_variance"], lambda v, _: _beats(v, 0.0))
    parts = [counted("PRR by V[y] above 0 by more than two standard errors", first)]
    for title, measures in _BY_KNOWLEDGE.items():
        cells = _by_measures(scores, "prr", measures, lambda v, t: v.mean < 0.5 * t.mean)
        parts.append(counted(f"PRR by {title} less than half of that by V[y]", cells))
    return parts


def _ood_by_knowledge(scores: Scores) -> list[Part]:
    first = _by_measures(scores, "ood_auc", KNOWLEDGE, lambda v, _: _beats(v, 0.5))
    parts = [counted("AUC by I, K or V[mu] above 0.5 by more than two standard errors", first)]
    for title, measures in _BY_KNOWLEDGE.items():
        cells = _by_measures(scores, "ood_auc", measures, lambda v, t: v.mean > t.mean)
        parts.append(counted(f"AUC by {title} above that by V[y]", cells))
    return parts


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
        "ood-by-knowledge",
        "Knowledge uncertainty detects out-of-domain rows",
        _ood_by_knowledge,
    ),
)

# -- depth ----------------------------------------------------------------------------------------

_ALL = tuple(name for name in DEPTH_METHODS if name != "DD")
_ONE_NETWORK = tuple(name for name in _ALL if name != "ENSM")
_TRAINED_WITHOUT_OOD = tuple(name for name in _ALL if name != "NWPN")
# Metric, its name, and the sign that turns less into better.
_ACCURACY = (("delta1", "δ1", -1), ("rel", "rel", 1), ("rmse", "rmse", 1))
_LOW_DELTA, _HIGH_ERROR = 0.01, 1.02
_HEAVY, _LIGHT = ("EnD2", "NWPN", "DER"), ("Single", "ENSM", "EnD", "MD-EnD")
_STEADY = (("delta1", "δ1"), ("rmse", "rmse"), ("nll", "NLL"))
_TOTAL, _SCALE_FREE = ("total_entropy", "total_variance"), ("mutual_information", "epkl")
_PAPER_MEASURES = tuple(name for name in DEPTH_MEASURES if name != "expected_entropy")


def _line(title: str, values: dict[str, float], digits: int = 3) -> list[str]:
    texts = ", ".join(f"{name} {shown(value, digits)}" for name, value in values.items())
    return [f"{title}: {texts}"] if values else []


def _by_method(methods: Sequence[str], *metrics: tuple[str, str]) -> Callable[[Scores], list[str]]:
    """Make a line for each set and metric, with the means of several methods."""
    return lambda scores: [
        line
        for dataset in scores.datasets
        for metric, title in metrics
        for line in _line(
            f"{TITLES[dataset]}, {title}",
            _known(scores, dataset, methods, metric),
            2 if metric == "nll" else 3,
        )
    ]


def _match_dd(scores: Scores) -> list[Part]:
    parts: list[Part] = []
    for metric, title, sign in _ACCURACY:
        cells: list[bool] = []
        for dataset in scores.datasets:
            plain = scores.mean(dataset, "DD", metric)
            if plain is not None:
                worst = plain - _LOW_DELTA if sign < 0 else _HIGH_ERROR * plain
                found = _known(scores, dataset, _ALL, metric).values()
                cells += [sign * value <= sign * worst + ROUNDING for value in found]
        limit = f"at most {_LOW_DELTA} below DD's" if sign < 0 else "at most 2 % above DD's"
        parts.append(counted(f"models whose {title} is {limit}", cells))
    return parts


def _closest(scores: Scores) -> list[Part]:
    cells: list[bool] = []
    for dataset in scores.datasets:
        for metric, _, sign in (*_ACCURACY, ("log10", "log10", 1)):
            found = _known(scores, dataset, _ONE_NETWORK, metric)
            if "EnD2" in found and len(found) > 1:
                best = min(sign * value for value in found.values())
                cells.append(sign * found["EnD2"] <= best + ROUNDING)
    return [counted("of δ1, rel, rmse and log10, where EnD2 is the best single network", cells)]


def _best_nll(scores: Scores) -> list[Part]:
    parts: list[Part] = []
    for method in _HEAVY:
        cells = [
            own < value
            for dataset in scores.datasets
            if (own := scores.mean(dataset, method, "nll")) is not None
            for value in _known(scores, dataset, _LIGHT, "nll").values()
        ]
        parts.append(counted(f"NLL of {method} below that of {', '.join(_LIGHT)}", cells))
    return parts


def _aucs(
    scores: Scores, methods: Sequence[str], measures: Sequence[str], *datasets: str
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Collect OOD AUCs by method, for each set, OOD set and measure."""
    return {
        (dataset, other, measure): _known(scores, dataset, methods, "ood_auc", other, measure)
        for dataset in datasets
        for other in OOD_SETS[dataset]
        for measure in measures
    }


def _gaussians_worse(scores: Scores) -> list[Part]:
    parts: list[Part] = []
    for method in ("EnD", "MD-EnD"):
        found = _aucs(scores, (method, "Single"), ("total_variance",), *scores.datasets).values()
        cells = [means[method] < means["Single"] for means in found if len(means) == 2]
        parts.append(
            counted(f"pairs of sets where {method}'s AUC by V[y] is below Single's", cells)
        )
    return parts


def _gaussians_numbers(scores: Scores) -> list[str]:
    methods = ("Single", "EnD", "MD-EnD")
    found = _aucs(scores, methods, ("total_variance",), *scores.datasets).items()
    return [
        line
        for (dataset, other, _), means in found
        for line in _line(f"{TITLES[dataset]} against {TITLES[other]}", means)
    ]


def _inverted(scores: Scores) -> list[Part]:
    total, free = (
        [value for means in found.values() for value in means.values()]
        for found in (
            _aucs(scores, _TRAINED_WITHOUT_OOD, _TOTAL, "kitti"),
            _aucs(scores, ("ENSM", "EnD2"), _SCALE_FREE, "kitti"),
        )
    )
    return [
        counted("AUC by H[E] or V[y] below 0.5, all models but NWPN", (v < 0.5 for v in total)),
        counted("AUC by I or K above 0.5, of ENSM and EnD2", (v > 0.5 for v in free)),
    ]


def _inverted_numbers(scores: Scores) -> list[str]:
    found = _aucs(scores, _TRAINED_WITHOUT_OOD, _TOTAL[1:], "kitti")
    found |= _aucs(scores, ("ENSM", "EnD2"), _SCALE_FREE, "kitti")
    by_set = sorted(found.items(), key=lambda item: OOD_SETS["kitti"].index(item[0][1]))
    return [
        line
        for (_, other, measure), means in by_set
        for line in _line(f"{TITLES[other]}, {DEPTH_MEASURES[measure]}", means)
    ]


def _der_fails(scores: Scores) -> list[Part]:
    found = _aucs(scores, ("DER",), _PAPER_MEASURES, "kitti").values()
    cells = [value < 0.5 for means in found for value in means.values()]
    return [counted("DER's AUC below 0.5, by each measure on each set", cells)]


def _der_numbers(scores: Scores) -> list[str]:
    lines: list[str] = []
    for name in OOD_SETS["kitti"]:
        found = {m: scores.mean("kitti", "DER", "ood_auc", name, m) for m in _PAPER_MEASURES}
        known = {DEPTH_MEASURES[m]: value for m, value in found.items() if value is not None}
        lines += _line(TITLES[name], known)
    return lines


def _steadier(scores: Scores) -> list[Part]:
    spreads = [_spreads(scores, name, metric) for name in scores.datasets for metric, _ in _STEADY]
    calmer = [warm < cold for warm, cold in filter(None, spreads)]
    parts = [counted("spread over seeds of δ1, rmse and NLL smaller with T = 10", calmer)]
    for title, path in (
        ("NLL", ("nll",)),
        ("NLL's 99.9 % quantile", ("nll_quantiles", "99.9")),
        ("C-AUC of normal intervals", ("c_auc", "normal_intervals")),
    ):
        found = [
            list(_known(scores, dataset, _warm_and_cold(scores, dataset), *path).values())
            for dataset in scores.datasets
        ]
        cells = [pair[0] < pair[1] for pair in found if len(pair) == 2]  # warm, cold
        parts.append(counted(f"{title} lower with T = 10", cells))
    return parts


def _warm_and_cold(scores: Scores, dataset: str) -> tuple[str, str]:
    """Return the names of EnD2 with T = 10 and with T = 1, one of which is a variant."""
    is_variant = scores.get(dataset, "EnD2-T10", "nll") is not None
    return ("EnD2-T10", "EnD2") if is_variant else ("EnD2", "EnD2-T1")


def _spreads(scores: Scores, dataset: str, metric: str) -> tuple[float, float] | None:
    """Compute standard deviations over seeds, with T = 10 and with T = 1."""
    warm, cold = (scores.get(dataset, n, metric) for n in _warm_and_cold(scores, dataset))
    if warm is None or cold is None or min(len(warm.values), len(cold.values)) < 2:
        return None
    return statistics.stdev(warm.values), statistics.stdev(cold.values)


def _steadier_numbers(scores: Scores) -> list[str]:
    lines: list[str] = []
    for dataset in scores.datasets:
        for metric, title in _STEADY:
            spreads = _spreads(scores, dataset, metric)
            if spreads is not None:
                means = _known(scores, dataset, _warm_and_cold(scores, dataset), metric).values()
                pairs = zip(("T = 10", "T = 1"), means, spreads, strict=True)
                texts = [f"{t} {shown(mean, 3)} (sd {shown(sd, 4)})" for t, mean, sd in pairs]
                lines.append(f"{TITLES[dataset]}, {title}: {', '.join(texts)}")
    return lines


DEPTH_CLAIMS = (
    Claim(
        "depth-match-dd",
        "Depth: probabilistic models match DenseDepth (DD)",
        _match_dd,
        _by_method(("DD", *_ALL), ("delta1", "δ1"), ("rmse", "rmse")),
    ),
    Claim(
        "depth-closest",
        "Depth: EnD2 comes closest to the ensemble",
        _closest,
        _by_method(("ENSM", *_ONE_NETWORK), ("rel", "rel")),
    ),
    Claim(
        "depth-nll",
        "Depth: NLL of EnD2, NWPN and DER is best",
        _best_nll,
        _by_method((*_HEAVY, *_LIGHT), ("nll", "NLL")),
    ),
    Claim(
        "depth-gaussians",
        "Depth: EnD and MD-EnD detect out-of-domain images worse than Single",
        _gaussians_worse,
        _gaussians_numbers,
    ),
    Claim(
        "depth-inverted",
        "Depth: on KITTI entropy and variance are inverted, I and K are not",
        _inverted,
        _inverted_numbers,
    ),
    Claim("depth-der", "Depth: DER fails on KITTI", _der_fails, _der_numbers),
    Claim(
        "depth-temperature",
        "Depth: EnD2 is steadier with T = 10 than with T = 1",
        _steadier,
        _steadier_numbers,
    ),
)
