"""Published numbers in the package, and ours, in one form."""

import math
import statistics

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
    difference_in_errors,
    is_far_below,
    is_worse,
    number,
    paired,
    paired_ratio,
    peers,
    pooled,
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


def test_difference_is_in_units_of_the_combined_error():
    # hypot(0.05, 0.12) = 0.13; (2.79 - 2.53) / 0.13 = 2
    assert difference_in_errors(Number(2.79, 0.05), Number(2.53, 0.12)) == pytest.approx(2)
    assert difference_in_errors(Number(2.40, 0.05), Number(2.53, 0.12)) == pytest.approx(-1)


def test_without_any_error_only_the_sign_is_known():
    assert difference_in_errors(Number(2.0, 0.0), Number(1.0, 0.0)) == math.inf
    assert difference_in_errors(Number(1.0), Number(2.0)) == -math.inf
    assert difference_in_errors(Number(1.0), Number(1.0, 0.0)) == 0


@pytest.mark.parametrize(("mean", "worse"), [(2.78, False), (2.79, False), (2.80, True)])
def test_worse_means_more_than_two_errors_above(mean, worse):
    assert is_worse(Number(mean, 0.05), Number(2.53, 0.12)) == worse


@pytest.mark.parametrize(("mean", "below"), [(0.53, False), (0.52, False), (0.51, True)])
def test_far_below_means_by_more_than_the_margin(mean, below):
    assert is_far_below(Number(mean), Number(0.60)) == below


def test_paired_error_is_that_of_the_differences():
    # Differences -1, -1, -4: mean -2, standard deviation sqrt(3), error 1.
    gap = paired(Number(4, 9, (1, 4, 7)), Number(6, 9, (2, 5, 11)))
    assert gap.mean == -2
    assert gap.error == pytest.approx(1)
    ratio = paired_ratio(Number(4, 9, (1, 4, 7)), Number(6, 9, (2, 5, 11)))
    assert ratio.mean == pytest.approx(2 / 3)
    assert ratio.error == pytest.approx(1 / 6)


def test_runs_with_other_folds_are_one_number_over_all_folds():
    runs = [Number(2.0, 9.9, (1.0, 3.0)), Number(6.0, 9.9, (4.0, 8.0))]
    found = pooled(runs)
    assert (found.mean, found.values) == (4.0, (1.0, 3.0, 4.0, 8.0))
    assert found.error == pytest.approx(statistics.stdev([1, 3, 4, 8]) / 2)
    assert pooled(runs[:1]) is runs[0]
    with pytest.raises(ValueError, match="values of their folds"):
        pooled([*runs, Number(3.0)])


def test_other_folds_have_no_paired_error():
    assert paired(Number(4, 9, (1, 7)), Number(6, 9, (2, 5, 11))) == Number(-2)
