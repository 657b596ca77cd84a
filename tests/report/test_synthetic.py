"""The figure of the synthetic experiment: every panel drawn, nothing global touched."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from priornet.experiments.synthetic import METHODS, PRESETS, run
from priornet.report.palette import COLOURS, LABELS
from priornet.report.synthetic import draw, plot_prediction, plot_uncertainty


@pytest.fixture(scope="module")
def results():
    return run(replace(PRESETS["smoke"], epochs=1, n_train=256, n_out=64, n_test=64))


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


def test_no_panel_is_blank(results):
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
