"""The same recipes with other seeds: judged by their own numbers, beside the first."""

from itertools import pairwise

from typer.testing import CliRunner

from _depth_results import depth_content, seeds
from priornet.cli import app
from priornet_paper.page.compare import FAILS, HOLDS
from priornet_paper.page.depth.new_seeds import new_seeds, new_seeds_in_short
from priornet_paper.page.notes import Notes


def both(**nll):
    """The first seeds, and new ones with another NLL of EnD2 where one is given."""
    first = {name: depth_content(name) for name in ("nyu", "kitti")}
    new = {name: depth_content(name) for name in ("nyu", "kitti")}
    for name, value in nll.items():
        new[name]["methods"]["EnD2"]["nll"] = seeds(value, 3, 0.0)
    for content in new.values():
        content["config"]["seeds"] = [10 + seed for seed in content["config"]["seeds"]]
    return first, new


def rows_of(first, new, start):
    found = [line for line in new_seeds(first, new, Notes()) if line.startswith(start)]
    return [line.strip("| ").split(" | ") for line in found]


def test_a_goal_is_judged_once_with_the_first_seeds_and_once_with_the_new():
    ((_, was, now),) = rows_of(*both(kitti=9.0), "| KITTI, 2 seeds: EnD2's NLL below")
    assert was.startswith(f"{HOLDS}: NLL: EnD2 1.42")
    assert now.startswith(f"{FAILS}: NLL: EnD2 9.000 (T = 10); ")


def test_numbers_of_both_stand_below_each_other():
    rows = rows_of(*both(nyu=9.0), "| NYU | EnD2 |")
    assert [row[-1].split("<br>") for row in rows] == [["-1.470 ± 0.001", "9.000 ± 0.000"]]


def test_the_command_makes_what_stands_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, new = both()
    new["nyu"]["methods"] = {name: new["nyu"]["methods"][name] for name in ("Single", "ENSM")}
    (line,) = [line for line in new_seeds(first, new, Notes()) if line.startswith("- NYU")]
    start, command, _ = line.split("`")
    assert start == "- NYU, beside seeds 0,1,2: "
    options = dict(pairwise(command.split()))
    assert command.startswith("priornet reproduce depth ")
    assert (options["--dataset"], options["--seeds"]) == ("nyu", "10,11,12")
    assert options["--methods"] == ",".join(["Single", "ENSM", *new["nyu"]["variants"]])
    assert options["--out"] == "results/depth/new-seeds"
    done = CliRunner().invoke(app, command.split()[1:])
    assert "depth: there is no such file or folder" in done.output  # all that it misses here


def test_one_set_alone_is_compared_with_its_own_first_seeds():
    first, new = both(nyu=9.0)
    lines = "\n".join(new_seeds(first, {"nyu": new["nyu"]}, Notes()))
    assert "NLL: EnD2 9.000" in lines
    assert "KITTI, 2 seeds" not in lines


def test_the_sentence_counts_what_is_reached():
    _, good = both()
    _, bad = both(kitti=9.0, nyu=9.0)
    counts = [new_seeds_in_short(new).split("run once, ")[1] for new in (good, bad)]
    n_good, n_bad = (int(text.split()[0]) for text in counts)
    assert n_good - n_bad == 2
    assert new_seeds_in_short({}) == ""
