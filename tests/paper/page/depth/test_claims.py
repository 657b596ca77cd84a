"""Verdicts on the claims about depth follow the numbers."""

import pytest

from _depth_results import depth_content, seeds
from priornet_paper.page.claims import verdict
from priornet_paper.page.depth.claims import DEPTH_CLAIMS
from priornet_paper.page.depth.numbers import DepthScores, published_depth, read_depth

CLAIMS = {claim.name.removeprefix("depth-"): claim for claim in DEPTH_CLAIMS}


def contents():
    return {name: depth_content(name) for name in ("nyu", "kitti")}


def judged(name, given):
    return verdict(CLAIMS[name].parts(read_depth(given)))


def test_the_paper_confirms_itself_but_for_what_md_end_does_better():
    found = {name: verdict(claim.parts(published_depth())) for name, claim in CLAIMS.items()}
    assert found == {
        "match-dd": "confirmed",
        "closest": "partly",  # MD-EnD is closer on NYU
        "nll": "confirmed",
        "gaussians": "confirmed",
        "inverted": "confirmed",
        "der": "confirmed",
        "temperature": "not measured",
    }


@pytest.mark.parametrize("name", CLAIMS)
def test_nothing_measured_nothing_claimed(name):
    assert judged(name, {}) == "not measured"
    assert CLAIMS[name].numbers(DepthScores({})) == []


@pytest.mark.parametrize("name", CLAIMS)
def test_numbers_stand_beside_the_verdict(name):
    assert CLAIMS[name].numbers(read_depth(contents()))


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
