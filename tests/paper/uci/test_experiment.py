"""From a real table to results: resuming, workers, merging, and the committed numbers."""

import json
import multiprocessing
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from _results import assert_reproduced
from priornet.evaluation.results import provenance, read_results, summary, write_results
from priornet.evaluation.scores import MEASURES
from priornet_paper.runs.scores import SCORES
from priornet_paper.uci import (
    METHODS,
    PRESETS,
    Defaults,
    Paper,
    Request,
    config_for,
    default_methods,
    run_tables,
)
from priornet_paper.uci.data import load_uci
from priornet_paper.uci.experiment import file_name, finished, merged
from priornet_paper.uci.jobs import summarise

SIGNATURE = {"device", "versions", "processor", "commit", "dirty", "seconds"}
EARLIER = Path(__file__).parent / "files" / "boston.smoke"
RESULTS = Path(__file__).parents[3] / "results" / "uci"

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Folder of parts that the tests of this module share."""
    return tmp_path_factory.mktemp("parts")


def run(table, preset, config, progress=lambda _: None, workers=1, **options):
    """Run one table."""
    wanted = Request(table, preset, config, **options)
    return run_tables([wanted], workers=workers, progress=lambda _, share: progress(share))[0]


def smoke_run(folder=None, **changes):
    options = {"methods": METHODS, "workers": 1, **changes}
    return run(load_uci("boston"), "smoke", config_for("boston", "smoke"), folder=folder, **options)


def test_results_have_the_agreed_form(kept):
    results = smoke_run(kept)
    assert json.loads(json.dumps(results, allow_nan=False)) == results
    assert (results["dataset"], results["complete"]) == ("boston", True)
    assert (results["n_rows"], results["n_features"]) == (506, 13)
    assert tuple(results["methods"]) == METHODS
    for method in results["methods"].values():
        assert all(len(method[name]["values"]) == 2 for name in SCORES)
        assert set(method["prr"]) == set(method["ood_auc"]) == set(MEASURES)
        assert len(method["chosen"]) == 2
    assert results["methods"]["Single"]["prr"]["epkl"] is None
    assert results["methods"]["ENSM"]["prr"]["epkl"]["sem"] > 0


def test_every_method_is_signed(kept):
    results = smoke_run(kept)
    for method in results["methods"].values():
        assert method.keys() >= SIGNATURE
        assert method["device"] == "cpu"
        assert method["commit"] == provenance()["commit"]


def test_finished_parts_are_not_done_again(kept):
    first = smoke_run(kept)
    done: list[float] = []
    second = smoke_run(kept, progress=done.append)
    assert done == []
    assert second["methods"] == first["methods"]
    parts = [json.loads(path.read_text()) for path in kept.glob("*.json")]
    # The work counts, whenever it was done.
    assert second["seconds"] == pytest.approx(sum(part["seconds"] for part in parts), abs=0.1)


def test_the_folder_of_an_earlier_version_is_resumed(tmp_path):
    """The parts were written by the version before jobs and parts were shared with depth."""
    folder = shutil.copytree(EARLIER, tmp_path / "parts")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    done: list[float] = []
    results = smoke_run(folder, methods=("Single", "ENSM", "DER"), progress=done.append)
    assert done == []
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert {scores["commit"] for scores in results["methods"].values()} == {
        "ac4db8e2d919f0f411b71d22823495712648d902"
    }


def test_a_damaged_part_is_not_averaged_in(kept):
    first = smoke_run(kept)
    path = next(iter(kept.glob("DER.*.json")))
    path.write_text(path.read_text()[:-40])
    with pytest.warns(UserWarning, match="made again"):
        second = smoke_run(kept)
    for name in SCORES:
        assert second["methods"]["DER"][name] == first["methods"]["DER"][name]


def request(dataset, methods, folder=None, **changes):
    config = replace(config_for(dataset, "smoke"), **changes)
    return Request(load_uci(dataset), "smoke", config, methods, folder)


def without_seconds(results):
    methods = results["methods"].items()
    return {name: {**method, "seconds": None} for name, method in methods}


@pytest.mark.usefixtures("forked_workers")
def test_workers_change_nothing():
    """Tables, methods and folds in two processes, against one after the other in this one."""
    several = ("Single", "ENSM", "EnD2", "NWPN")
    requests = [request("boston", several, folds_per_stack=1), request("energy", ("DER",))]
    alone, together = (run_tables(requests, workers=n) for n in (1, 2))
    assert [results["dataset"] for results in together] == ["boston", "energy"]
    assert [without_seconds(r) for r in alone] == [without_seconds(r) for r in together]
    assert [r["beside"] for r in alone] == [[], []]
    assert [r["beside"] for r in together] == [["energy"], ["boston"]]


@pytest.mark.usefixtures("forked_workers")
def test_a_killed_worker_is_reported_and_the_rest_goes_on(tmp_path):
    methods = ("ENSM", "DER", "EnD")
    wanted = request("boston", methods, tmp_path, folds_per_stack=1)

    killed = []

    def kill_one(_request, _share):
        if not killed and any(tmp_path.glob("*.json")):  # once: the pool ends the others itself
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(ChildProcessError, match=r"during: .*boston, folds"):
        run_tables([wanted], workers=2, progress=kill_one)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert 0 < len(kept) < 2 * len(methods)
    (resumed,) = run_tables([wanted])
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    (whole,) = run_tables([request("boston", methods, folds_per_stack=1)])
    assert without_seconds(resumed) == without_seconds(whole)


def test_results_come_as_soon_as_they_are_there(kept):
    order = []
    smoke_run(kept)
    requests = [request("energy", ("DER",)), request("boston", METHODS, kept)]
    run_tables(requests, done=lambda r, results: order.append(results["dataset"]))
    assert order == ["boston", "energy"]  # all parts of the first were on disk


def test_our_configuration_runs(tmp_path):
    brief = {"ENSM": {"epochs": 30, "hidden": (16,)}, "EnD2": {"student_epochs": 60}}
    config = replace(PRESETS["beyond"], folds=(0,), n_members=6, changes=brief)
    results = run(load_uci("boston"), "beyond", config, methods=["ENSM", "EnD2"], folder=tmp_path)
    student, teacher = results["methods"]["EnD2"], results["methods"]["ENSM"]
    assert student["nll"]["mean"] < 3.5
    assert student["cost"]["multiply_adds"] > 0
    assert teacher["cost"]["multiply_adds"] == 6 * (13 * 16 + 16 * 2)
    assert results["config"]["estimators"]["EnD2"]["class"] == "DistilledRegressor"


def test_finished_results_answer_the_same_question_only(tmp_path, kept):
    config = config_for("boston", "smoke")
    path = tmp_path / file_name("boston", "smoke", config)
    assert finished(path, config, METHODS, 506) is None
    write_results(path, smoke_run(kept))
    assert finished(path, config, METHODS, 506) is not None
    assert finished(path, config, METHODS[:2], 506) is not None
    assert finished(path, replace(config, seed=1), METHODS, 506) is None
    assert finished(path, replace(config, n_folds=9), METHODS, 506) is None
    assert finished(path, config, METHODS, 505) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"config": {}}', ""])
def test_a_damaged_results_file_is_named(tmp_path, text):
    path = tmp_path / "boston.smoke.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a results file") as caught:
        finished(path, config_for("boston", "smoke"), METHODS, 506)
    assert str(path) in str(caught.value)


def test_files_are_named_by_preset():
    paper, beyond = PRESETS["paper"], PRESETS["beyond"]
    assert file_name("wine", "paper", paper) == "wine.json"
    assert file_name("wine", "beyond", beyond) == "wine.beyond.json"
    assert file_name("wine", "beyond", replace(beyond, splits="canonical")) == "wine.splits.json"


@pytest.mark.skipif(not (RESULTS / "boston.json").exists(), reason="no results are committed")
def test_one_fold_again_gives_the_committed_numbers():
    """On another processor rounding moves a small network within these bounds."""
    committed = read_results(RESULTS / "boston.json")
    config = replace(config_for("boston", "paper"), folds=(0,))
    again = run(load_uci("boston"), "paper", config, methods=["Single", "ENSM", "NWPN"])
    assert committed["config"] == json.loads(json.dumps(replace(config, folds=None).to_json()))
    for method, found in again["methods"].items():
        before = committed["methods"][method]
        assert found["rmse"]["values"][0] == pytest.approx(before["rmse"]["values"][0], rel=0.05)
        assert found["nll"]["values"][0] == pytest.approx(before["nll"]["values"][0], abs=0.1)
        assert found["crps"]["values"][0] == pytest.approx(before["crps"]["values"][0], rel=0.05)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.name)
def test_committed_results_answer_the_plain_command(path):
    """Defaults that changed want results that are run again."""
    dataset, preset = path.name.split(".")[:2]
    config = config_for(dataset, "paper" if preset == "json" else "beyond")
    if preset == "splits":
        config = replace(config, splits="canonical")
    n_rows = len(load_uci(dataset).targets)
    assert finished(path, config, default_methods(config), n_rows) is not None


@pytest.mark.parametrize(
    "method", ["Single", "ENSM", "NWPN", "DER", pytest.param("EnD2", marks=pytest.mark.slow)]
)
def test_a_fold_of_every_method_repeats_the_committed_one(method):
    config = replace(config_for("boston", "beyond"), folds=(2,))
    now = run(load_uci("boston"), "beyond", config, methods=[method])
    committed = read_results(RESULTS / "boston.beyond.json")
    assert_reproduced(now, committed, method, SCORES, fold=2, loose=0.5)


@pytest.mark.parametrize("real", [None])  # it needs no tables
def test_scores_and_curves_are_means_over_the_folds_of_all_parts(real):
    def part(*values):
        records = [
            dict.fromkeys(SCORES, value)
            | {kind: dict.fromkeys(MEASURES, value) for kind in ("prr", "ood_auc")}
            | {"rejection": {"fraction": [0.0, 1.0], "random": [value, 0.0]}}
            for value in values
        ]
        return {"records": records, "seconds": 2.0, **provenance()}

    found = summarise([part(1.0, 2.0), part(6.0)])
    assert found["rmse"]["mean"] == 3
    assert found["prr"]["epkl"]["mean"] == 3
    assert found["rejection"] == {"fraction": [0.0, 1.0], "random": [3.0, 0.0]}
    assert found["seconds"] == 4


CONFIG = json.loads(json.dumps(Defaults().to_json()))
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
        return merged(path, new)[0]

    return join


def test_other_methods_are_kept_in_the_default_order(joined):
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
    found, lost = merged(path, results("EnD"))
    assert list(found["methods"]) == ["Single", "NWPN", "EnD"]
    assert lost == ["DER"]


def test_nothing_there(tmp_path):
    new = results("Single")
    assert merged(tmp_path / "boston.json", new) == (new, [])


def test_what_is_lost_is_named(tmp_path):
    path = tmp_path / "boston.beyond.json"
    path.write_text(json.dumps(results("Single", "ENSM", "EnD2", "DER", config=changed("DER"))))
    found, lost = merged(path, results("EnD"))
    assert found["methods"].keys() == {"Single", "EnD"}
    assert lost == ["ENSM", "EnD2", "DER"]
