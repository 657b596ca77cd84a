"""A whole run: order of tasks, side by side, merging, and the form of the results."""

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from _depth_files import write_pairs, write_split
from priornet.depth import DepthError, open_depth
from priornet.evaluation.results import provenance, read_results
from priornet_paper.depth import work
from priornet_paper.depth.config import file_name, variants
from priornet_paper.depth.data import Sets, Sources
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.run import finished, merged
from priornet_paper.depth.run import train_and_score as run
from priornet_paper.depth.tasks import Task, scores_of, together, with_needs


def whole(*arguments, **options):
    """A run that ends."""
    found = run(*arguments, **options)
    assert found
    return found


def keys(tasks):
    return [f"{task.kind} {task.key}" for task in tasks]


def test_everything_comes_once_and_after_what_it_needs(plan):
    wanted = variants(replace(plan.config, seeds=(0, 1)), ["ENSM", "Single", "EnD2"])
    tasks = with_needs(scores_of(wanted))
    names = keys(tasks)
    assert len(names) == len(set(names))
    assert names.count("train Single.1.1") == 1
    for task in tasks:
        for needed in keys(task.needs):
            assert names.index(needed) < names.index(f"{task.kind} {task.key}")


def test_students_of_one_ensemble_are_taught_together(plan):
    names = ["ENSM", "EnD2", "EnD2-T10", "EnD", "MD-EnD"]
    wanted = variants(replace(plan.config, seeds=(0, 1)), names)
    tasks = with_needs(scores_of(wanted))
    joined = together(tasks)
    students = [task for task in joined if task.kind == "train" and task.variant.name != "Single"]
    assert [[one.key for one in task.each] for task in students] == [
        [f"{name}.{seed}" for name in names[1:]] for seed in (0, 1)
    ]
    assert keys(one for task in joined for one in task.each) != keys(tasks)  # in another order
    assert sorted(keys(one for task in joined for one in task.each)) == sorted(keys(tasks))
    halves = [task for task in together(tasks, 2) if task.beside]
    assert [[one.key for one in task.each] for task in halves] == [
        [f"{name}.{seed}" for name in half]
        for seed in (0, 1)
        for half in (("EnD2", "EnD"), ("EnD2-T10", "MD-EnD"))
    ]
    assert keys(together(tasks, 4)) == keys(tasks)


def test_students_of_other_ensembles_or_images_are_not(plan):
    (plain,) = variants(plan.config, ["EnD2"])
    (other_images,) = variants(replace(plan.config, strange=0.5), ["EnD"])
    (weighted,) = variants(replace(plan.config, student_evenness=0.5), ["EnD"])
    first = Task("train", plain, 0)
    assert together([first, Task("train", other_images, 0)])[0].beside == ()
    assert together([first, Task("train", weighted, 1)])[0].beside == ()
    assert together([first, Task("train", weighted, 0)]) == [first._replace(beside=(weighted,))]


def test_results_hold_every_seed(plan):
    wanted = variants(replace(plan.config, seeds=(0, 1)), ["Single", "DER"])
    found = whole(replace(plan, config=wanted[0].config), wanted, "smoke")
    assert found["dataset"] == "nyu"
    assert (found["n_train"], found["n_test"]) == (6, 4)
    assert found["foreign"] == {"kitti": 7, "lsun_bedroom": 3}
    assert list(found["methods"]) == ["Single", "DER"]
    single = found["methods"]["Single"]
    assert len(single["rmse"]["values"]) == 2
    assert single["rmse"]["values"][0] != single["rmse"]["values"][1]
    assert len(single["ood_auc"]["kitti"]["total_variance"]["values"]) == 2
    assert len(single["training"][0][0]["losses"]) == 1
    assert found["weights"] is None
    assert found["sources"]["train"] == "nyu_small"
    digests = {"train", "train_images", "test", "kitti", "lsun_bedroom", "weights"}
    assert found["digests"].keys() == digests
    assert found["protocol"]["resolution"] == {"targets": [32, 64], "predictions": [16, 32]}
    assert {"seconds", "device", "versions", "commit", "dirty", "protocol"} <= found.keys()
    json.dumps(found, allow_nan=False)


