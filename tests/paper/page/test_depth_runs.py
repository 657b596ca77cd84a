"""The depth half of the page: its parts, earlier configurations, new seeds."""

from itertools import pairwise

from typer.testing import CliRunner

from _depth_results import depth_content, seeds
from priornet.cli import app
from priornet_paper.page.depth_goals import find_goals, find_verdicts
from priornet_paper.page.depth_runs import (
    DEPTH_FIGURES,
    depth_parts,
    earlier_in_short,
    earlier_runs,
    new_seeds,
    new_seeds_in_short,
)
from priornet_paper.page.numbers import read_scores
from priornet_paper.page.results import Notes
from priornet_paper.page.sections import FAILS, HOLDS


def test_nothing_run_is_said_plainly():
    parts = depth_parts({})
    assert list(parts) == ["Depth"]
    (line, _) = parts["Depth"].lines
    assert "has not been run on NYU and KITTI" in line
    assert "`results/depth/nyu.json` and no `results/depth/kitti.json`" in line
    assert len(parts["Depth"].goals) == 8


def test_the_other_set_is_said_to_be_missing():
    first = next(iter(depth_parts({"nyu": depth_content("nyu")}).values()))
    assert "has not been run on KITTI" in first.lines[0]


def test_both_sets_fill_every_part():
    parts = depth_parts({name: depth_content(name) for name in ("nyu", "kitti")})
    assert set(DEPTH_FIGURES) < set(parts)
    assert all(section.lines for section in parts.values())
    assert "not been run" not in parts["Depth: what differs from the paper"].lines[0]


def older(dataset="nyu", **settings):
    content = depth_content(dataset, n_seeds=2)
    content["config"] |= settings
    return content


def lines_of(first, notes=None):
    present = {"nyu": depth_content("nyu")}
    return earlier_runs(present, {"nyu": {"nyu-first": first}}, Notes(notes or {}))


def rows_of(lines):
    return [line.split(" | ") for line in lines if line.startswith(("| 1 |", "| 2 |"))]


def test_configurations_stand_in_their_order_with_their_differences():
    lines = lines_of(older(structure=0.0, student_epochs=20), {"recipes/nyu-first": "A note."})
    first, second = [line for line in lines if line.startswith(("1. ", "2. "))]
    assert first == (
        "1. `results/depth/again/nyu-first.json`, 2 seeds: `student_epochs` 20 (now 80), "
        "`structure` 0 (now 10). A note."
    )
    assert second == "2. `results/depth/nyu.json`, 3 seeds: the present one."


def test_settings_that_older_files_do_not_name_were_off():
    first = older()
    for name in ("structure", "strange", "student_evenness", "gamma_seeds"):
        del first["config"][name]
    (line,) = [line for line in lines_of(first) if line.startswith("1. ")]
    assert line.endswith("2 seeds: `structure` 0 (now 10), `strange` 0 (now 0.3).")


def test_beta_is_a_setting_of_prior_networks_alone():
    first = older(beta=100.0)
    assert any("`beta` 100 (now 10)" in line for line in lines_of(first))
    del first["methods"]["NWPN"]
    assert any(line.endswith("2 seeds: the present settings.") for line in lines_of(first))


def test_each_configuration_is_judged_by_its_own_numbers():
    first = older()
    first["methods"]["EnD2"]["nll"] = seeds(9.0, 2, 0.0)
    before, now = rows_of(lines_of(first))
    assert before[4].startswith("✗ NLL: EnD2 9.000 (T = 10); ")
    assert now[4].startswith("✓ NLL: EnD2 -1.470 (T = 10); ")
    assert before[1] == now[1] == "✓ Single: δ1 0.852, rel 0.122"


def test_what_an_older_file_lacks_is_left_open():
    first = older()
    del first["methods"]["EnD2"]["ood_auc"]
    del first["methods"]["ENSM"]["rmse_log10"]
    before, now = rows_of(lines_of(first))
    assert before[2] == before[5] == "&ndash;"
    assert now[5].startswith("✓ AUC: EnD2 0.817 (T = 10); 0.817 (T = 1); ENSM 0.745 (V[mu])")


def test_verdicts_on_a_configuration_are_those_of_the_goals():
    for value in (0.9, 0.1):
        contents = {name: depth_content(name) for name in ("nyu", "kitti")}
        for content in contents.values():
            content["methods"]["EnD2"]["delta1"] = seeds(value, 3, 0.0)
            content["methods"]["EnD2"]["rmse"] = content["methods"]["ENSM"]["rmse"]
        goals, _ = find_goals(read_scores(contents), contents)
        (goal,) = [goal for goal in goals if "KITTI" in goal.wanted and "within" in goal.wanted]
        found = find_verdicts(read_scores({"kitti": contents["kitti"]}), "kitti", contents["kitti"])
        verdict = found["EnD2/accuracy"]
        assert goal.wanted.endswith(verdict.wanted)
        assert (goal.found, goal.state) == (verdict.found, HOLDS if verdict.is_good else FAILS)
        assert set(found) == {
            *("ENSM", "EnD2/accuracy", "EnD2/nll", "ood_auc/lsun_bedroom", "ood_auc/nyu")
        }


def test_the_summary_counts_configurations_and_is_silent_about_a_single_one():
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    assert earlier_in_short(contents, {}) == ""
    assert earlier_in_short({}, {}) == ""
    text = earlier_in_short(contents, {"nyu": {"a": older(), "b": older()}})
    assert "configurations for depth, 3 on NYU and 1 on KITTI, " in text
    assert "(#depth-earlier-configurations)" in text


def both(**nll):
    """Make results with the first seeds and with new ones, whose NLL of EnD2 may differ."""
    first = {name: depth_content(name) for name in ("nyu", "kitti")}
    new = {name: depth_content(name) for name in ("nyu", "kitti")}
    for name, value in nll.items():
        new[name]["methods"]["EnD2"]["nll"] = seeds(value, 3, 0.0)
    for content in new.values():
        content["config"]["seeds"] = [10 + seed for seed in content["config"]["seeds"]]
    return first, new


def rows_of_of_new_seeds(first, new, start):
    found = [line for line in new_seeds(first, new, Notes()) if line.startswith(start)]
    return [line.strip("| ").split(" | ") for line in found]


def test_a_goal_is_judged_once_with_the_first_seeds_and_once_with_the_new():
    ((_, was, now),) = rows_of_of_new_seeds(*both(kitti=9.0), "| KITTI, 2 seeds: EnD2's NLL below")
    assert was.startswith(f"{HOLDS}: NLL: EnD2 1.42")
    assert now.startswith(f"{FAILS}: NLL: EnD2 9.000 (T = 10); ")


def test_numbers_of_both_stand_below_each_other():
    rows = rows_of_of_new_seeds(*both(nyu=9.0), "| NYU | EnD2 |")
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
