"""Published methods on the published splits, beside ours."""

from _results import around
from priornet_paper.page.compare import FAILS, HOLDS, UNFINISHED
from priornet_paper.page.numbers import peers
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections.peer_table import peer_table

LOWEST = {  # of Deep Ensembles' and Deep Evidential's NLL, by eye
    **{"boston": 2.35, "energy": 1.38, "concrete": 3.01},
    **{"wine": 0.89, "power": 2.79, "protein": 2.63},
}


def put(folder, nll, **more):
    for name, value in nll.items():
        methods = {m: {"nll": around(value), "rmse": around(1.0)} for m in ("EnD2", "ENSM")}
        folder.put(name, methods, "splits", **more)
    return peer_table(read_folder(folder.path))


def test_at_or_below_both_everywhere_reaches_both_goals(folder):
    found = put(folder, LOWEST)
    assert [goal.state for goal in found.goals] == [HOLDS, HOLDS]
    assert found.goals[0].found == "6 of 6"
    assert found.misses == []


def test_above_deep_ensembles_on_one_set_misses_the_first_goal(folder):
    found = put(folder, LOWEST | {"energy": 1.385})
    assert [goal.state for goal in found.goals] == [FAILS, HOLDS]
    assert [miss.key for miss in found.misses] == ["splits/energy/EnD2/Deep Ensembles"]
    assert "1.385, +0.005 to Deep Ensembles" in found.misses[0].text
    assert any("| energy | **✗ 1.385 ± 0.010** |" in line for line in found.lines)


def test_two_sets_may_lie_a_little_above_deep_evidential(folder):
    found = put(folder, LOWEST | {"wine": 0.92, "boston": 2.38})
    assert [goal.state for goal in found.goals] == [HOLDS, HOLDS]
    assert found.goals[1].found == "4 at or below, 6 within, of 6"


def test_three_are_too_many_and_one_too_far_is_too_far(folder):
    three = put(folder, LOWEST | {"wine": 0.90, "boston": 2.36, "protein": 2.64})
    assert three.goals[1].state == FAILS
    far = put(folder, LOWEST | {"wine": 0.93})
    assert far.goals[1].state == FAILS
    assert [miss.key for miss in far.misses] == ["splits/wine/EnD2/Deep Evidential"]


def test_sets_that_are_not_run_leave_the_goals_open(folder):
    found = put(folder, {"boston": 2.0})
    assert [goal.state for goal in found.goals] == [UNFINISHED, UNFINISHED]
    assert any(line.startswith("| wine | not run | not run | 0.94 |") for line in found.lines)


def test_lowest_of_a_row_is_bold(folder):
    found = put(folder, {"boston": 2.0, "energy": 1.0})
    text = "\n".join(found.lines)
    assert "| boston | **2.000 ± 0.010** |" in text
    assert "| energy | 1.000 ± 0.010 | 1.000 ± 0.010 | 1.38 | 1.39 | 1.99 | **0.60** |" in text


def test_table_that_is_not_whole_is_not_judged(folder):
    found = put(folder, {"boston": 9.0}, complete=False)
    assert found.misses == []
    assert [goal.state for goal in found.goals] == ["not run", "not run"]
    assert any("| boston | not run on the full table |" in line for line in found.lines)


def test_sources_are_named(folder):
    text = "\n".join(peer_table(read_folder(folder.path)).lines)
    assert all(entry["source"] in text for entry in peers().values())
