"""The paper's numbers in the package, and ours, in one form."""

import pytest

from _results import around
from priornet_paper.page.numbers import (
    MEASURES,
    METHODS,
    SETS,
    Key,
    Number,
    Scores,
    number,
    peers,
    published,
    read_methods,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # Copied by eye from the tables of the paper's appendix.
        (Key("boston", "rmse", "Single"), Number(3.54, 0.32)),
        (Key("energy", "nll", "EnD2"), Number(1.72, 0.04)),
        (Key("power", "rmse", "NWPN"), Number(4.09, 0.07)),
        (Key("msd", "nll", "ENSM"), Number(3.39, 0.0)),
        (Key("energy", "prr", "ENSM", "epkl"), Number(-0.80, 0.02)),
        (Key("wine", "prr", "NWPN", "mutual_information"), Number(-0.19, 0.03)),
        (Key("boston", "ood_auc", "ENSM", "variance_of_mean"), Number(0.86, 0.02)),
        (Key("power", "ood_auc", "NWPN", "variance_of_mean"), Number(0.31, 0.02)),
    ],
)
def test_numbers_are_those_the_paper_prints(key, value):
    assert published().numbers[key] == value


def test_five_sets_have_forty_cells_of_accuracy_and_130_of_detection():
    numbers = published().numbers
    accuracy = [k for k in numbers if k.dataset in SETS and k.metric in ("rmse", "nll")]
    detection = [k for k in numbers if k.dataset in SETS and k.metric in ("prr", "ood_auc")]
    assert len(accuracy) == 40
    assert len(detection) == 130
    assert {k.method for k in accuracy} == set(METHODS)
    assert {k.measure for k in detection} == set(MEASURES)


def test_paper_gives_no_entropy_of_an_ensemble():
    assert published().get("boston", "prr", "ENSM", "total_entropy") is None
    assert published().get("boston", "prr", "ENSM", "mutual_information") is None


def test_data_sets_come_by_size():
    assert published().datasets == [*SETS, "msd"]


def test_peers_name_their_source_and_cover_six_sets():
    for entry in peers().values():
        assert "arXiv:" in entry["source"]
        assert set(entry["uci"]) == {*SETS, "protein"}
    assert peers()["Deep Ensembles"]["uci"]["protein"] == {"nll": 2.83, "rmse": 4.71}
    assert peers()["NGBoost"]["uci"]["energy"] == {"nll": 0.60, "rmse": 0.46}


def test_summary_becomes_a_number():
    assert number(around(3.0, 0.5)) == Number(3.0, 0.5, (2.5, 3.5))
    assert number(None) is None
    assert number({"mean": None, "sem": None, "values": [1.0, None]}) is None


def test_methods_are_read_by_key():
    methods = {"ENSM": {"nll": around(1.0), "prr": {"epkl": around(0.2), "total_entropy": None}}}
    found = Scores(read_methods("boston", methods), {"boston": 506})
    assert set(found.numbers) == {
        Key("boston", "nll", "ENSM"),
        Key("boston", "prr", "ENSM", "epkl"),
    }
    value = found.get("boston", "prr", "ENSM", "epkl")
    assert value is not None
    assert value.mean == pytest.approx(0.2)
