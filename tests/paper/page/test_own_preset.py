"""EnD2 against its ensemble, and NWPN: losses are shown as losses, limits are the stated ones."""

import pytest

from _results import CONFIG, around, paper_methods
from priornet.evaluation.results import summary
from priornet_paper.page.numbers import published
from priornet_paper.page.own_preset import OWN_SETS, over_draws, own_students, prior_network
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections import FAILS, HOLDS, UNFINISHED

EVEN = {"nll": 1.0, "rmse": 2.0, "ood_auc": 0.7, "prr": 0.5}


def methods(**student):
    """Make an ensemble, and a student that differs only in the given scores."""
    both = {}
    for name, values in (("ENSM", EVEN), ("EnD2", EVEN | student)):
        both[name] = {"nll": around(values["nll"]), "rmse": around(values["rmse"])}
        both[name]["ood_auc"] = {"variance_of_mean": around(values["ood_auc"])}
        both[name]["prr"] = {"total_variance": around(values["prr"])}
    return both


def put(folder, **student):
    for name in OWN_SETS:
        folder.put(name, methods(**student), "beyond")
    return own_students(read_folder(folder.path))


def states(section):
    return [goal.state for goal in section.goals[:4]]


@pytest.mark.parametrize(
    ("student", "expected"),
    [
        ({}, [HOLDS] * 4),
        ({"nll": 1.01, "rmse": 2.02, "ood_auc": 0.68, "prr": 0.47}, [HOLDS] * 4),
        ({"nll": 1.011}, [FAILS, HOLDS, HOLDS, HOLDS]),
        ({"rmse": 2.021}, [HOLDS, FAILS, HOLDS, HOLDS]),
        ({"ood_auc": 0.679}, [HOLDS, HOLDS, FAILS, HOLDS]),
        ({"prr": 0.469}, [HOLDS, HOLDS, HOLDS, FAILS]),
    ],
)
def test_each_column_has_its_own_limit(folder, student, expected):
    found = put(folder, **student)
    assert states(found) == expected
    assert len(found.misses) == 6 * expected.count(FAILS)


def test_loss_is_shown_as_a_loss(folder):
    found = put(folder, nll=1.5)
    assert "| boston | 2 | 1.500 | 1.000 | **✗ +0.500 ± 0.000** | 1.000 ± 0.000 |" in "\n".join(
        found.lines
    )
    assert found.misses[0].key == "beyond/boston/EnD2/nll"
    assert found.misses[0].text == "boston, EnD2, NLL difference: +0.500 ± 0.000"


def test_error_is_that_of_the_fold_by_fold_difference(folder):
    both = methods()
    both["ENSM"]["nll"] = summary([2.0, 11.0])
    both["EnD2"]["nll"] = summary([1.0, 8.0])
    folder.put("boston", both, "beyond")
    found = own_students(read_folder(folder.path))
    assert any("| -2.000 ± 1.000 |" in line for line in found.lines)


def put_draw(folder, name, seed, **student):
    return folder.put(name, methods(**student), "beyond", config={**CONFIG, "seed": seed}, again=1)


def test_goals_are_judged_over_the_folds_of_all_draws(folder):
    for name in OWN_SETS:
        folder.put(name, methods(prr=0.45), "beyond")
        put_draw(folder, name, 1, prr=0.5)
    found = own_students(read_folder(folder.path))
    assert states(found) == [HOLDS] * 4
    assert found.goals[3].found == "6 of 6 over all folds, 0 with those of the first draw"
    assert found.misses == []
    text = "\n".join(found.lines)
    assert "| boston | 4 | 1.000 | 1.000 |" in text
    assert "-0.025 ± " in text
    assert "| boston | 0 | 2 | 1.000 | 1.000 |" in text
    assert "**✗ -0.050 ± 0.000**" in text


