"""The synthetic section: goals, ratios, and the two claims that only known truth can judge."""

from dataclasses import replace

import pytest

from priornet.evaluation.results import summary
from priornet_paper.page.claims import CONFIRMED, NOT_CONFIRMED, NOT_MEASURED, PARTLY, verdict
from priornet_paper.page.results import Results
from priornet_paper.page.sections import FAILS, HOLDS
from priornet_paper.page.synthetic import SYNTHETIC_CLAIMS, synthetic
from priornet_paper.synthetic.config import PRESETS, VARIANTS
from priornet_paper.synthetic.run import run

RULES = {claim.name: claim.parts for claim in SYNTHETIC_CLAIMS}
CONFIG = {"train_edge": 10.0, "test_out_range": [15.0, 25.0]}


def method(off=0.1, growth=100.0, slope=1.0, ratios=None, **more):
    found = {
        "rmse": summary([0.3, 0.3]),
        "nll": summary([-0.1, -0.1]),
        "data_std_error_median": summary([off, off]),
        "data_std_slope": summary([slope, slope]),
        "knowledge_growth": summary([growth, growth]),
        "ood_auc": {"variance_of_mean": summary([1.0, 1.0])},
        **more,
    }
    if ratios is not None:
        inside, outside = ratios
        parts = ("data_variance", "knowledge_variance", "total_variance")
        found["against_ensemble"] = {
            region: {part: {"median": summary([ratio, ratio])} for part in parts}
            for region, ratio in (("in_domain", inside), ("out_of_domain", outside))
        }
    return found


def content(forward=None, variants=None, **methods):
    every = {"ENSM": method(), "EnD2": method(ratios=(1.1, 2.0)), "NWPN": method()} | methods
    variants = dict(variants or {}) | ({"NWPN-forward": forward} if forward else {})
    variants = {name: {**found, "why": f"{name}."} for name, found in variants.items()}
    return {"preset": "paper", "config": CONFIG, "methods": every, "variants": variants}


def section(found):
    return synthetic(Results(synthetic=found))


def test_goals_are_about_the_three_methods():
    found = section(content(forward=method(off=9.0, growth=1.0)))
    assert [goal.state for goal in found.goals] == [HOLDS, HOLDS]
    assert found.misses == []


@pytest.mark.parametrize(
    ("changed", "states", "missed"),
    [
        (method(off=0.15, growth=10.0), [HOLDS, HOLDS], []),
        (method(growth=9.9), [FAILS, HOLDS], ["synthetic/NWPN/knowledge"]),
        (method(off=0.151), [HOLDS, FAILS], ["synthetic/NWPN/data"]),
    ],
)
def test_limits_are_the_stated_ones(changed, states, missed):
    found = section(content(NWPN=changed))
    assert [goal.state for goal in found.goals] == states
    assert [miss.key for miss in found.misses] == missed


def test_ratios_of_the_student_are_shown_inside_and_outside():
    lines = section(content()).lines
    assert "| EnD2 | 1.10 | 1.10 | 1.10 | 2.00 | 2.00 | 2.00 |" in lines


def test_without_results_everything_is_not_run():
    found = section(None)
    assert "| ENSM | not run |" in "\n".join(found.lines)
    assert [goal.state for goal in found.goals] == ["not run", "not run"]
    assert {verdict(claim.parts(None)) for claim in SYNTHETIC_CLAIMS} == {NOT_MEASURED}


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((1.1, 2.0), CONFIRMED), ((2.0, 1.1), PARTLY), ((0.9, 0.8), NOT_CONFIRMED)],
)
def test_support_is_over_estimated_when_variances_are_larger_most_of_all_outside(ratios, expected):
    found = content(EnD2=method(ratios=ratios))
    assert verdict(RULES["support"](found)) == expected


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        (method(off=0.9, slope=0.1), CONFIRMED),
        (method(off=0.9, slope=0.9), PARTLY),
        (method(off=0.05, slope=0.9), NOT_CONFIRMED),
    ],
)
def test_forward_kl_is_judged_by_the_noise_it_finds(forward, expected):
    assert verdict(RULES["forward-kl"](content(forward=forward))) == expected


def test_forward_kl_that_was_not_run_is_not_measured():
    assert verdict(RULES["forward-kl"](content())) == NOT_MEASURED


def test_what_the_experiment_writes_can_be_shown():
    config = replace(PRESETS["smoke"], n_runs=2, epochs=1, variants=tuple(VARIANTS))
    found = run(config)
    text = "\n".join(section(found).lines)
    for name in (*found["methods"], *found["variants"]):
        assert f"| {name} |" in text
    for claim in SYNTHETIC_CLAIMS:
        assert verdict(claim.parts(found)) != NOT_MEASURED


def test_forward_kl_is_judged_with_every_prior_against_the_same_one():
    with_paper_prior = {
        "NWPN-precision": method(off=0.3),
        "NWPN-both": method(off=0.2),
    }
    found = content(method(off=0.9, slope=0.1), with_paper_prior)
    parts = RULES["forward-kl"](found)
    assert [(part.held, part.total) for part in parts] == [(4, 4), (2, 4), (2, 4)]


def test_a_prior_that_is_not_the_papers_is_named_with_what_the_papers_gives():
    own = {**CONFIG, "prior_match": "variance"}
    found = {**content(variants={"NWPN-precision": method(off=0.3)}), "config": own}
    assert (
        "nu0 Cov as in Eq. (10); with the latter (NWPN-precision) it is 30 % off."
        in (section(found).lines[0])
    )
    goals = section(found).goals
    assert all("NWPN (prior matched to the variance)" in goal.wanted for goal in goals)
    assert [goal.found for goal in goals] == [
        "3 of 3; 3 with the paper's own prior",
        "3 of 3; 2 with the paper's own prior",
    ]
    assert all(goal.caveat for goal in goals)
    assert not any(goal.caveat for goal in section(content()).goals)
    assert "Eq. (10)" not in section(content()).lines[0]
    assert not any("matched" in goal.wanted for goal in section(content()).goals)
