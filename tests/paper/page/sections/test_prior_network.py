"""NWPN of our recipe: the best knowledge measure, and NLL beside the paper's."""

import pytest

from _results import CONFIG, around
from priornet_paper.page.compare import FAILS, HOLDS
from priornet_paper.page.numbers import published
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections.prior_network import prior_network


def put(folder, dataset, auc, nll, **more):
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
    put(folder, "boston", 0.9, 2.47)
    put(folder, "concrete", auc, nll)  # the paper's NWPN: 3.05
    found = section(folder)
    assert [miss.key for miss in found.misses] == missed
    assert found.goals[0].state == (FAILS if missed else HOLDS)


def test_best_knowledge_measure_is_named(folder):
    put(folder, "boston", 0.85, 2.40)
    assert "| boston | 2 | 0.85 ± 0.01 | K | 2.40 ± 0.01 | 2.47 ± 0.04 |" in section(folder).lines


def test_folds_of_other_draws_count_where_they_have_it(folder):
    put(folder, "boston", 0.85, 2.40)
    put(folder, "boston", 0.75, 2.50, again=1, config={**CONFIG, "seed": 1})
    without = {"EnD2": {"nll": around(1.0)}}
    folder.put("boston", without, "beyond", again=2, config={**CONFIG, "seed": 2})
    assert any(line.startswith("| boston | 4 | 0.80 ± ") for line in section(folder).lines)


def test_a_first_draw_that_missed_is_told_of(folder):
    put(folder, "concrete", 0.9, 3.0)
    put(folder, "boston", 0.85, 2.48)  # the paper's NWPN: 2.47
    put(folder, "boston", 0.85, 2.40, again=1, config={**CONFIG, "seed": 1})
    found = section(folder)
    assert found.goals[0].state == HOLDS
    assert found.goals[0].found == "2 of 2 over all folds, 1 with those of the first draw"


def test_other_sets_are_shown_without_a_goal(folder):
    put(folder, "wine", 0.2, 9.0)
    found = section(folder)
    assert found.misses == []
    assert found.goals[0].state == "not run"


def test_table_that_is_not_whole_is_not_judged(folder):
    put(folder, "boston", 0.2, 9.0, complete=False)
    found = section(folder)
    assert found.misses == []
    assert found.goals[0].found == ""
    assert any("not run on the full table" in line for line in found.lines)
