"""The synthetic curve: knowledge inside and outside the data, and data uncertainty against truth.

Two of the paper's claims are judged here, for only here the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from priornet_paper.page.claims import Part
from priornet_paper.page.compare import ROUNDING, Goal, tally
from priornet_paper.page.markdown import NOT_RUN, marked, shown, table
from priornet_paper.page.notes import Miss
from priornet_paper.page.results import Results
from priornet_paper.page.section import Section

__all__ = ["SYNTHETIC_CLAIMS", "SyntheticClaim", "synthetic"]

_METHODS = ("ENSM", "EnD2", "NWPN")
_OF_PAPER = "NWPN-precision"
# The forward KL beside the reverse one with the same prior.
_FORWARD = {"NWPN-forward": "NWPN", "NWPN-both": _OF_PAPER}
_MOST_OFF, _LEAST_GROWTH = 0.15, 10.0
_REGIONS = {"in_domain": "inside", "out_of_domain": "outside"}
_VARIANCES = {"data_variance": "data", "knowledge_variance": "knowledge", "total_variance": "total"}


def synthetic(results: Results) -> Section:
    """How well each method knows the noise, and that it knows nothing outside."""
    content = results.synthetic
    section = Section(
        [
            f"{_where(content)}Medians over x, means over repetitions. ✗: beyond the goal. A slope "
            "of 1 means that data uncertainty follows the noise, 0 that it is flat."
            f"{_prior(content)}",
        ]
    )
    methods = _every(content) if content is not None else {}
    header = ["method", "RMSE", "NLL", "data sd off by<br>goal at most 15 %", "slope to the noise"]
    header += ["V[mu], outside / inside<br>goal at least 10", "OOD AUC, V[mu]"]
    rows = [_row(name, methods.get(name), section) for name in (*_METHODS, *_others(methods))]
    section.lines += table(header, rows)
    section.lines += [f"- {name}: {methods[name]['why']}" for name in _others(methods)]
    section.lines += _ratios(methods)
    whose = (
        f"{', '.join(_METHODS)}{' (prior matched to the variance)' if _is_ours(content) else ''}"
    )
    for field, wanted, is_good in (
        ("knowledge_growth", "V[mu] outside at least 10 times that inside", _grows),
        ("data_std_error_median", "data sd within 15 % of the truth inside", _is_near),
    ):
        cells = [is_good(_mean(methods[m][field])) if m in methods else None for m in _METHODS]
        goal = Goal.counted(f"Synthetic: {wanted}, for {whose}", tally(cells), len(cells))
        if _is_ours(content) and _OF_PAPER in methods:
            names = [_OF_PAPER if m == "NWPN" else m for m in _METHODS if m in methods]
            n_good = sum(is_good(_mean(methods[name][field])) for name in names)
            goal = goal._replace(found=f"{goal.found}; {n_good} with the paper's own prior")
            goal = goal.after_scores("the prior was changed when the paper's had missed")
        section.goals.append(goal)
    return section


def _where(content: Mapping[str, Any] | None) -> str:
    if content is None:
        return ""
    edge, (low, high) = content["config"]["train_edge"], content["config"]["test_out_range"]
    return f"Training inputs lie on |x| <= {edge:g}, outside is {low:g} <= |x| <= {high:g}. "


def _prior(content: Mapping[str, Any] | None) -> str:
    """That NWPN is not the paper's to the letter, where it is not."""
    if content is None or not _is_ours(content):
        return ""
    off = content.get("variants", {}).get(_OF_PAPER, {}).get("data_std_error_median")
    found = "" if off is None else f"; with the latter ({_OF_PAPER}) it is {_per_cent(off)} off"
    return (
        " NWPN has kappa0, beta and gamma of the paper, and a prior that expects the variance of "
        f"the targets, L0^-1 = (nu0 - K - 1) Cov, not nu0 Cov as in Eq. (10){found}."
    )


def _is_ours(content: Mapping[str, Any] | None) -> bool:
    return content is not None and content["config"].get("prior_match") == "variance"


def _per_cent(value: Mapping[str, Any]) -> str:
    return f"{100 * _mean(value):.0f} %"


def _every(content: Mapping[str, Any]) -> dict[str, Any]:
    """Methods, and their variants."""
    return {**content["methods"], **content.get("variants", {})}


def _others(methods: Mapping[str, Any]) -> list[str]:
    return [name for name in methods if name not in _METHODS]


