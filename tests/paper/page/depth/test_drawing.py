"""Figures of the depth half are drawn from results alone."""

from _depth_results import depth_content
from priornet.evaluation.results import summary
from priornet_paper.page.depth.drawing import draw_depth


def test_every_figure_that_the_results_allow(tmp_path):
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    drawn = draw_depth(contents, tmp_path)
    kinds = {"depth-detection", "depth-gamma", "depth-correlations"}
    kinds |= {f"depth-{k}-{n}" for k in ("likelihood", "calibration") for n in contents}
    assert set(drawn) == kinds
    assert {path.stem for path in tmp_path.iterdir()} == kinds
    assert "NYU against LSUN bedroom" in (tmp_path / "depth-detection.svg").read_text()


def test_models_that_failed_or_have_no_belief_have_no_curves(tmp_path):
    content = depth_content("nyu")
    failed = content["methods"]["DER"] | {"nll": summary([1.0, float("nan")]), "ood_auc": {}}
    failed |= {"spearman_depth": {}, "spearman_error": {}}
    content["methods"] = {"DD": content["methods"]["DD"], "DER": failed}
    content["variants"] = {}
    assert draw_depth({"nyu": content}, tmp_path) == []
    assert draw_depth({}, tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
