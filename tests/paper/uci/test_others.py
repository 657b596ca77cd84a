"""Methods that a run of some methods leaves standing: those whose settings are the same."""

import json

import pytest

from priornet.evaluation.results import summary
from priornet_paper.uci import Beyond, Paper, with_others

CONFIG = json.loads(json.dumps(Beyond().to_json()))
SOUND = dict.fromkeys(("rmse", "nll", "crps", "coverage90"), summary([1.0, 3.0]))


def results(*names, **more):
    return {
        "dataset": "boston",
        "preset": "beyond",
        "complete": True,
        "n_rows": 506,
        "n_features": 13,
        "config": CONFIG,
        "methods": {
            name: {**SOUND, "seconds": 10.0, "of": more.get("commit", "a")} for name in names
        },
        "workers": 2,
        "device": "cpu",
        "versions": {"torch": "2"},
        "seconds": 30.0,
        "commit": "a",
        "dirty": False,
        **more,
    }


def changed(method):
    estimators = {**CONFIG["estimators"], method: {**CONFIG["estimators"][method], "hidden": [9]}}
    return {**CONFIG, "estimators": estimators}


@pytest.fixture
def joined(tmp_path):
    def join(old, new):
        path = tmp_path / "boston.beyond.json"
        path.write_text(old if isinstance(old, str) else json.dumps(old))
        return with_others(path, new)[0]

    return join


def test_other_methods_are_kept_in_the_usual_order(joined):
    found = joined(results("Single", "NWPN", "DER"), results("NWPN", "EnD2", commit="b"))
    assert list(found["methods"]) == ["Single", "EnD2", "NWPN", "DER"]
    assert [scores["of"] for scores in found["methods"].values()] == ["a", "b", "b", "a"]
    assert found["commit"] == "a, b"
    assert found["seconds"] == 30 + 2 * 10 / 2


def test_kept_methods_keep_their_own_signature(joined):
    old = results("Single", "NWPN", "DER", commit="a, b, c")
    for name, commit in (("Single", "a"), ("NWPN", "b"), ("DER", "c")):
        old["methods"][name] |= {"commit": commit, "dirty": name == "DER", "device": "cpu"}
    new = results("DER", commit="d")
    new["methods"]["DER"] |= {"commit": "d", "dirty": False, "device": "cpu"}
    found = joined(old, new)
    signed = {
        name: (scores["commit"], scores["dirty"]) for name, scores in found["methods"].items()
    }
    assert signed == {"Single": ("a", False), "NWPN": ("b", False), "DER": ("d", False)}
    assert (found["commit"], found["dirty"]) == ("a, b, d", False)  # nothing of c is left


def test_kept_methods_of_an_unsigned_file_get_the_files_signature(joined):
    new = results("DER", commit="b")
    new["methods"]["DER"] |= {"commit": "b", "dirty": False}
    found = joined(results("Single", "DER", dirty=True), new)
    single = found["methods"]["Single"]
    assert (single["commit"], single["dirty"], single["device"]) == ("a", True, "cpu")
    assert (found["commit"], found["dirty"]) == ("a, b", True)


@pytest.mark.parametrize(("old", "new"), [("EnD2", "ENSM"), ("ENSM", "EnD"), ("MD-EnD", "EnD2")])
def test_students_and_ensembles_of_different_runs_are_not_put_together(joined, old, new):
    assert joined(results(old, "DER"), results(new))["methods"].keys() == {new, "DER"}


@pytest.mark.parametrize(
    "more",
    [
        {"n_rows": 505},
        {"preset": "paper"},
        {"device": "NVIDIA H200"},
        {"versions": {"torch": "1"}},
        {"config": {**CONFIG, "seed": 1}},
        {"config": changed("DER")},
    ],
)
def test_other_tables_and_settings_are_replaced(joined, more):
    new = results("Single")
    assert joined(results("DER", **more), new) is new


def test_settings_of_the_method_that_is_replaced_may_differ(joined):
    old = results("Single", "DER", config=changed("Single"))
    assert list(joined(old, results("Single"))["methods"]) == ["Single", "DER"]


def test_grids_of_the_paper_count_for_their_method(joined):
    config = json.loads(json.dumps(Paper().to_json()))
    other = {**config, "grids": {**config["grids"], "Single": {"learning_rate": [1.0]}}}
    old = results("ENSM", "NWPN", "DER", config=other)
    found = joined(old, results("Single", config=config))
    assert list(found["methods"]) == ["Single", "NWPN", "DER"]  # ensembles take Single's


def test_what_was_changed_stays_so(joined):
    assert joined(results("DER", dirty=True), results("Single"))["dirty"] is True
    assert joined(results("DER"), results("Single"))["dirty"] is False
    assert joined(results("DER"), results("Single", dirty=None))["dirty"] is None
    assert joined(results("DER", dirty=None), results("Single"))["dirty"] is None


def test_numbers_that_do_not_belong_together_are_not_kept(joined):
    old, new = results("DER"), results("Single")
    old["methods"]["DER"]["nll"] = {**summary([1.0, 2.0]), "mean": 0.1}
    assert joined(old, new) is new


@pytest.mark.parametrize("old", ["", "[]", "{}", '{"methods": {"DER": {}}}'])
def test_a_damaged_file_is_replaced(joined, old):
    new = results("Single")
    assert joined(old, new) is new


def test_damaged_methods_are_named_and_sound_ones_kept(tmp_path):
    path, old = tmp_path / "boston.beyond.json", results("Single", "NWPN", "DER")
    old["methods"]["DER"]["nll"] = {**summary([1.0, 2.0]), "mean": 0.1}
    path.write_text(json.dumps(old))
    found, lost = with_others(path, results("EnD"))
    assert list(found["methods"]) == ["Single", "NWPN", "EnD"]
    assert lost == ["DER"]


def test_nothing_there(tmp_path):
    new = results("Single")
    assert with_others(tmp_path / "boston.json", new) == (new, [])


def test_what_is_lost_is_named(tmp_path):
    path = tmp_path / "boston.beyond.json"
    path.write_text(json.dumps(results("Single", "ENSM", "EnD2", "DER", config=changed("DER"))))
    found, lost = with_others(path, results("EnD"))
    assert found["methods"].keys() == {"Single", "EnD"}
    assert lost == ["ENSM", "EnD2", "DER"]