def test_a_loss_over_all_folds_is_one_whatever_the_first_draw_said(folder):
    folder.put("boston", methods(prr=0.5), "beyond")
    put_draw(folder, "boston", 1, prr=0.4)
    found = own_students(read_folder(folder.path))
    assert [miss.key for miss in found.misses] == ["beyond/boston/EnD2/prr"]


def test_draws_that_change_which_sets_hold_are_told_of(folder):
    put(folder)
    folder.put("wine", methods(prr=0.4), "beyond")
    put_draw(folder, "boston", 1, prr=0.3)
    put_draw(folder, "wine", 1, prr=0.6)
    goal = own_students(read_folder(folder.path)).goals[3]
    assert goal.found == "5 of 6 over all folds, 5 with those of the first draw"


def test_a_draw_without_the_ensemble_or_of_some_rows_leaves_the_cell_open(folder):
    put(folder)
    alone = {"EnD2": methods()["EnD2"]}
    folder.put("boston", alone, "beyond", config={**CONFIG, "seed": 1}, again=1)
    folder.put("wine", methods(), "beyond", config={**CONFIG, "seed": 1}, again=1, complete=False)
    found = own_students(read_folder(folder.path))
    assert states(found) == [UNFINISHED] * 4
    text = "\n".join(found.lines)
    assert "| boston | 4 | 1.000 | not run | not run |" in text
    assert "| wine | 4<br>not run on the full table |" in text


def test_ratio_over_draws_is_that_of_the_means(folder):
    folder.put("boston", methods(rmse=2.0), "beyond")
    put_draw(folder, "boston", 1, rmse=2.2)
    found = own_students(read_folder(folder.path))
    assert any("| **✗ 1.050 ± " in line for line in found.lines)


def test_better_cells_are_counted(folder):
    found = put(folder, nll=0.9, prr=0.6)
    assert "The student is better than its ensemble in 12 of 24 cells." in found.lines


def test_missing_sets_leave_the_goal_open(folder):
    folder.put("boston", methods(), "beyond")
    found = own_students(read_folder(folder.path))
    assert states(found) == [UNFINISHED] * 4
    assert any(line.startswith("| protein | not run |") for line in found.lines)


def test_table_that_is_not_whole_is_not_judged(folder):
    folder.put("msd", methods(nll=5.0), "beyond", complete=False)
    found = own_students(read_folder(folder.path))
    assert found.misses == []
    (row,) = [line for line in found.lines if line.startswith("| msd |")]
    assert row.count("<br>not run on the full table |") == 7
    assert "| 5.000<br>" in row
    assert "✗" not in row
    assert found.goals[0].found == ""
    assert "better than its ensemble" not in "\n".join(found.lines)


def test_a_seventh_set_is_shown_and_its_losses_are_named(folder):
    folder.put("unseen", methods(nll=1.2), "beyond")
    found = own_students(read_folder(folder.path))
    assert [miss.key for miss in found.misses] == ["beyond/unseen/EnD2/nll"]
    assert found.goals[0].found == ""


@pytest.mark.parametrize(
    ("work", "wait", "state"), [(49, 1.4, HOLDS), (50, 1.4, FAILS), (49, 1.5, FAILS)]
)
def test_cost_has_limits_too(folder, work, wait, state):
    both = methods()
    both["EnD2"]["cost"] = {"multiply_adds": work, "latency_ms": wait}
    both["ENSM"]["cost"] = {"multiply_adds": 100, "latency_ms": 1.0}
    folder.put("boston", both, "beyond")
    found = own_students(read_folder(folder.path))
    assert found.goals[-1].state == state
    assert len(found.misses) == (state == FAILS)


def test_cost_that_was_not_measured_is_not_run(folder):
    folder.put("boston", paper_methods("boston"), "beyond")
    assert own_students(read_folder(folder.path)).goals[-1].state == "not run"


