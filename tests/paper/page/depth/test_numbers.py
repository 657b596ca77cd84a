"""Numbers of depth results by their path, and the paper's."""

import pytest

from _depth_results import depth_content
from priornet.evaluation.results import summary
from priornet_paper.page.depth.numbers import ablation, published_depth, read_depth


def test_numbers_are_found_by_their_path():
    ours = read_depth({"nyu": depth_content("nyu")})
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
    ours = read_depth({"kitti": content})
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
