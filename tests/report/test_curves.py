"""Curves of predictions and uncertainties: every panel drawn, nothing global touched."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from priornet.demo import CURVE_PRESETS, study_curve
from priornet.methods import COLOURS, LABELS
from priornet.report.curves import PARTS, draw, plot_data, plot_prediction, plot_uncertainty

METHODS = ("ENSM", "EnD2", "NWPN")


@pytest.fixture(scope="module")
def results():
    short = {"epochs": 1, "student_epochs": 1, "n_train": 256, "n_out": 64, "n_test": 64}
    return study_curve(replace(CURVE_PRESETS["smoke"], **short)).results


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


def test_points_are_the_training_data(results):
    drawn = np.asarray(plot_data(results).collections[0].get_offsets())
    train = np.column_stack([results["train"]["x"], results["train"]["y"]])
    assert drawn == pytest.approx(train)


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
    for part in PARTS:
        drawn = line_colours(plot_uncertainty(results, part))
        assert drawn[:3] == [COLOURS[method] for method in METHODS]


def test_a_variant_is_dashed_in_the_colour_of_its_method(results):
    curve = {f"{part}_std": [1.0] * len(results["curves"]["x"]) for part in PARTS}
    found = {**results, "curves": {**results["curves"], "NWPN-wide": curve}}
    for part in PARTS:
        plain = plot_uncertainty(found, part)
        more = plot_uncertainty(found, part, variants={"NWPN-wide": "NWPN"})
        assert len(more.lines) == len(plain.lines) + 1
        assert line_colours(more)[3] == COLOURS["NWPN"]
        assert (more.lines[2].is_dashed(), more.lines[3].is_dashed()) == (False, True)


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
        "import sys, priornet.report.curves\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
