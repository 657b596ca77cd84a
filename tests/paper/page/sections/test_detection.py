"""PRR and OOD AUC beside the paper's: the margin, the count, and every miss."""

from _results import around, paper_methods
from priornet_paper.page.compare import FAILS, HOLDS
from priornet_paper.page.numbers import SETS, published
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections.detection import detection


def section(folder):
    return detection(read_folder(folder.path), published())


def test_within_the_margin_everywhere_is_no_miss(folder):
    for name in SETS:
        folder.put(name, paper_methods(name, shift=0.08))
    found = section(folder)
    (goal,) = found.goals
    assert goal.state == HOLDS
    assert goal.found == "130 of 130: 130 within, 0 above by more (0 below)"
    assert "from 101 across the goal of 104" in goal.caveat
    assert found.misses == []


def test_cells_that_are_better_by_more_than_the_margin_are_counted_apart(folder):
    methods = paper_methods("boston")
    methods["EnD2"]["prr"]["epkl"] = around(0.99)
    methods["ENSM"]["prr"]["total_variance"] = around(0.0)
    folder.put("boston", methods)
    assert section(folder).goals[0].found == "25 of 26: 24 within, 1 above by more (1 below)"


def test_below_the_margin_everywhere_is_a_miss(folder):
    for name in SETS:
        folder.put(name, paper_methods(name, shift=0.09))
    found = section(folder)
    (goal,) = found.goals
    assert goal.state == FAILS
    assert goal.found == "0 of 130: 0 within, 0 above by more (130 below)"
    assert len(found.misses) == 130


def test_miss_is_marked_and_named_and_better_is_not_a_miss(folder):
    methods = paper_methods("boston")
    methods["ENSM"]["prr"]["total_variance"] = around(0.51)  # the paper: 0.60
    methods["EnD2"]["ood_auc"]["epkl"] = around(0.99)  # the paper: 0.63
    folder.put("boston", methods)
    found = section(folder)
    (miss,) = found.misses
    assert miss.key == "paper/boston/prr/ENSM/total_variance"
    assert miss.text == "boston, ENSM, PRR by V[y] 0.51 against 0.60"
    text = "\n".join(found.lines)
    assert "**✗ 0.51 (0.60)**" in text
    assert "| 0.99 (0.63) |" in text
    assert found.goals[0].found.startswith("25 of 26: ")


def test_miss_that_two_decimals_do_not_show_is_one_and_says_so(folder):
    methods = paper_methods("boston")
    methods["ENSM"]["prr"]["total_variance"] = around(0.519)  # the paper: 0.60, to two decimals
    methods["EnD2"]["prr"]["total_variance"] = around(0.50)  # the paper: 0.61
    folder.put("boston", methods)
    found = section(folder)
    assert [miss.text for miss in found.misses] == [
        "boston, ENSM, PRR by V[y] 0.52 against 0.60 (within rounding)",
        "boston, EnD2, PRR by V[y] 0.50 against 0.61",
    ]
    assert found.goals[0].found.startswith("24 of 26: ")
    assert "1 of the 2 misses are differences of 0.08" in found.lines[-1]


def test_measure_that_the_paper_lacks_is_shown_and_not_counted(folder):
    methods = paper_methods("boston")
    methods["ENSM"]["prr"]["mutual_information"] = around(-0.77)
    folder.put("boston", methods)
    found = section(folder)
    assert any("| -0.77 |" in line for line in found.lines)
    assert found.goals[0].found.startswith("26 of 26: ")


def test_table_that_is_not_whole_is_not_judged(folder):
    folder.put("msd", paper_methods("msd", shift=0.5), complete=False)
    found = section(folder)
    assert found.misses == []
    assert any(line.startswith("| msd") and "not run on the full" in line for line in found.lines)
    assert (found.goals[0].state, found.goals[0].found) == ("not run", "")
    assert found.goals[0].caveat == ""
