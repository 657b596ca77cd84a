"""Recipes whose test scores were looked at: what they changed, and the goals they reached."""

from _depth_results import depth_content, seeds
from priornet_paper.page.compare import FAILS, HOLDS
from priornet_paper.page.depth.goals import find_goals, find_verdicts
from priornet_paper.page.depth.numbers import read_depth
from priornet_paper.page.depth.recipes import recipes, recipes_in_short
from priornet_paper.page.notes import Notes


def older(dataset="nyu", **settings):
    content = depth_content(dataset, n_seeds=2)
    content["config"] |= settings
    return content


def lines_of(first, notes=None):
    present = {"nyu": depth_content("nyu")}
    return recipes(present, {"nyu": {"nyu-first": first}}, Notes(notes or {}))


def rows_of(lines):
    return [line.split(" | ") for line in lines if line.startswith(("| 1 |", "| 2 |"))]


def test_recipes_stand_in_their_order_with_what_differs_from_now():
    lines = lines_of(older(structure=0.0, student_epochs=20), {"recipes/nyu-first": "A remark."})
    first, second = [line for line in lines if line.startswith(("1. ", "2. "))]
    assert first == (
        "1. `results/depth/again/nyu-first.json`, 2 seeds: `student_epochs` 20 (now 80), "
        "`structure` 0 (now 10). A remark."
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


def test_each_recipe_is_judged_by_its_own_numbers():
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


def test_verdicts_on_a_recipe_are_those_of_the_goals():
    for value in (0.9, 0.1):
        contents = {name: depth_content(name) for name in ("nyu", "kitti")}
        for content in contents.values():
            content["methods"]["EnD2"]["delta1"] = seeds(value, 3, 0.0)
            content["methods"]["EnD2"]["rmse"] = content["methods"]["ENSM"]["rmse"]
        goals, _ = find_goals(read_depth(contents), contents)
        (goal,) = [goal for goal in goals if "KITTI" in goal.wanted and "within" in goal.wanted]
        found = find_verdicts(read_depth({"kitti": contents["kitti"]}), "kitti", contents["kitti"])
        verdict = found["EnD2/accuracy"]
        assert goal.wanted.endswith(verdict.wanted)
        assert (goal.found, goal.state) == (verdict.found, HOLDS if verdict.is_good else FAILS)
        assert set(found) == {
            *("ENSM", "EnD2/accuracy", "EnD2/nll", "ood_auc/lsun_bedroom", "ood_auc/nyu")
        }


def test_the_summary_counts_recipes_and_is_silent_where_there_is_one():
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    assert recipes_in_short(contents, {}) == ""
    assert recipes_in_short({}, {}) == ""
    text = recipes_in_short(contents, {"nyu": {"a": older(), "b": older()}})
    assert "looked at, 3 on NYU and 1 on KITTI, " in text
    assert "(#depth-which-recipes-were-looked-at)" in text