def _mean(value: Mapping[str, Any]) -> float:
    return value["mean"]


def _grows(value: float) -> bool:
    return value >= _LEAST_GROWTH - ROUNDING


def _is_near(value: float) -> bool:
    return value <= _MOST_OFF + ROUNDING


def _row(name: str, found: Mapping[str, Any] | None, section: Section) -> list[str]:
    if found is None:
        return [name, *[NOT_RUN] * 6]
    off, growth = _mean(found["data_std_error_median"]), _mean(found["knowledge_growth"])
    off_text, growth_text = f"{100 * off:.1f} %", f"{growth:,.0f}"
    has_goal = name in _METHODS
    if has_goal and not _is_near(off):
        text = f"{name}, data sd off by {off_text} (median over x)"
        section.misses.append(Miss(f"synthetic/{name}/data", text))
    if has_goal and not _grows(growth):
        text = f"{name}, V[mu] outside only {growth_text} times that inside"
        section.misses.append(Miss(f"synthetic/{name}/knowledge", text))
    return [
        name,
        shown(_mean(found["rmse"]), 3),
        shown(_mean(found["nll"]), 3),
        marked(off_text, has_goal and not _is_near(off)),
        shown(_mean(found["data_std_slope"])),
        marked(growth_text, has_goal and not _grows(growth)),
        shown(_mean(found["ood_auc"]["variance_of_mean"]), 3),
    ]


def _ratios(methods: Mapping[str, Any]) -> list[str]:
    """Variances of students over the ensemble's, inside and outside."""
    students = [name for name, found in methods.items() if "against_ensemble" in found]
    rows: list[list[str]] = []
    for name in students:
        cells = [
            methods[name]["against_ensemble"][region][variance]["median"]
            for region in _REGIONS
            for variance in _VARIANCES
        ]
        rows.append([name, *(shown(_mean(cell)) for cell in cells)])
    header = [f"{part}, {where}" for where in _REGIONS.values() for part in _VARIANCES.values()]
    title = "Variances of the student over those of its ensemble (median over x):"
    return ["", title, *table(["", *header], rows)] if rows else []


class SyntheticClaim(NamedTuple):
    """What the paper says, and how it is judged from the synthetic results."""

    name: str
    text: str
    parts: Callable[[Mapping[str, Any] | None], list[Part]]


def _support(content: Mapping[str, Any] | None) -> list[Part]:
    if content is None or "EnD2" not in content["methods"]:
        return []
    found = content["methods"]["EnD2"]["against_ensemble"]
    larger = [
        ratio > 1
        for region in _REGIONS
        for variance in _VARIANCES
        for ratio in found[region][variance]["median"]["values"]
    ]
    inside, outside = (found[region]["data_variance"]["median"]["values"] for region in _REGIONS)
    grows = [out > within for within, out in zip(inside, outside, strict=True)]
    return [
        _counted("variances (median over x) above the ensemble's", larger),
        _counted("data variance exceeds it by more outside than inside", grows),
    ]


def _forward(content: Mapping[str, Any] | None) -> list[Part]:
    """Of every prior that both ways were run with."""
    methods = _every(content) if content is not None else {}
    pairs = [
        (methods[forward], methods[reverse])
        for forward, reverse in _FORWARD.items()
        if forward in methods and reverse in methods
    ]
    if not pairs:
        return []
    off = [[m["data_std_error_median"]["values"] for m in pair] for pair in pairs]
    both = [ab for forward, reverse in off for ab in zip(forward, reverse, strict=True)]
    slopes = [slope for forward, _ in pairs for slope in forward["data_std_slope"]["values"]]
    return [
        _counted("repetitions where data sd is off by more than 15 %", (a > 0.15 for a, _ in both)),
        _counted("where it is off by more than with reverse KL", (a > b for a, b in both)),
        _counted("where it follows the noise by less than half", (slope < 0.5 for slope in slopes)),
    ]


def _counted(what: str, cells: Iterable[bool]) -> Part:
    listed = list(cells)
    return Part(what, sum(listed), len(listed))


SYNTHETIC_CLAIMS = (
    SyntheticClaim("support", "EnD2 over-estimates the ensemble's support (synthetic)", _support),
    SyntheticClaim("forward-kl", "Forward KL does not give data uncertainty (synthetic)", _forward),
)