def test_results_say_which_commit_each_method_is_of(plan, monkeypatch):
    def sign(commit, dirty=False):
        signed = {**provenance(), "commit": commit, "dirty": dirty}
        monkeypatch.setattr(work, "provenance", lambda: signed)

    seeds = replace(plan, config=replace(plan.config, seeds=(0, 1), gammas=(0.0, 0.01)))
    wanted = variants(seeds.config, ["Single", "DER", "NWPN"], ablation=True)
    by_name, worker = {variant.name: variant for variant in wanted}, work.Worker(plan)
    sign("a")
    worker.do(Task("train", by_name["Single"], 0))  # not scored yet
    for task in with_needs([Task("score", by_name["DER"], 0)]):  # one of two seeds
        worker.do(task)
    sign("b", dirty=True)
    for task in with_needs([Task("score", by_name["NWPN-g0"], 0)]):
        worker.do(task)
    sign("c")
    found = whole(seeds, wanted, "smoke")
    signed = {
        name: (scores["commit"], scores["dirty"])
        for group in ("methods", "variants")
        for name, scores in found[group].items()
    }
    assert signed == {
        "Single": ("a, c", False),
        "DER": ("a, c", False),
        "NWPN": ("c", False),
        "NWPN-g0": ("b", True),
    }
    assert (found["commit"], found["dirty"]) == ("a, b, c", True)


NETWORKS = (("methods", "NWPN"), ("variants", "NWPN-g0"))


def test_variants_stand_apart(plan):
    plan = replace(plan, config=replace(plan.config, seeds=(0, 1)))
    wanted = variants(plan.config, ["NWPN"], ablation=True)
    found = whole(plan, wanted, "smoke")
    assert list(found["methods"]) == ["NWPN"]
    assert list(found["variants"]) == ["NWPN-g0"]
    assert found["variants"]["NWPN-g0"]["settings"] == {"gamma": 0.0, "seeds": [0]}
    n_seeds = {name: len(found[group][name]["rel"]["values"]) for group, name in NETWORKS}
    assert n_seeds == {"NWPN": 2, "NWPN-g0": 1}


def test_scores_are_kept_when_their_weights_are_lost(plan):
    wanted = variants(plan.config, ["Single"])
    first = whole(plan, wanted, "smoke")
    for path in (plan.folder / "weights").iterdir():
        path.unlink()
    told = []
    second = whole(plan, wanted, "smoke", report=told.append)
    assert told == []
    assert second["methods"] == first["methods"]


def test_time_that_is_up(plan):
    wanted = variants(plan.config, ["Single"])
    assert run(replace(plan, until=time.time()), wanted, "smoke") is None
    assert run(plan, wanted, "smoke") is not None


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_side_by_side_gives_what_one_by_one_gives(plan, tmp_path):
    wanted = variants(plan.config, ["ENSM", "EnD", "MD-EnD", "EnD2"])
    one = whole(plan, wanted, "smoke")
    told = []
    aside = replace(plan, folder=tmp_path / "aside")
    two = whole(aside, wanted, "smoke", workers=2, report=told.append)
    students = {"EnD2.0", "EnD.0", "MD-EnD.0"}
    assert {event.key for event in told} == {"Single.0.0", "Single.0.1", *students}
    for name, scores in one["methods"].items():
        assert two["methods"][name]["rmse"]["mean"] == pytest.approx(scores["rmse"]["mean"], 1e-5)
    assert run(replace(aside, until=time.time()), wanted, "smoke", workers=2) is not None


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_failure_in_a_worker_is_raised(plan):
    broken = replace(plan, config=replace(plan.config, learning_rate=1e30, clip=1e30, epochs=2))
    with pytest.raises(FloatingPointError, match="Single, seed"):
        run(broken, variants(broken.config, ["ENSM"]), "smoke", workers=2)


def results_of_single(plan) -> dict[str, Any]:
    """All that says which question a file answers, and no scores."""
    digests = Sets(plan.config, plan.sources).record()["digests"]
    protocol = PROTOCOLS["nyu"].record((plan.config.height, plan.config.width))
    asked = {"config": plan.config.to_json(), "protocol": protocol, "digests": digests}
    return asked | {"methods": {"Single": {}}, "variants": {}}