def test_cost_on_a_part_of_a_table_is_shown_and_not_counted(folder):
    both = methods()
    both["EnD2"]["cost"] = {"multiply_adds": 99, "latency_ms": 1.0}
    both["ENSM"]["cost"] = {"multiply_adds": 100, "latency_ms": 1.0}
    folder.put("msd", both, "beyond", complete=False)
    found = own_students(read_folder(folder.path))
    assert (found.goals[-1].state, found.misses) == ("not run", [])
    assert any(line.startswith("| msd | 99<br>not run on the full table |") for line in found.lines)


def put_prior_network(folder, dataset, auc, nll, **more):
    knowledge = {"epkl": around(auc), "variance_of_mean": around(0.1), "mutual_information": None}
    methods = {"NWPN": {"nll": around(nll), "ood_auc": {**knowledge, "total_variance": around(1)}}}
    folder.put(dataset, methods, "beyond", **more)


def section(folder):
    return prior_network(read_folder(folder.path), published())


@pytest.mark.parametrize(
    ("auc", "nll", "missed"),
    [
        (0.80, 3.05, []),
        (0.79, 3.05, ["beyond/concrete/NWPN/ood_auc"]),
        (0.80, 3.06, ["beyond/concrete/NWPN/nll"]),
        (0.10, 9.99, ["beyond/concrete/NWPN/ood_auc", "beyond/concrete/NWPN/nll"]),
    ],
)
def test_both_limits_count(folder, auc, nll, missed):
    put_prior_network(folder, "boston", 0.9, 2.47)
    put_prior_network(folder, "concrete", auc, nll)  # the paper's NWPN: 3.05
    found = section(folder)
    assert [miss.key for miss in found.misses] == missed
    assert found.goals[0].state == (FAILS if missed else HOLDS)


def test_best_knowledge_measure_is_named(folder):
    put_prior_network(folder, "boston", 0.85, 2.40)
    assert "| boston | 2 | 0.85 ± 0.01 | K | 2.40 ± 0.01 | 2.47 ± 0.04 |" in section(folder).lines


def test_folds_of_other_draws_count_where_they_have_it(folder):
    put_prior_network(folder, "boston", 0.85, 2.40)
    put_prior_network(folder, "boston", 0.75, 2.50, again=1, config={**CONFIG, "seed": 1})
    without = {"EnD2": {"nll": around(1.0)}}
    folder.put("boston", without, "beyond", again=2, config={**CONFIG, "seed": 2})
    assert any(line.startswith("| boston | 4 | 0.80 ± ") for line in section(folder).lines)


def test_a_first_draw_that_missed_is_told_of(folder):
    put_prior_network(folder, "concrete", 0.9, 3.0)
    put_prior_network(folder, "boston", 0.85, 2.48)  # the paper's NWPN: 2.47
    put_prior_network(folder, "boston", 0.85, 2.40, again=1, config={**CONFIG, "seed": 1})
    found = section(folder)
    assert found.goals[0].state == HOLDS
    assert found.goals[0].found == "2 of 2 over all folds, 1 with those of the first draw"


def test_other_sets_are_shown_without_a_goal(folder):
    put_prior_network(folder, "wine", 0.2, 9.0)
    found = section(folder)
    assert found.misses == []
    assert found.goals[0].state == "not run"


def test_table_that_is_not_whole_is_not_judged_prior_network(folder):
    put_prior_network(folder, "boston", 0.2, 9.0, complete=False)
    found = section(folder)
    assert found.misses == []
    assert found.goals[0].found == ""
    assert any("not run on the full table" in line for line in found.lines)


@pytest.mark.parametrize(
    ("cells", "first", "found"),
    [
        ([True, True], [True, True], "2 of 2"),
        ([True, True], [True, False], "2 of 2 over all folds, 1 with those of the first draw"),
        ([None, None], [True, True], ""),
    ],
)
def test_draws_are_told_of_where_the_first_differs(cells, first, found):
    goal = over_draws("both", cells, first)
    assert goal.found == found
    assert bool(goal.caveat) == ("first draw" in found)
