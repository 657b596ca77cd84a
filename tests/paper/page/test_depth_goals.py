"""Goals of the depth experiment: reached, missed, not run."""

import pytest

from _depth_results import depth_content, seeds
from priornet_paper.page.depth_goals import find_goals
from priornet_paper.page.numbers import read_scores
from priornet_paper.page.sections import FAILS, HOLDS, NOT_RUN, UNFINISHED


def contents():
    given = {name: depth_content(name) for name in ("nyu", "kitti")}
    for content in given.values():
        methods = content["methods"]
        for metric in ("delta1", "rmse"):  # a student as good as its ensemble
            methods["EnD2"][metric] = methods["ENSM"][metric]
        methods["ENSM"]["rmse_log10"] = seeds(0.01, 2)
        for aucs in methods["EnD2"]["ood_auc"].values():
            aucs["mutual_information"] = seeds(0.99, 2)
    return given


def judged(given):
    goals, misses = find_goals(read_scores(given), given)
    states = {goal.wanted.removeprefix("Depth, "): goal.state for goal in goals}
    return states, goals, [miss.key for miss in misses]


def test_all_goals_can_be_reached():
    states, goals, misses = judged(contents())
    assert len(goals) == 8
    assert set(states.values()) == {HOLDS}
    assert misses == []
    assert goals[-1].found.startswith("4 of 4: NYU against LSUN bedroom 0.990 to 0.745 (V[mu]); ")


def test_nothing_run_is_said_of_every_goal():
    states, goals, misses = judged({})
    assert len(goals) == 8
    assert set(states.values()) == {NOT_RUN}
    assert misses == []


@pytest.mark.parametrize(
    ("method", "metric", "value", "key"),
    [
        ("Single", "delta1", 0.7599, "depth/nyu/Single"),
        ("Single", "rel", 0.1751, "depth/nyu/Single"),
        ("ENSM", "delta3", 0.9, "depth/nyu/ENSM"),
        ("EnD2", "delta1", 0.8569, "depth/nyu/EnD2/accuracy"),
        ("EnD2", "rmse", 0.447, "depth/nyu/EnD2/accuracy"),
        ("EnD2", "nll", 0.77, "depth/nyu/EnD2/nll"),
    ],
)
def test_each_limit_bites(method, metric, value, key):
    given = contents()
    given["nyu"]["methods"][method][metric] = seeds(value, 3, 0.0)
    states, _, misses = judged(given)
    assert key in misses
    assert FAILS in states.values()


def test_an_ensemble_is_judged_by_all_of_its_members_and_the_first_are_shown():
    given = contents()
    single, ensemble = (given["nyu"]["methods"][name] for name in ("Single", "ENSM"))
    metrics = ("delta1", "delta2", "delta3", "rel", "rmse", "log10", "rmse_log10", "nll")
    ensemble["members"] = {metric: single[metric] for metric in metrics}
    single["delta1"] = seeds(0.9, 3, 0.0)  # a lucky first member
    states, goals, misses = judged(given)
    assert (set(states.values()), misses) == ({HOLDS}, [])
    assert goals[1].caveat.startswith("the mean of the members counts")
    assert goals[4].caveat == ""  # of KITTI, whose members have no scores
    assert goals[1].found == (
        "ENSM better than a member on average in 8 of 8 metrics; than the first, Single, in 7 of 8 "
        "metrics (not: δ1 0.862 against 0.900)"
    )
    ensemble["members"]["rel"] = seeds(0.1, 3, 0.0)
    states, _, misses = judged(given)
    assert misses == ["depth/nyu/ENSM"]
    wanted = "NYU, 3 seeds: ENSM better than Single (the mean of its members) on every metric"
    assert states[wanted] == FAILS


def test_two_pairs_lost_miss_the_goal_about_ood_images():
    given = contents()
    for other in ("nyu", "lsun_bedroom"):
        aucs = given["kitti"]["methods"]["EnD2"]["ood_auc"][other]
        aucs["mutual_information"] = seeds(0.1, 2)
    _, goals, misses = judged(given)
    assert goals[-1].state == FAILS
    assert misses == ["depth/kitti/ood_auc/lsun_bedroom", "depth/kitti/ood_auc/nyu"]


def test_the_student_as_it_comes_is_judged_and_the_other_temperature_shown():
    given = contents()
    for content in given.values():
        cold = content["variants"]["EnD2-T1"]
        cold["nll"], cold["delta1"] = seeds(9.0, 3, 0.0), seeds(0.1, 3, 0.0)
        for aucs in cold["ood_auc"].values():
            aucs["mutual_information"] = seeds(0.1, 2)
    states, goals, misses = judged(given)
    assert (set(states.values()), misses) == ({HOLDS}, [])
    assert "; 9.000 (T = 1); ENSM" in goals[3].found
    assert [goals[i].caveat.startswith("the temperature") for i in (0, 2, 3, -1)] == [
        False, True, True, True
    ]  # fmt: skip
    assert goals[-1].found.endswith("; at the other temperature 0 of 4: 0.100; 0.100; 0.100; 0.100")
    for content in given.values():  # the cold one is the method's own now, and as bad as before
        content["config"]["temperature"] = 1.0
        content["variants"]["EnD2-T10"] = content["methods"]["EnD2"]
        content["methods"]["EnD2"] = content["variants"].pop("EnD2-T1")
    states, goals, misses = judged(given)
    assert FAILS in states.values()
    assert {"depth/nyu/EnD2/nll", "depth/nyu/EnD2/accuracy"} <= set(misses)
    assert goals[-1].found.startswith("0 of 4: ")


def test_a_variant_of_the_same_temperature_does_not_take_its_place():
    given = contents()
    for content in given.values():
        content["variants"]["EnD2-T10"] = dict(content["methods"]["EnD2"])
        content["methods"]["EnD2"]["nll"] = seeds(9.0, 3, 0.0)
    _, goals, misses = judged(given)
    assert "depth/nyu/EnD2/nll" in misses
    assert "EnD2 9.000 (T = 10)" in goals[3].found


def test_another_temperature_is_not_judged_in_its_place():
    given = contents()
    for content in given.values():
        for score in ("nll", "delta1", "ood_auc"):
            del content["methods"]["EnD2"][score]
    states, goals, _ = judged(given)
    not_run = {wanted for wanted, state in states.items() if state == NOT_RUN}
    assert len(not_run) == 5
    assert all("EnD2" in wanted for wanted in not_run)
    assert goals[-1].found == ""


def test_a_student_without_other_temperatures_is_judged():
    given = contents()
    for content in given.values():
        del content["variants"]["EnD2-T1"]
        content["config"]["temperature"] = 1.0
    states, goals, _ = judged(given)
    assert set(states.values()) == {HOLDS}
    assert "other temperature" not in goals[-1].found


def test_fewer_seeds_than_wanted_are_not_the_whole():
    given = contents()
    given["nyu"]["config"]["seeds"] = [0]
    for aucs in given["nyu"]["methods"]["EnD2"]["ood_auc"].values():
        aucs["mutual_information"] = seeds(0.1, 2)
    states, goals, misses = judged(given)
    assert goals[-1].state == UNFINISHED
    assert [state for wanted, state in states.items() if wanted.startswith("NYU")] == [
        UNFINISHED
    ] * 4
    assert misses == []
