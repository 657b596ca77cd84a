"""Figures of the page: drawn from results alone, shown if their files are there."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from _depth_results import depth_content
from _results import paper_methods
from priornet.evaluation.results import summary
from priornet.methods import COLOURS
from priornet_paper.page.figures import (
    draw_figures,
    draw_rejection,
    figures,
    plot_rejection,
)
from priornet_paper.page.results import Results, read_folder

CURVES = {
    "fraction": [0.0, 0.5, 1.0],
    "oracle": [1.0, 0.1, 0.0],
    "random": [1.0, 0.5, 0.0],
    "total_variance": [1.0, 0.2, 0.0],
    "variance_of_mean": [1.0, 0.4, 0.0],
}


def methods(dataset):
    made = paper_methods(dataset)
    made["EnD2"]["rejection"] = CURVES
    return made


def test_rejection_curves_are_drawn_from_whole_tables(folder, tmp_path):
    folder.put("boston", methods("boston"))
    folder.put("wine", methods("wine"), complete=False)
    folder.put("power", paper_methods("power"))  # without curves
    assert draw_figures(read_folder(folder.path), tmp_path / "images") == ["rejection"]
    text = (tmp_path / "images" / "rejection.svg").read_text()
    assert "<!-- boston, EnD² -->" in text
    assert "<!-- wine, EnD² -->" not in text
    assert (tmp_path / "images" / "rejection.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_drawn_from_nothing(folder, tmp_path):
    folder.put("wine", methods("wine"), complete=False)
    assert draw_figures(read_folder(folder.path), tmp_path / "images") == []
    assert not (tmp_path / "images").exists()


def test_figure_is_shown_by_its_path_beside_the_page(tmp_path):
    images = tmp_path / "images"
    images.mkdir()
    (images / "rejection.png").touch()
    (shown,) = [line for line in figures(images, "rejection", "behaviours") if "](" in line]
    assert shown.endswith("](images/rejection.png)")
    assert figures(None, "rejection") == []


def table(name, curve=0.6):
    """Make results of a table with curves of a known shape."""
    x = np.linspace(0, 1, 11)
    rejection = {
        "fraction": x.tolist(),
        "oracle": ((1 - x) ** 3).tolist(),
        "random": (1 - x).tolist(),
        "total_variance": ((1 - curve) * (1 - x) + curve * (1 - x) ** 3).tolist(),
        "variance_of_mean": (1 - x).tolist(),
    }
    prr = {"total_variance": {"mean": curve}, "variance_of_mean": {"mean": 0.0}}
    entry = {"rejection": rejection, "prr": prr}
    return {"dataset": name, "methods": {"ENSM": entry, "EnD2": entry}}


def areas(ax):
    """Compute the areas of the shaded regions, in units of the axes."""
    found = []
    for shade in ax.collections:
        x, y = shade.get_paths()[0].vertices.T
        found.append(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2)
    return found


def test_curves_are_the_arrays_of_the_results():
    results = table("boston")
    curves = results["methods"]["EnD2"]["rejection"]
    lines = plot_rejection(results, "EnD2", "total_variance").lines
    for line, name in zip(lines, ("oracle", "random", "total_variance"), strict=True):
        assert line.get_xdata() == pytest.approx(curves["fraction"])
        assert line.get_ydata() == pytest.approx(curves[name])


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_ratio_of_the_shaded_areas_is_the_number_shown(share):
    ax = plot_rejection(table("boston", share), "EnD2", "total_variance")
    possible, gained = areas(ax)
    assert gained / possible == pytest.approx(share, rel=1e-6)
    assert ax.texts[0].get_text() == f"PRR {share:.2f}"


def test_there_is_a_panel_for_each_table_method_and_measure():
    tables = [table("boston"), table("wine"), table("power")]
    figure = draw_rejection(tables, ("ENSM", "EnD2"), ("total_variance", "variance_of_mean"))
    assert len(figure.axes) == 12
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:3] == ["boston, Ensemble", "wine, Ensemble", "power, Ensemble"]
    assert titles[-1] == "power, EnD²"
    assert "variance of the mean" in figure.axes[3].get_ylabel()


def test_method_keeps_its_colour():
    line = plot_rejection(table("boston"), "ENSM", "total_variance").lines[-1]
    assert to_hex(str(line.get_color())).upper() == COLOURS["ENSM"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("NWPN", "total_variance"), 'boston: unknown method "NWPN"; choose one of: ENSM, EnD2.'),
        (("EnD2", "epkl"), 'no curve by "epkl"; choose one of: total_variance, variance_of_mean.'),
    ],
)
def test_what_is_not_there_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_rejection(table("boston"), *arguments)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        draw_rejection([])


def test_every_figure_that_the_results_allow(tmp_path):
    contents = {name: depth_content(name) for name in ("nyu", "kitti")}
    drawn = draw_figures(Results(depth=contents), tmp_path)
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
    assert draw_figures(Results(depth={"nyu": content}), tmp_path) == []
    assert draw_figures(Results(), tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
