"""The figure of the synthetic experiment: every panel drawn, nothing global touched."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from priornet.methods import COLOURS, LABELS
from priornet.report.synthetic import (
    draw,
    draw_panels,
    plot_data,
    plot_prediction,
    plot_uncertainty,
)
from priornet_paper.synthetic.run import METHODS, PRESETS, run

PARTS = ("total", "data", "knowledge")


@pytest.fixture(scope="module")
def results():
    short = {"n_runs": 1, "epochs": 1, "n_train": 256, "n_out": 64, "n_test": 64, "variants": ()}
    return run(replace(PRESETS["smoke"], **short))


def line_colours(ax):
    return [to_hex(str(line.get_color())).upper() for line in ax.lines]


def test_figure_has_a_panel_for_each_method_and_each_uncertainty(results):
    figure = draw(results)
    assert [ax.get_title() for ax in figure.axes] == [
        "Ensemble",
        "EnD²",
        "NWPN",
        "Total uncertainty",
        "Data uncertainty",
        "Knowledge uncertainty",
    ]


def test_paper_figure_has_its_four_panels_each_with_the_training_region(results):
    figure = draw_panels(results)
    assert [ax.get_title() for ax in figure.axes] == [
        "(a) Input data",
        "(b) Total uncertainty",
        "(c) Data uncertainty",
        "(d) Knowledge uncertainty",
    ]
    for ax in figure.axes:
        band = ax.transData.inverted().transform_bbox(ax.patches[0].get_window_extent())
        assert (band.x0, band.x1) == pytest.approx((-10, 10))


def test_paper_figure_draws_the_arrays_of_the_results(results):
    x = results["curves"]["x"]
    panels = draw_panels(results).axes
    assert panels[0].lines[0].get_ydata() == pytest.approx(results["curves"]["truth"]["mean"])
    for ax, part in zip(panels[1:], ("total", "data", "knowledge"), strict=True):
        for line, method in zip(ax.lines, METHODS, strict=False):
            assert line.get_xdata() == pytest.approx(x)
            assert line.get_ydata() == pytest.approx(results["curves"][method][f"{part}_std"])


def test_points_are_the_training_data(results):
    drawn = np.asarray(plot_data(results).collections[0].get_offsets())
    train = np.column_stack([results["train"]["x"], results["train"]["y"]])
    assert drawn == pytest.approx(train)


@pytest.mark.parametrize("draw", [draw, draw_panels])
def test_no_panel_is_blank(results, draw):
    figure = draw(results)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    for ax in figure.axes:
        box = ax.get_window_extent()
        top = pixels.shape[0] - int(box.y1)
        inside = pixels[top : top + int(box.height), int(box.x0) : int(box.x1)]
        assert len(np.unique(inside.reshape(-1, 3), axis=0)) > 20


def test_method_has_one_colour_everywhere(results):
    assert len({COLOURS[method] for method in METHODS}) == 3
    for method in METHODS:
        assert COLOURS[method] in line_colours(plot_prediction(results, method))
    for part in ("total", "data", "knowledge"):
        drawn = line_colours(plot_uncertainty(results, part))
        assert drawn[:3] == [COLOURS[method] for method in METHODS]


def test_the_papers_prior_is_dashed_in_the_colour_of_its_method(results):
    curve = {f"{part}_std": [1.0] * len(results["curves"]["x"]) for part in PARTS}
    beside = {**results, "curves": {**results["curves"], "NWPN-precision": curve}}
    for part in PARTS:
        plain, more = (plot_uncertainty(found, part) for found in (results, beside))
        assert len(more.lines) == len(plain.lines) + 1
        assert line_colours(more)[3] == COLOURS["NWPN"]
        assert (more.lines[2].is_dashed(), more.lines[3].is_dashed()) == (False, True)
    labels = [text.get_text() for text in draw_panels(beside).legends[0].get_texts()]
    assert "NWPN, paper's prior" in labels


def test_truth_is_black_and_drawn_where_it_is_known(results):
    assert line_colours(plot_uncertainty(results, "data"))[-1] == "#000000"
    assert "#000000" not in line_colours(plot_uncertainty(results, "knowledge"))


def test_training_region_is_marked(results):
    band = plot_uncertainty(results, "total").patches[0].get_extents()
    assert band.width > 0
    ax = plot_uncertainty(results, "total")
    left, right = (ax.transData.inverted().transform(p)[0] for p in (band.p0, band.p1))
    assert (left, right) == pytest.approx((-10, 10))


def test_plots_draw_on_the_axes_they_are_given(results):
    ax = Figure().add_subplot()
    assert plot_prediction(results, "NWPN", ax=ax) is ax
    other = Figure().add_subplot()
    assert plot_uncertainty(results, "data", ax=other) is other


def test_labels_stand_for_known_methods():
    assert set(LABELS) <= set(COLOURS)


def test_drawing_does_not_start_pyplot():
    code = (
        "import sys, priornet.report.synthetic\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
