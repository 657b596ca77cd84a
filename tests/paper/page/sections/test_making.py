"""Settings, time and origin of the runs."""

from _results import CONFIG, paper_methods
from priornet_paper.page.compare import FAILS, HOLDS, UNFINISHED
from priornet_paper.page.notes import Notes
from priornet_paper.page.numbers import SETS
from priornet_paper.page.results import read_folder
from priornet_paper.page.sections.making import making


def section(folder):
    return making(read_folder(folder.path), Notes())


def put_all(folder, **more):
    for name in SETS:
        folder.put(name, paper_methods(name), **more)
    (goal,) = section(folder).goals
    return goal


def test_time_is_the_sum_over_the_five_sets(folder):
    goal = put_all(folder, seconds=899.0)
    assert (goal.found, goal.state) == ("74.9 min, 5 of 5 sets (cpu)", HOLDS)


def test_too_long_is_a_miss(folder):
    assert put_all(folder, seconds=901.0).state == FAILS


def test_other_device_says_nothing_about_two_cores(folder):
    assert put_all(folder, device="NVIDIA H200").state == "measured on another device"


def test_some_sets_leave_the_time_open(folder):
    folder.put("boston", paper_methods("boston"))
    (goal,) = section(folder).goals
    assert (goal.found, goal.state) == ("1.0 min, 1 of 5 sets (cpu)", UNFINISHED)


def test_setting_is_named_once_with_the_sets_that_differ(folder):
    for name in SETS:
        folder.put(name, paper_methods(name), config=CONFIG | {"hidden": 50, "folds": None})
    folder.put("msd", paper_methods("msd"), config=CONFIG | {"hidden": 100, "folds": None})
    text = "\n".join(section(folder).lines)
    assert "| `hidden` | 50; 100 (msd) |" in text
    assert "| `folds` | none |" in text
    assert "| `grids.Single` | learning_rate 0.001 / 0.01 |" in text


def test_run_that_was_changed_or_cut_short_says_so(folder):
    folder.put("msd", paper_methods("msd"), complete=False, n_rows=1176, dirty=True)
    text = "\n".join(section(folder).lines)
    assert (
        "| paper | msd | first 1,176 | 60 | cpu | priornet 0.1, torch 2.8 | unknown | 0123456, "
        "changed |" in text
    )


def test_commits_of_several_parts_are_all_named(folder):
    folder.put("boston", paper_methods("boston"), commit="aaaaaaaaaa, bbbbbbbbbb")
    assert "aaaaaaa, bbbbbbb |" in "\n".join(section(folder).lines)


def test_methods_of_different_commits_stand_beside_their_own(folder):
    methods = paper_methods("boston")
    methods["NWPN"] |= {"commit": "cccccccccc", "dirty": True}
    folder.put("boston", methods, commit="aaaaaaaaaa")
    (line,) = [text for text in section(folder).lines if text.startswith("| paper | boston |")]
    assert line.endswith("| aaaaaaa: Single, ENSM, EnD2<br>ccccccc, changed: NWPN |")


def test_methods_of_different_processors_stand_beside_their_own(folder):
    methods = paper_methods("boston")
    methods["Single"]["processor"] = "X (family 1 model 2)"
    folder.put("boston", methods, commit="aaaaaaaaaa")
    (line,) = [text for text in section(folder).lines if text.startswith("| paper | boston |")]
    assert "| X (family 1 model 2): Single<br>unknown: ENSM, EnD2, NWPN | aaaaaaa |" in line


def test_what_is_to_be_known_of_the_runs_is_printed_above_them(folder):
    notes = Notes({"making": ["one", "two"]})
    assert "- one" not in making(read_folder(folder.path), notes).lines
    folder.put("boston", paper_methods("boston"))
    assert {"- one", "- two"} <= set(making(read_folder(folder.path), notes).lines)


def test_further_draws_are_listed_with_their_seed(folder):
    folder.put("boston", paper_methods("boston"), "beyond")
    config = {**CONFIG, "seed": 7}
    folder.put("boston", paper_methods("boston"), "beyond", again=7, config=config)
    assert any(line.startswith("| beyond, seed 7 | boston |") for line in section(folder).lines)


def test_nothing_run_is_said(folder):
    assert "Nothing has been run yet." in section(folder).lines
