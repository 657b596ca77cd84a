"""What a file of results keeps of earlier runs, and what it loses."""

import json
from pathlib import Path

import pytest

from priornet.evaluation.results import read_results
from priornet_paper.depth.others import with_others

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
def together(tmp_path):
    """New results with what a file of old ones keeps, and what it loses."""

    def joined(old, new):
        path = tmp_path / "nyu.json"
        path.write_text(json.dumps(old))
        return with_others(path, new)

    return joined


def names(results):
    return list(results["methods"]), list(results["variants"])


def test_methods_of_earlier_runs_stay(old, together):
    new = {**old, "methods": {"DD": {"seconds": 3.0}}, "commit": "b"}
    found, lost = together(old, new)
    assert (names(found), lost) == ((["DD", "Single"], []), [])
    assert found["seconds"] == 5.0
    assert found["commit"] == "a, b"


def test_methods_that_stay_keep_their_own_commit(old, together):
    def of(commit, dirty=False):
        return {**SCORE, "commit": commit, "dirty": dirty}

    old = {**old, "methods": {"Single": of("a"), "DER": of("b", True)}, "commit": "a, b"}
    old["dirty"] = True
    new = {**old, "methods": {"DER": of("c")}, "commit": "c", "dirty": False}
    found, _ = together(old, new)
    assert found["methods"] == {"Single": of("a"), "DER": of("c")}
    assert (found["commit"], found["dirty"]) == ("a, c", False)  # nothing of b is left
    from_before = {**old, "methods": {"Single": SCORE}}
    found, _ = together(from_before, new)
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
def test_methods_that_would_come_out_otherwise_are_lost_and_named(old, together, change):
    new = {**old, "methods": {"DD": SCORE}, **change}
    assert together(old, new) == (new, ["Single"])


def test_methods_stay_where_settings_changed_that_they_do_not_look_at(old, together):
    old = {
        **old,
        "config": {"gamma": 0.1},
        "methods": {"Single": SCORE, "NWPN": SCORE},
        "variants": {"NWPN-g0.5": {**SCORE, "settings": {"gamma": 0.5}}},
    }
    new = {**old, "config": {"gamma": 0.2}, "methods": {"DD": SCORE}, "variants": {}}
    found, lost = together(old, new)
    assert (names(found), lost) == ((["DD", "Single"], ["NWPN-g0.5"]), ["NWPN"])
    assert found["config"] == {"gamma": 0.2}


def test_settings_of_another_version_do_not_pass_for_ours(old, together):
    new = {**old, "methods": {"DD": SCORE}}
    older = {**old, "config": {"epochs": 1, "evenness": 0.0}}  # did nothing, and is gone
    assert names(together(older, new)[0]) == (["DD", "Single"], [])
    for unknown in ({"evenness": 0.5}, {"sharpness": 3}):
        strange = {**old, "config": {"epochs": 1, **unknown}}
        assert together(strange, new) == (new, ["Single"])


def test_students_go_with_an_ensemble_that_is_trained_anew(old, together):
    taught = {**SCORE, "training": [[{"losses": [2.0, 1.0]}]]}
    old = {**old, "methods": {"ENSM": taught, "DER": SCORE, "EnD": SCORE}}
    old["variants"] = {"EnD2-T10": {**SCORE, "settings": {"temperature": 10.0}}}
    again = {**old, "methods": {"ENSM": {**taught, "members": {}}}, "variants": {}}
    found, lost = together(old, again)
    assert (names(found), lost) == ((["ENSM", "DER", "EnD"], ["EnD2-T10"]), [])
    anew = {**SCORE, "training": [[{"losses": [2.0, 1.1]}]]}
    found, lost = together(old, {**again, "methods": {"ENSM": anew}})
    assert (names(found), lost) == ((["ENSM", "DER"], []), ["EnD", "EnD2-T10"])


def test_all_training_images_are_compared_where_they_are_known(old, together):
    whole = {"test": "a", "train_images": "b"}
    new = {**old, "methods": {"DD": SCORE}, "digests": whole}
    found, lost = together({**old, "digests": whole}, new)
    assert (names(found), lost, found["digests"]) == ((["DD", "Single"], []), [], whole)
    other = {**old, "digests": {**whole, "train_images": "c"}}
    assert together(other, new) == (new, ["Single"])
    found, lost = together(old, new)  # from before: of Single's images no more is known
    assert (names(found), lost, found["digests"]) == ((["DD", "Single"], []), [], old["digests"])


def test_what_was_done_once_counts_once(old, together):
    one, two = {"seconds": 2.0}, {"seconds": 3.0}
    methods = {
        "Single": {"seconds": 2.5, "training": [[one]]},
        "ENSM": {"seconds": 6.0, "training": [[one, two]]},
    }
    without = {**old, "methods": {"DER": SCORE}, "commit": None}
    found, _ = together(without, {**without, "methods": methods})
    assert found["seconds"] == 7.5
    assert found["commit"] is None


def test_a_file_that_is_no_results_file_is_replaced(old, tmp_path):
    path = tmp_path / "nyu.json"
    assert with_others(path, old) == (old, [])
    path.write_text('{"methods": ')
    assert with_others(path, old) == (old, [])


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_committed_results_keep_everything(path):
    committed = read_results(path)
    digests = {"train_images": "a", **committed["digests"]}  # as new results have
    new = {**committed, "methods": {"DD": committed["methods"]["DD"]}, "variants": {}}
    new["digests"] = digests
    found, lost = with_others(path, new)
    assert (names(found), lost) == (names(committed), [])
