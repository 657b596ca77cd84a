"""The paper's claims about depth, each with a rule that turns numbers into a verdict.

The same rules judge our numbers and the paper's own, which shows how strict they are.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from priornet_paper.page.claims import Part
from priornet_paper.page.compare import ROUNDING
from priornet_paper.page.depth.numbers import (
    DEPTH_MEASURES,
    FOREIGN,
    TITLES,
    DepthScores,
)
from priornet_paper.page.markdown import shown

__all__ = ["DEPTH_CLAIMS", "DepthClaim"]

_BELIEFS = ("Single", "ENSM", "EnD2", "NWPN", "DER", "EnD", "MD-EnD")
_ONE_NETWORK = ("Single", "EnD2", "NWPN", "DER", "EnD", "MD-EnD")
_NEVER_SAW_FOREIGN = ("Single", "ENSM", "EnD2", "DER", "EnD", "MD-EnD")
# Metric, its name, and whether more is better.
_ACCURACY = (("delta1", "δ1", True), ("rel", "rel", False), ("rmse", "rmse", False))
_LOW_DELTA, _HIGH_ERROR = 0.01, 1.02
_HEAVY = ("EnD2", "NWPN", "DER")
_LIGHT = ("Single", "ENSM", "EnD", "MD-EnD")
_STEADY = (("delta1", "δ1"), ("rmse", "rmse"), ("nll", "NLL"))
_TOTAL, _SCALE_FREE = ("total_entropy", "total_variance"), ("mutual_information", "epkl")
_PAPER_MEASURES = tuple(name for name in DEPTH_MEASURES if name != "expected_entropy")


class DepthClaim(NamedTuple):
    """What the paper says, how it is judged, and the numbers that it is judged by."""

    name: str
    text: str
    parts: Callable[[DepthScores], list[Part]]
    numbers: Callable[[DepthScores], list[str]]


def _part(what: str, cells: Iterable[bool]) -> Part:
    listed = list(cells)
    return Part(what, sum(listed), len(listed))


def _known(
    scores: DepthScores, dataset: str, methods: Sequence[str], *path: str
) -> dict[str, float]:
    """Means by method, of those that have one."""
    found = {method: scores.mean(dataset, method, *path) for method in methods}
    return {method: value for method, value in found.items() if value is not None}


def _listed(title: str, values: dict[str, float], digits: int = 3) -> list[str]:
    shown_values = ", ".join(f"{name} {shown(value, digits)}" for name, value in values.items())
    return [f"{title}: {shown_values}"] if values else []


def _by_method(methods: Sequence[str], *metrics: tuple[str, str]) -> Callable[..., list[str]]:
    """Lines with a metric of several methods, a line for each set and metric."""

    def lines(scores: DepthScores) -> list[str]:
        return [
            line
            for dataset in scores.datasets
            for metric, title in metrics
            for line in _listed(
                f"{TITLES[dataset]}, {title}",
                _known(scores, dataset, methods, metric),
                2 if metric == "nll" else 3,
            )
        ]

    return lines


# -- probabilistic models match DD ----------------------------------------------------------------


def _match_dd(scores: DepthScores) -> list[Part]:
    parts: list[Part] = []
    for metric, title, is_more_better in _ACCURACY:
        cells: list[bool] = []
        for dataset in scores.datasets:
            found = _known(scores, dataset, ("DD", *_BELIEFS), metric)
            if "DD" not in found:
                continue
            plain = found.pop("DD")
            cells += [
                value >= plain - _LOW_DELTA - ROUNDING
                if is_more_better
                else value <= _HIGH_ERROR * plain + ROUNDING
                for value in found.values()
            ]
        limit = f"at most {_LOW_DELTA} below DD's" if is_more_better else "at most 2 % above DD's"
        parts.append(_part(f"models whose {title} is {limit}", cells))
    return parts


# -- EnD2 closest to the ensemble -----------------------------------------------------------------


def _closest(scores: DepthScores) -> list[Part]:
    cells: list[bool] = []
    for dataset in scores.datasets:
        for metric, _, is_more_better in (*_ACCURACY, ("log10", "log10", False)):
            found = _known(scores, dataset, _ONE_NETWORK, metric)
            if "EnD2" not in found or len(found) < 2:
                continue
            sign = -1 if is_more_better else 1
            cells.append(sign * found["EnD2"] <= min(sign * v for v in found.values()) + ROUNDING)
    return [_part("of δ1, rel, rmse and log10, where EnD2 is the best single network", cells)]


# -- NLL ------------------------------------------------------------------------------------------


def _best_nll(scores: DepthScores) -> list[Part]:
    parts: list[Part] = []
    for method in _HEAVY:
        cells: list[bool] = []
        for dataset in scores.datasets:
            own = scores.mean(dataset, method, "nll")
            others = _known(scores, dataset, _LIGHT, "nll")
            cells += [] if own is None else [own < value for value in others.values()]
        parts.append(_part(f"NLL of {method} below that of {', '.join(_LIGHT)}", cells))
    return parts


# -- out-of-domain --------------------------------------------------------------------------------


def _pairs(scores: DepthScores) -> list[tuple[str, str]]:
    return [(dataset, other) for dataset in scores.datasets for other in FOREIGN[dataset]]


def _gaussians_worse(scores: DepthScores) -> list[Part]:
    parts: list[Part] = []
    for method in ("EnD", "MD-EnD"):
        cells: list[bool] = []
        for dataset, other in _pairs(scores):
            path = ("ood_auc", other, "total_variance")
            own, single = (scores.mean(dataset, name, *path) for name in (method, "Single"))
            cells += [] if own is None or single is None else [own < single]
        parts.append(_part(f"pairs of sets where {method}'s AUC by V[y] is below Single's", cells))
    return parts


def _gaussians_numbers(scores: DepthScores) -> list[str]:
    lines: list[str] = []
    for dataset, other in _pairs(scores):
        path = ("ood_auc", other, "total_variance")
        found = _known(scores, dataset, ("Single", "EnD", "MD-EnD"), *path)
        lines += _listed(f"{TITLES[dataset]} against {TITLES[other]}", found)
    return lines


def _kitti_cells(
    scores: DepthScores, methods: Sequence[str], measures: Sequence[str]
) -> dict[tuple[str, str, str], float]:
    found = {
        (other, method, measure): scores.mean("kitti", method, "ood_auc", other, measure)
        for other in FOREIGN["kitti"]
        for method in methods
        for measure in measures
    }
    return {key: value for key, value in found.items() if value is not None}


def _inverted(scores: DepthScores) -> list[Part]:
    total = _kitti_cells(scores, _NEVER_SAW_FOREIGN, _TOTAL).values()
    free = _kitti_cells(scores, ("ENSM", "EnD2"), _SCALE_FREE).values()
    return [
        _part("AUC by H[E] or V[y] below 0.5, all models but NWPN", (v < 0.5 for v in total)),
        _part("AUC by I or K above 0.5, of ENSM and EnD2", (v > 0.5 for v in free)),
    ]


def _inverted_numbers(scores: DepthScores) -> list[str]:
    lines: list[str] = []
    for other in FOREIGN["kitti"]:
        for measures, methods in (
            (_TOTAL[1:], _NEVER_SAW_FOREIGN),
            (_SCALE_FREE, ("ENSM", "EnD2")),
        ):
            for measure in measures:
                found = _known(scores, "kitti", methods, "ood_auc", other, measure)
                lines += _listed(f"{TITLES[other]}, {DEPTH_MEASURES[measure]}", found)
    return lines


def _der_fails(scores: DepthScores) -> list[Part]:
    found = _kitti_cells(scores, ("DER",), _PAPER_MEASURES).values()
    return [_part("DER's AUC below 0.5, by each measure on each set", (v < 0.5 for v in found))]


def _der_numbers(scores: DepthScores) -> list[str]:
    lines: list[str] = []
    for other in FOREIGN["kitti"]:
        cells = _kitti_cells(scores, ("DER",), _PAPER_MEASURES).items()
        found = {DEPTH_MEASURES[measure]: v for (name, _, measure), v in cells if name == other}
        lines += _listed(TITLES[other], found)
    return lines


# -- temperature ----------------------------------------------------------------------------------


def _steadier(scores: DepthScores) -> list[Part]:
    calmer: list[bool] = []
    for dataset in scores.datasets:
        for metric, _ in _STEADY:
            spreads = _spreads(scores, dataset, metric)
            calmer += [] if spreads is None else [spreads[0] < spreads[1]]
    parts = [_part("spread over seeds of δ1, rmse and NLL smaller with T = 10", calmer)]
    for title, path in (
        ("NLL", ("nll",)),
        ("NLL's 99.9 % quantile", ("nll_quantiles", "99.9")),
        ("C-AUC of normal intervals", ("c_auc", "normal_intervals")),
    ):
        pairs = [
            [scores.mean(dataset, name, *path) for name in _warm_and_cold(scores, dataset)]
            for dataset in scores.datasets
        ]
        cells = [warm < cold for warm, cold in pairs if warm is not None and cold is not None]
        parts.append(_part(f"{title} lower with T = 10", cells))
    return parts


def _warm_and_cold(scores: DepthScores, dataset: str) -> tuple[str, str]:
    """Names of EnD2 with T = 10 and with T = 1, one of which is a variant."""
    is_variant = scores.get(dataset, "EnD2-T10", "nll") is not None
    return ("EnD2-T10", "EnD2") if is_variant else ("EnD2", "EnD2-T1")


def _spreads(scores: DepthScores, dataset: str, metric: str) -> tuple[float, float] | None:
    """Standard deviations over seeds, with T = 10 and with T = 1."""
    warm, cold = (scores.get(dataset, n, metric) for n in _warm_and_cold(scores, dataset))
    if warm is None or cold is None or min(len(warm.values), len(cold.values)) < 2:
        return None
    return statistics.stdev(warm.values), statistics.stdev(cold.values)


def _steadier_numbers(scores: DepthScores) -> list[str]:
    lines: list[str] = []
    for dataset in scores.datasets:
        for metric, title in _STEADY:
            spreads = _spreads(scores, dataset, metric)
            if spreads is not None:
                names = _warm_and_cold(scores, dataset)
                means = [scores.mean(dataset, name, metric) or 0.0 for name in names]
                pairs = zip(("T = 10", "T = 1"), means, spreads, strict=True)
                texts = [f"{t} {shown(mean, 3)} (sd {shown(sd, 4)})" for t, mean, sd in pairs]
                lines.append(f"{TITLES[dataset]}, {title}: {', '.join(texts)}")
    return lines


DEPTH_CLAIMS = (
    DepthClaim(
        "depth-match-dd",
        "Depth: probabilistic models match DenseDepth (DD)",
        _match_dd,
        _by_method(("DD", *_BELIEFS), ("delta1", "δ1"), ("rmse", "rmse")),
    ),
    DepthClaim(
        "depth-closest",
        "Depth: EnD2 comes closest to the ensemble",
        _closest,
        _by_method(("ENSM", *_ONE_NETWORK), ("rel", "rel")),
    ),
    DepthClaim(
        "depth-nll",
        "Depth: NLL of EnD2, NWPN and DER is best",
        _best_nll,
        _by_method((*_HEAVY, *_LIGHT), ("nll", "NLL")),
    ),
    DepthClaim(
        "depth-gaussians",
        "Depth: EnD and MD-EnD tell foreign images worse than Single",
        _gaussians_worse,
        _gaussians_numbers,
    ),
    DepthClaim(
        "depth-inverted",
        "Depth: on KITTI entropy and variance are inverted, I and K are not",
        _inverted,
        _inverted_numbers,
    ),
    DepthClaim("depth-der", "Depth: DER fails on KITTI", _der_fails, _der_numbers),
    DepthClaim(
        "depth-temperature",
        "Depth: EnD2 is steadier with T = 10 than with T = 1",
        _steadier,
        _steadier_numbers,
    ),
)
