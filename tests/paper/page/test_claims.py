"""Verdicts can come out every way, and depend on nothing but the numbers."""

import pytest

from priornet_paper.page.claims import (
    CLAIMS,
    CONFIRMED,
    NOT_CONFIRMED,
    NOT_MEASURED,
    PARTLY,
    Part,
    verdict,
)
from priornet_paper.page.numbers import KNOWLEDGE, Key, Number, Scores, published

RULES = {claim.name: claim.parts for claim in CLAIMS}
SIZES = {"small": 100, "middle": 1000, "large": 10_000}


def scores(**by_place):
    """Scores from ``dataset__metric__method[__measure]`` to a mean, errors of 0.01."""
    numbers = {Key(*place.split("__")): Number(mean, 0.01) for place, mean in by_place.items()}
    return Scores(numbers, SIZES)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], NOT_MEASURED),
        ([Part("", 1, 1), Part("", 0, 0)], NOT_MEASURED),
        ([Part("", 4, 5), Part("", 9, 10)], CONFIRMED),
        ([Part("", 3, 5), Part("", 9, 10)], PARTLY),
        ([Part("", 3, 5), Part("", 0, 10)], PARTLY),
        ([Part("", 2, 5), Part("", 0, 10)], NOT_CONFIRMED),
    ],
)
def test_verdict_follows_the_stated_rule(parts, expected):
    assert verdict(parts) == expected


def rmse(ensemble, other):
    return scores(
        **{
            f"{name}__rmse__{method}": ensemble if method == "ENSM" else other
            for name in SIZES
            for method in ("Single", "ENSM", "EnD2", "NWPN")
        }
    )


@pytest.mark.parametrize(
    ("ensemble", "expected"),
    [(0.9, CONFIRMED), (1.01, CONFIRMED), (1.02, NOT_CONFIRMED)],
)
def test_ensemble_has_the_best_rmse_when_nothing_is_lower_by_more_than_one_per_cent(
    ensemble, expected
):
    assert verdict(RULES["best-rmse"](rmse(ensemble, 1.0))) == expected


def test_best_rmse_is_counted_only_where_all_methods_ran():
    found = scores(small__rmse__ENSM=1.0, small__rmse__EnD2=2.0)
    assert verdict(RULES["best-rmse"](found)) == NOT_MEASURED


def student(gaps):
    """EnD2 behind an ensemble of RMSE and NLL 1 by a gap per set, smallest set first."""
    numbers = {}
    for name, gap in zip(SIZES, gaps, strict=True):
        for metric in ("rmse", "nll"):
            numbers |= {f"{name}__{metric}__ENSM": 1.0, f"{name}__{metric}__EnD2": 1.0 + gap}
    return scores(**numbers)


@pytest.mark.parametrize(
    ("gaps", "expected", "counts"),
    [
        ((0.04, 0.02, 0.01), CONFIRMED, [3, 3, 3]),
        ((0.01, 0.02, 0.04), PARTLY, [3, 0, 0]),
        ((0.3, 0.2, 0.1), PARTLY, [0, 3, 3]),
        ((0.1, 0.2, 0.3), NOT_CONFIRMED, [0, 0, 0]),
    ],
)
def test_student_is_close_and_closer_on_larger_sets(gaps, expected, counts):
    parts = RULES["close-to-ensemble"](student(gaps))
    assert [part.held for part in parts] == counts
    assert [part.total for part in parts] == [3, 3, 3]
    assert verdict(parts) == expected


def by_measure(metric, total, knowledge):
    return scores(
        **{
            f"{name}__{metric}__{method}__{measure}": mean
            for name in SIZES
            for method in ("ENSM", "EnD2", "NWPN")
            for measure, mean in [("total_variance", total), *((k, knowledge) for k in KNOWLEDGE)]
        }
    )


@pytest.mark.parametrize(
    ("total", "knowledge", "expected"),
    [(0.5, 0.2, CONFIRMED), (0.5, 0.4, PARTLY), (0.01, 0.4, NOT_CONFIRMED)],
)
def test_total_uncertainty_detects_errors_and_knowledge_does_not(total, knowledge, expected):
    found = by_measure("prr", total, knowledge)
    assert verdict(RULES["errors-by-total"](found)) == expected


@pytest.mark.parametrize(
    ("total", "knowledge", "expected"),
    [(0.6, 0.8, CONFIRMED), (0.9, 0.8, PARTLY), (0.6, 0.51, NOT_CONFIRMED)],
)
def test_knowledge_detects_foreign_rows(total, knowledge, expected):
    found = by_measure("ood_auc", total, knowledge)
    assert verdict(RULES["foreign-by-knowledge"](found)) == expected


def test_nothing_is_measured_without_numbers():
    assert {verdict(claim.parts(Scores({}, {}))) for claim in CLAIMS} == {NOT_MEASURED}


def test_paper_confirms_by_its_own_numbers_that_ensembles_have_the_best_rmse():
    (part,) = RULES["best-rmse"](published())
    assert (part.held, part.total) == (6, 6)