def test_finished_results_answer_the_same_question(plan, tmp_path):
    path = tmp_path / "nyu.json"
    wanted = variants(plan.config, ["Single"])
    assert finished(path, plan, wanted) is None
    results = results_of_single(plan)
    path.write_text(json.dumps(results))
    assert finished(path, plan, wanted) == results
    assert finished(path, plan, variants(plan.config, ["Single", "DER"])) is None
    other = replace(plan, config=replace(plan.config, epochs=9))
    assert finished(path, other, wanted) is None
    path.write_text(json.dumps(results | {"config": results["config"] | {"sharpness": 3}}))
    assert finished(path, plan, wanted) is None  # settings of another version
    path.write_text(json.dumps(results))
    fewer = {name: path for name, path in plan.sources.ood.items() if name != "kitti"}
    other = replace(plan, sources=replace(plan.sources, ood=fewer))
    assert finished(path, other, wanted) is None
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"nyu.json: not a results file"):
        finished(path, plan, wanted)
    results["methods"]["Single"] = {"rel": {"mean": 0.01, "values": [0.1, 0.2]}}
    path.write_text(json.dumps(results))
    with pytest.raises(ValueError, match=r"Single\.rel: its mean is not that of its values"):
        finished(path, plan, wanted)


def test_every_training_image_counts_for_what_is_finished(plan, tmp_path):
    names, path = [f"{i:04d}" for i in range(20)], tmp_path / "nyu.json"
    folder = write_pairs(tmp_path / "nyu", names, shape=(32, 64))
    write_split(folder, {n: "test" if i > 17 else "train" for i, n in enumerate(names)})
    plan, wanted = replace(plan, sources=Sources(folder)), variants(plan.config, ["Single"])
    results = results_of_single(plan)
    path.write_text(json.dumps(results))
    assert finished(path, plan, wanted) == results
    shutil.copy(folder / "depth" / "0000.png", folder / "depth" / "0017.png")
    assert finished(path, plan, wanted) is None
    del results["digests"]["train_images"]  # as in files of before: they know the first 16 only
    path.write_text(json.dumps(results))
    assert finished(path, plan, wanted) == results
    shutil.copy(folder / "depth" / "0000.png", folder / "depth" / "0001.png")
    assert finished(path, plan, wanted) is None


def test_nothing_is_dropped_for_images_that_cannot_be_learnt(plan, photographs, tmp_path):
    copy = shutil.copytree(photographs / "nyu_small", tmp_path / "nyu_small")
    plan = replace(plan, sources=Sources(copy))
    wanted = variants(plan.config, ["DER"])
    whole(plan, wanted, "smoke")
    kept = sorted(path for path in plan.folder.rglob("*") if path.is_file())
    assert kept
    picture = copy / "rgb" / f"{open_depth(copy, 'train').names[-1]}.jpg"
    picture.write_bytes(picture.read_bytes()[:-40])
    with pytest.raises(DepthError, match=f"{picture.name}: this cannot be read as a picture"):
        run(plan, wanted, "smoke", again=True)
    assert sorted(path for path in plan.folder.rglob("*") if path.is_file()) == kept


def test_names_of_files():
    assert file_name("nyu", "fast") == "nyu.json"
    assert file_name("kitti", "smoke") == "kitti.smoke.json"


COMMITTED = sorted((Path(__file__).parents[3] / "results" / "depth").glob("*.json"))
SCORE = {"seconds": 1.0}


@pytest.fixture(scope="module")
def old():
    """Results of one method."""
    score = {"rmse": {"mean": 1.0, "values": [1.0]}, "seconds": 2.0}
    rest = {"config": {"epochs": 1}, "protocol": {}, "digests": {"test": "a"}, "variants": {}}
    rest["versions"] = {"torch": "2"}
    return {**rest, "methods": {"Single": score}, "commit": "a", "dirty": False, "seconds": 2.0}


@pytest.fixture
def combine(tmp_path):
    """New results with what a file of old ones keeps, and what it loses."""

    def joined(old, new):
        path = tmp_path / "nyu.json"
        path.write_text(json.dumps(old))
        return merged(path, new)

    return joined


def names(results):
    return list(results["methods"]), list(results["variants"])


def test_methods_of_earlier_runs_stay(old, combine):
    new = {**old, "methods": {"DD": {"seconds": 3.0}}, "commit": "b"}
    found, lost = combine(old, new)
    assert (names(found), lost) == ((["DD", "Single"], []), [])
    assert found["seconds"] == 5.0
    assert found["commit"] == "a, b"


