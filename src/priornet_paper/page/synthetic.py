"""The synthetic curve: knowledge inside and outside the data, and data uncertainty against truth.

Two of the paper's claims are judged here, for only here the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from priornet_paper.page.claims import Claim, Part, counted
from priornet_paper.page.numbers import ROUNDING, Content, every_method, shown
from priornet_paper.page.results import Results
from priornet_paper.page.sections import NOT_RUN, Goal, Miss, Section, marked, table, tally

_METHODS = ("ENSM", "EnD2", "NWPN")
_PAPER_PRIOR = "NWPN-precision"
# The forward KL beside the reverse one with the same prior.
_FORWARD = {"NWPN-forward": "NWPN", "NWPN-both": _PAPER_PRIOR}
_MOST_OFF, _LEAST_GROWTH = 0.15, 10.0
_REGIONS = {"in_domain": "inside", "out_of_domain": "outside"}
_VARIANCES = {"data_variance": "data", "knowledge_variance": "knowledge", "total_variance": "total"}
_HEADER = (
    *("method", "RMSE", "NLL", "data sd off by<br>goal at most 15 %", "slope to the noise"),
    *("V[mu], outside / inside<br>goal at least 10", "OOD AUC, V[mu]"),
)


def synthetic(results: Results) -> Section:
    """Write how well each method knows the noise inside, and how its knowledge grows outside."""
    content = results.synthetic
    methods = {} if content is None else every_method(content)
    section = Section(["" if content is None else _setting(content)])
    section.lines[0] += (
        "Medians over x, means over repetitions. ✗: the goal is missed. A slope "
        "of 1 means that data uncertainty follows the noise, 0 that it is flat."
        f"{_prior(content)}"
    )
    others = [name for name in methods if name not in _METHODS]
    rows = [_row(name, methods.get(name), section) for name in (*_METHODS, *others)]
    section.lines += table(_HEADER, rows)
    section.lines += [f"- {name}: {methods[name]['why']}" for name in others]
    section.lines += _ratios(methods)
    section.goals += [
        _goal(content, "knowledge_growth", _grows, "V[mu] outside at least 10 times that inside"),
        _goal(
            content, "data_std_error_median", _is_near, "data sd within 15 % of the truth inside"
        ),
    ]
    return section


def _goal(
    content: Content | None, score: str, is_good: Callable[[float], bool], wanted: str
) -> Goal:
    methods = {} if content is None else every_method(content)
    cells = [is_good(methods[m][score]["mean"]) if m in methods else None for m in _METHODS]
    prior = " (prior matched to the variance)" if _is_ours(content) else ""
    wanted = f"Synthetic: {wanted}, for {', '.join(_METHODS)}{prior}"
    goal = Goal.counted(wanted, tally(cells), len(cells))
    if not _is_ours(content) or _PAPER_PRIOR not in methods:
        return goal
    names = [_PAPER_PRIOR if m == "NWPN" else m for m in _METHODS if m in methods]
    n_good = sum(is_good(methods[name][score]["mean"]) for name in names)
    goal = goal._replace(found=f"{goal.found}; {n_good} with the paper's own prior")
    return goal.after_scores("the prior was changed when the paper's had missed")


def _setting(content: Content) -> str:
    edge, (low, high) = content["config"]["train_edge"], content["config"]["test_out_range"]
    return f"Training inputs lie on |x| <= {edge:g}, outside is {low:g} <= |x| <= {high:g}. "


def _prior(content: Content | None) -> str:
    """Describe NWPN's prior if it is not the paper's to the letter."""
    if content is None or not _is_ours(content):
        return ""
    off = content.get("variants", {}).get(_PAPER_PRIOR, {}).get("data_std_error_median")
    found = f"; with the latter ({_PAPER_PRIOR}) it is {100 * off['mean']:.0f} % off" if off else ""
    return (
        " NWPN has kappa0, beta and gamma of the paper, and a prior that expects the variance of "
        f"the targets, L0^-1 = (nu0 - K - 1) Cov, not nu0 Cov as in Eq. (10){found}."
    )


def _is_ours(content: Content | None) -> bool:
    return content is not None and content["config"].get("prior_match") == "variance"


def _grows(value: float) -> bool:
    return value >= _LEAST_GROWTH - ROUNDING


def _is_near(value: float) -> bool:
    return value <= _MOST_OFF + ROUNDING


def _row(name: str, found: Mapping[str, Any] | None, section: Section) -> list[str]:
    if found is None:
        return [name, *[NOT_RUN] * 6]
    off, growth = (found[score]["mean"] for score in ("data_std_error_median", "knowledge_growth"))
    off_text, growth_text = f"{100 * off:.1f} %", f"{growth:,.0f}"
    has_goal = name in _METHODS
    is_off, is_flat = has_goal and not _is_near(off), has_goal and not _grows(growth)
    if is_off:
        text = f"{name}, data sd off by {off_text} (median over x)"
        section.misses.append(Miss(f"synthetic/{name}/data", text))
    if is_flat:
        text = f"{name}, V[mu] outside only {growth_text} times that inside"
        section.misses.append(Miss(f"synthetic/{name}/knowledge", text))
    return [
        name,
        shown(found["rmse"]["mean"], 3),
        shown(found["nll"]["mean"], 3),
        marked(off_text, is_off),
        shown(found["data_std_slope"]["mean"]),
        marked(growth_text, is_flat),
        shown(found["ood_auc"]["variance_of_mean"]["mean"], 3),
    ]


def _ratios(methods: Mapping[str, Any]) -> list[str]:
    """Write the variances of students over the ensemble's, inside and outside."""
    rows = [
        [
            name,
            *(
                shown(found["against_ensemble"][region][variance]["median"]["mean"])
                for region in _REGIONS
                for variance in _VARIANCES
            ),
        ]
        for name, found in methods.items()
        if "against_ensemble" in found
    ]
    header = [f"{part}, {where}" for where in _REGIONS.values() for part in _VARIANCES.values()]
    title = "Variances of the student over those of its ensemble (median over x):"
    return ["", title, *table(["", *header], rows)] if rows else []


def _support(content: Content | None) -> list[Part]:
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
        counted("variances (median over x) above the ensemble's", larger),
        counted("data variance exceeds it by more outside than inside", grows),
    ]


def _forward(content: Content | None) -> list[Part]:
    """Count over every prior that was run with both directions of the KL."""
    methods = {} if content is None else every_method(content)
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
        counted("repetitions where data sd is off by more than 15 %", (a > 0.15 for a, _ in both)),
        counted("where it is off by more than with reverse KL", (a > b for a, b in both)),
        counted("where it follows the noise by less than half", (slope < 0.5 for slope in slopes)),
    ]


SYNTHETIC_CLAIMS = (
    Claim("support", "EnD2 over-estimates the ensemble's support (synthetic)", _support),
    Claim("forward-kl", "Forward KL does not give data uncertainty (synthetic)", _forward),
)
