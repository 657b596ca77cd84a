"""Verdicts can come out every way, and depend on nothing but the numbers."""

import pytest

from _depth_results import depth_content, seeds
from priornet_paper.page.claims import (
    CLAIMS,
    CONFIRMED,
    DEPTH_CLAIMS,
    NOT_CONFIRMED,
    NOT_MEASURED,
    PARTLY,
    Part,
    verdict,
)
from priornet_paper.page.numbers import (
    KNOWLEDGE,
    Number,
    Scores,
    published,
    published_depth,
    read_scores,
)

RULES = {claim.name: claim.parts for claim in CLAIMS}
SIZES = {"small": 100, "middle": 1000, "large": 10_000}


def scores(**by_place):
    """Return scores from ``dataset__method__metric[__measure]`` to a mean, errors of 0.01."""
    numbers = {tuple(place.split("__")): Number(mean, 0.01) for place, mean in by_place.items()}
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
            f"{name}__{method}__rmse": ensemble if method == "ENSM" else other
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
    found = scores(small__ENSM__rmse=1.0, small__EnD2__rmse=2.0)
    assert verdict(RULES["best-rmse"](found)) == NOT_MEASURED


def student(gaps):
    """EnD2 behind an ensemble of RMSE and NLL 1 by a gap per set, smallest set first."""
    numbers = {}
    for name, gap in zip(SIZES, gaps, strict=True):
        for metric in ("rmse", "nll"):
            numbers |= {f"{name}__ENSM__{metric}": 1.0, f"{name}__EnD2__{metric}": 1.0 + gap}
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
            f"{name}__{method}__{metric}__{measure}": mean
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
def test_knowledge_detects_ood_rows(total, knowledge, expected):
    found = by_measure("ood_auc", total, knowledge)
    assert verdict(RULES["ood-by-knowledge"](found)) == expected


def test_nothing_is_measured_without_numbers():
    assert {verdict(claim.parts(Scores({}, {}))) for claim in CLAIMS} == {NOT_MEASURED}


def test_paper_confirms_by_its_own_numbers_that_ensembles_have_the_best_rmse():
    (part,) = RULES["best-rmse"](published())
    assert (part.held, part.total) == (6, 6)


ON_DEPTH = {claim.name.removeprefix("depth-"): claim for claim in DEPTH_CLAIMS}


def contents():
    return {name: depth_content(name) for name in ("nyu", "kitti")}


def judged(name, given):
    return verdict(ON_DEPTH[name].parts(read_scores(given)))


def test_the_paper_confirms_itself_but_for_what_md_end_does_better():
    found = {name: verdict(claim.parts(published_depth())) for name, claim in ON_DEPTH.items()}
    assert found == {
        "match-dd": "confirmed",
        "closest": "partly",  # MD-EnD is closer on NYU
        "nll": "confirmed",
        "gaussians": "confirmed",
        "inverted": "confirmed",
        "der": "confirmed",
        "temperature": "not measured",
    }


@pytest.mark.parametrize("name", ON_DEPTH)
def test_nothing_measured_nothing_claimed(name):
    assert judged(name, {}) == "not measured"
    assert ON_DEPTH[name].numbers(Scores({})) == []


@pytest.mark.parametrize("name", ON_DEPTH)
def test_numbers_stand_beside_the_verdict(name):
    assert ON_DEPTH[name].numbers(read_scores(contents()))


def test_models_worse_than_dd_do_not_match_it():
    given = contents()
    for content in given.values():
        content["methods"]["DD"] |= {
            "delta1": seeds(0.99, 2),
            "rel": seeds(0.01, 2),
            "rmse": seeds(0.1, 2),
        }
    assert judged("match-dd", given) == "not confirmed"


def test_a_student_that_loses_most_is_not_closest():
    given = contents()
    for content in given.values():
        content["methods"]["EnD2"] |= {
            "delta1": seeds(0.1, 2),
            "rel": seeds(1.0, 2),
            "rmse": seeds(9.0, 2),
            "log10": seeds(1.0, 2),
        }
    assert judged("closest", given) == "not confirmed"


def test_an_ensemble_with_the_best_nll_ends_the_claim_about_it():
    given = contents()
    for content in given.values():
        for method in ("Single", "ENSM", "EnD", "MD-EnD"):
            content["methods"][method]["nll"] = seeds(-5.0, 2)
    assert judged("nll", given) == "not confirmed"


def test_students_better_than_single_end_the_claim_about_them():
    given = contents()
    for content in given.values():
        for method in ("EnD", "MD-EnD"):
            for aucs in content["methods"][method]["ood_auc"].values():
                aucs["total_variance"] = seeds(0.99, 2)
    assert judged("gaussians", given) == "not confirmed"


def test_inversion_needs_both_halves():
    given = contents()
    for method in ("ENSM", "EnD2"):
        for aucs in given["kitti"]["methods"][method]["ood_auc"].values():
            aucs |= {"mutual_information": seeds(0.2, 2), "epkl": seeds(0.2, 2)}
    assert judged("inverted", given) == "partly"


def test_der_that_works_does_not_fail():
    given = contents()
    for aucs in given["kitti"]["methods"]["DER"]["ood_auc"].values():
        aucs |= dict.fromkeys(aucs, seeds(0.9, 2))
    assert judged("der", given) == "not confirmed"


def test_temperature_is_judged_by_spread_and_level():
    given = contents()
    for content in given.values():
        for name, spread, level in (("EnD2", 0.001, 1.0), ("EnD2-T1", 0.1, 2.0)):
            group = content["methods" if name == "EnD2" else "variants"]
            group[name] = group[name] | {
                "delta1": seeds(0.8, 2, spread),
                "rmse": seeds(0.5, 2, spread),
                "nll": seeds(level, 2, spread),
                "nll_quantiles": {"99.9": seeds(level, 2)},
                "c_auc": {"normal_intervals": seeds(level, 2)},
            }
    assert judged("temperature", given) == "confirmed"
    for content in given.values():
        content["methods"]["EnD2"], content["variants"]["EnD2-T1"] = (
            content["variants"]["EnD2-T1"],
            content["methods"]["EnD2"],
        )
    assert judged("temperature", given) == "not confirmed"
    for content in given.values():  # now the variant is the one that was annealed
        content["variants"]["EnD2-T10"] = content["variants"].pop("EnD2-T1")
    assert judged("temperature", given) == "confirmed"
