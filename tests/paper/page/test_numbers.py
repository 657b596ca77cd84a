"""Published numbers in the package, and ours, in one form."""

import pytest

from _depth_results import depth_content
from _results import around
from priornet.evaluation.results import summary
from priornet_paper.page.numbers import (
    MEASURES,
    PAPER_METHODS,
    SETS,
    Number,
    ablation,
    number,
    peers,
    published,
    published_depth,
    read_scores,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # Copied by eye from the tables of the paper's appendix.
        (("boston", "Single", "rmse"), Number(3.54, 0.32)),
        (("energy", "EnD2", "nll"), Number(1.72, 0.04)),
        (("power", "NWPN", "rmse"), Number(4.09, 0.07)),
        (("msd", "ENSM", "nll"), Number(3.39, 0.0)),
        (("energy", "ENSM", "prr", "epkl"), Number(-0.80, 0.02)),
        (("wine", "NWPN", "prr", "mutual_information"), Number(-0.19, 0.03)),
        (("boston", "ENSM", "ood_auc", "variance_of_mean"), Number(0.86, 0.02)),
        (("power", "NWPN", "ood_auc", "variance_of_mean"), Number(0.31, 0.02)),
    ],
)
def test_numbers_are_those_the_paper_prints(key, value):
    assert published().numbers[key] == value


def test_five_sets_have_forty_cells_of_accuracy_and_130_of_detection():
    numbers = published().numbers
    accuracy = [k for k in numbers if k[0] in SETS and k[2] in ("rmse", "nll")]
    detection = [k for k in numbers if k[0] in SETS and k[2] in ("prr", "ood_auc")]
    assert len(accuracy) == 40
    assert len(detection) == 130
    assert {k[1] for k in accuracy} == set(PAPER_METHODS)
    assert {k[3] for k in detection} == set(MEASURES)


def test_paper_gives_no_entropy_of_an_ensemble():
    assert published().get("boston", "ENSM", "prr", "total_entropy") is None
    assert published().get("boston", "ENSM", "prr", "mutual_information") is None


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
    found = read_scores({"boston": {"methods": methods}}, ["boston"])
    assert set(found.numbers) == {
        ("boston", "ENSM", "nll"),
        ("boston", "ENSM", "prr", "epkl"),
    }
    value = found.get("boston", "ENSM", "prr", "epkl")
    assert value is not None
    assert value.mean == pytest.approx(0.2)


def test_numbers_are_found_by_their_path():
    ours = read_scores({"nyu": depth_content("nyu")})
    assert ours.datasets == ["nyu"]
    nll = ours.get("nyu", "EnD2", "nll")
    assert nll is not None
    assert len(nll.values) == 3
    assert ours.mean("nyu", "EnD2", "nll_quantiles", "99") == pytest.approx(99 / 20)
    found = ours.mean("nyu", "NWPN-g0", "ood_auc", "lsun_bedroom", "epkl")
    assert found == pytest.approx(0.199)
    assert ours.get("nyu", "EnD2", "calibration", "normal_intervals") is None  # a curve
    assert ours.get("nyu", "DD", "nll") is None


def test_a_failed_model_has_no_number_and_is_said_to_have_failed():
    content = depth_content("kitti")
    content["methods"]["DER"]["nll"] = summary([1.0, float("nan")])
    ours = read_scores({"kitti": content})
    assert ours.get("kitti", "DER", "nll") is None
    assert ours.text(3, "kitti", "DER", "nll") == "not finite"
    assert ours.text(3, "kitti", "DD", "nll") == "&ndash;"


def test_the_papers_tables_are_whole():
    paper = published_depth()
    # Read off the paper's tables: EnD2 on KITTI, and the NYU models against LSUN church.
    assert paper.mean("kitti", "EnD2", "rmse") == 3.367
    assert paper.mean("nyu", "EnD2", "ood_auc", "lsun_church", "mutual_information") == 0.964
    assert paper.get("kitti", "DD", "log10") is None
    gammas, measure = ablation("nyu")
    assert gammas["0.05"]["delta1"] == 0.556
    assert measure == "total_entropy"
