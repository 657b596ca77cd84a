"""The paper's figure: four panels, drawn from the results, the paper's own prior dashed."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from priornet.methods import COLOURS
from priornet_paper.synthetic.panels_figure import draw_panels
from priornet_paper.synthetic.run import METHODS, PRESETS, run

PARTS = ("total", "data", "knowledge")


@pytest.fixture(scope="module")
def results():
    short = {"n_runs": 1, "epochs": 1, "n_train": 256, "n_out": 64, "n_test": 64, "variants": ()}
    return run(replace(PRESETS["smoke"], **short))


def test_figure_has_four_panels_each_with_the_training_region(results):
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


def test_figure_draws_the_arrays_of_the_results(results):
    x = results["curves"]["x"]
    panels = draw_panels(results).axes
    assert panels[0].lines[0].get_ydata() == pytest.approx(results["curves"]["truth"]["mean"])
    for ax, part in zip(panels[1:], PARTS, strict=True):
        for line, method in zip(ax.lines, METHODS, strict=False):
            assert line.get_xdata() == pytest.approx(x)
            assert line.get_ydata() == pytest.approx(results["curves"][method][f"{part}_std"])


def test_the_papers_prior_is_dashed_in_the_colour_of_its_method(results):
    curve = {f"{part}_std": [1.0] * len(results["curves"]["x"]) for part in PARTS}
    beside = {**results, "curves": {**results["curves"], "NWPN-precision": curve}}
    plain, more = draw_panels(results), draw_panels(beside)
    for without, ax in zip(plain.axes[1:], more.axes[1:], strict=True):
        assert len(ax.lines) == len(without.lines) + 1
        assert to_hex(str(ax.lines[3].get_color())).upper() == COLOURS["NWPN"]
        assert (ax.lines[2].is_dashed(), ax.lines[3].is_dashed()) == (False, True)
    labels = [text.get_text() for text in more.legends[0].get_texts()]
    assert "NWPN, paper's prior" in labels


def test_no_panel_is_blank(results):
    figure = draw_panels(results)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    for ax in figure.axes:
        box = ax.get_window_extent()
        top = pixels.shape[0] - int(box.y1)
        inside = pixels[top : top + int(box.height), int(box.x0) : int(box.x1)]
        assert len(np.unique(inside.reshape(-1, 3), axis=0)) > 20