def test_methods_that_stay_keep_their_own_commit(old, combine):
    def of(commit, dirty=False):
        return {**SCORE, "commit": commit, "dirty": dirty}

    old = {**old, "methods": {"Single": of("a"), "DER": of("b", True)}, "commit": "a, b"}
    old["dirty"] = True
    new = {**old, "methods": {"DER": of("c")}, "commit": "c", "dirty": False}
    found, _ = combine(old, new)
    assert found["methods"] == {"Single": of("a"), "DER": of("c")}
    assert (found["commit"], found["dirty"]) == ("a, c", False)  # nothing of b is left
    from_before = {**old, "methods": {"Single": SCORE}}
    found, _ = combine(from_before, new)
    assert found["methods"] == {"Single": SCORE, "DER": of("c")}
    assert (found["commit"], found["dirty"]) == ("a, b, c", True)


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"epochs": 2}},
        {"config": {"epochs": 1, "seeds": [0]}},
        {"digests": {"test": "b"}},
        {"protocol": {"crop": 1}},
    ],
)
def test_methods_that_would_come_out_otherwise_are_lost_and_named(old, combine, change):
    new = {**old, "methods": {"DD": SCORE}, **change}
    assert combine(old, new) == (new, ["Single"])


def test_methods_stay_where_settings_changed_that_they_do_not_look_at(old, combine):
    old = {
        **old,
        "config": {"gamma": 0.1},
        "methods": {"Single": SCORE, "NWPN": SCORE},
        "variants": {"NWPN-g0.5": {**SCORE, "settings": {"gamma": 0.5}}},
    }
    new = {**old, "config": {"gamma": 0.2}, "methods": {"DD": SCORE}, "variants": {}}
    found, lost = combine(old, new)
    assert (names(found), lost) == ((["DD", "Single"], ["NWPN-g0.5"]), ["NWPN"])
    assert found["config"] == {"gamma": 0.2}


def test_settings_of_another_version_do_not_pass_for_ours(old, combine):
    new = {**old, "methods": {"DD": SCORE}}
    older = {**old, "config": {"epochs": 1, "evenness": 0.0}}  # did nothing, and is gone
    assert names(combine(older, new)[0]) == (["DD", "Single"], [])
    for unknown in ({"evenness": 0.5}, {"sharpness": 3}):
        other = {**old, "config": {"epochs": 1, **unknown}}
        assert combine(other, new) == (new, ["Single"])


def test_students_go_with_an_ensemble_that_is_trained_anew(old, combine):
    taught = {**SCORE, "training": [[{"losses": [2.0, 1.0]}]]}
    old = {**old, "methods": {"ENSM": taught, "DER": SCORE, "EnD": SCORE}}
    old["variants"] = {"EnD2-T10": {**SCORE, "settings": {"temperature": 10.0}}}
    again = {**old, "methods": {"ENSM": {**taught, "members": {}}}, "variants": {}}
    found, lost = combine(old, again)
    assert (names(found), lost) == ((["ENSM", "DER", "EnD"], ["EnD2-T10"]), [])
    anew = {**SCORE, "training": [[{"losses": [2.0, 1.1]}]]}
    found, lost = combine(old, {**again, "methods": {"ENSM": anew}})
    assert (names(found), lost) == ((["ENSM", "DER"], []), ["EnD", "EnD2-T10"])


def test_all_training_images_are_compared_where_they_are_known(old, combine):
    whole = {"test": "a", "train_images": "b"}
    new = {**old, "methods": {"DD": SCORE}, "digests": whole}
    found, lost = combine({**old, "digests": whole}, new)
    assert (names(found), lost, found["digests"]) == ((["DD", "Single"], []), [], whole)
    other = {**old, "digests": {**whole, "train_images": "c"}}
    assert combine(other, new) == (new, ["Single"])
    found, lost = combine(old, new)  # from before: of Single's images no more is known
    assert (names(found), lost, found["digests"]) == ((["DD", "Single"], []), [], old["digests"])


def test_what_was_done_once_counts_once(old, combine):
    one, two = {"seconds": 2.0}, {"seconds": 3.0}
    methods = {
        "Single": {"seconds": 2.5, "training": [[one]]},
        "ENSM": {"seconds": 6.0, "training": [[one, two]]},
    }
    without = {**old, "methods": {"DER": SCORE}, "commit": None}
    found, _ = combine(without, {**without, "methods": methods})
    assert found["seconds"] == 7.5
    assert found["commit"] is None


def test_a_file_that_is_no_results_file_is_replaced(old, tmp_path):
    path = tmp_path / "nyu.json"
    assert merged(path, old) == (old, [])
    path.write_text('{"methods": ')
    assert merged(path, old) == (old, [])


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_results_keep_everything(path):
    committed = read_results(path)
    digests = {"train_images": "a", **committed["digests"]}  # as new results have
    new = {**committed, "methods": {"DD": committed["methods"]["DD"]}, "variants": {}}
    new["digests"] = digests
    found, lost = merged(path, new)
    assert (names(found), lost) == (names(committed), [])
