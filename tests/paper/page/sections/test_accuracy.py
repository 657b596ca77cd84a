"""RMSE and NLL beside the paper's: counts, misses, and what was not run."""

from _results import around, paper_methods
from priornet_paper.page.compare import FAILS, HOLDS, UNFINISHED
from priornet_paper.page.numbers import SETS, Key, published
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections.accuracy import accuracy, besides


def section(folder):
    return accuracy(read_folder(folder.path), published())


def row(lines, dataset):
    return [line for line in lines if line.startswith(f"| **{dataset}**")]


def test_paper_against_itself_has_no_miss(folder):
    for name in SETS:
        folder.put(name, paper_methods(name))
    found = section(folder)
    (goal,) = found.goals
    assert goal.state == HOLDS
    assert goal.found == (
        "40 of 40; by the paper's errors alone 40; 40 means are at or below the paper's"
    )
    assert found.misses == []
    assert "3.54 ± 0.01<br>3.54 ± 0.32<br>0.0" in row(found.lines, "boston")[0]


def test_one_miss_is_counted_marked_and_named(folder):
    methods = paper_methods("boston")
    # The paper: 2.50 +- 0.05; with an error of 0.12 the difference is 0.26 / 0.13 = 2 errors.
    methods["EnD2"]["nll"] = around(2.77, 0.12)
    folder.put("boston", methods)
    found = section(folder)
    (goal,) = found.goals
    assert goal.state == UNFINISHED
    assert goal.found == (
        "7 of 8; by the paper's errors alone 7; 7 means are at or below the paper's"
    )
    (miss,) = found.misses
    assert miss.key == "paper/boston/nll/EnD2"
    assert miss.text == "boston, EnD2, NLL 2.77 against 2.50 (+2.1)"
    assert "2.77 ± 0.12<br>2.50 ± 0.05<br>**✗ +2.1**" in row(found.lines, "boston")[1]


def test_five_misses_are_too_many(folder):
    for name in SETS:
        methods = paper_methods(name)
        methods["NWPN"]["rmse"] = around(99.0)
        folder.put(name, methods)
    (goal,) = section(folder).goals
    assert goal.state == FAILS
    assert goal.found.startswith("35 of 40; ")


def test_our_errors_excuse_cells_that_the_papers_do_not(folder):
    methods = paper_methods("boston")
    # The paper: 2.50 +- 0.05. Three of its errors above, half a combined one.
    methods["EnD2"]["nll"] = around(2.65, 0.3)
    # 2.48 +- 0.04: above its mean, and within two of its errors.
    methods["NWPN"]["nll"] = around(published().numbers[Key("boston", "nll", "NWPN")].mean + 0.01)
    folder.put("boston", methods)
    (goal,) = section(folder).goals
    assert goal.found == (
        "8 of 8; by the paper's errors alone 7; 6 means are at or below the paper's"
    )


def test_table_that_is_not_whole_is_shown_and_not_judged(folder):
    folder.put("boston", paper_methods("boston"))
    folder.put("msd", paper_methods("msd", shift=5.0), complete=False)
    found = section(folder)
    assert found.misses == []
    assert row(found.lines, "msd")[0].count("not run on the full table") == 4
    assert "14.08 ± 0.01<br>9.08 ± 0.00<br>not run on the full table" in row(found.lines, "msd")[0]
    assert found.goals[0].found.startswith("8 of 8; ")


def test_what_is_missing_is_not_run(folder):
    methods = paper_methods("boston")
    del methods["NWPN"]
    folder.put("boston", methods)
    found = section(folder)
    assert row(found.lines, "boston")[0].count("not run") == 1
    assert row(found.lines, "wine")[0].count("not run") == 4
    assert found.goals[0].found.startswith("6 of 6; ")


def test_nothing_run_at_all(folder):
    (goal,) = section(folder).goals
    assert (goal.found, goal.state) == ("", "not run")


def test_other_methods_and_metrics_are_ours_only(folder):
    methods = paper_methods("boston")
    methods["DER"] = {**methods["NWPN"], "rmse": around(3.21), "coverage90": around(0.876)}
    folder.put("boston", methods)
    folder.put("unseen", methods)
    text = "\n".join(besides(read_folder(folder.path)))
    assert "| boston | 3.21 ± 0.01 | not run | not run |" in text
    assert "| 87.6 % |" in text
    assert "| unseen | 3.21 ± 0.01 |" in text
