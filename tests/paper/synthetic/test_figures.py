"""The figures: they draw the arrays of their results."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from priornet.methods import COLOURS
from priornet_paper.synthetic import behaviours
from priornet_paper.synthetic.config import METHODS, PRESETS
from priornet_paper.synthetic.figures import draw_beliefs, draw_panels, plot_gaussians, plot_prior
from priornet_paper.synthetic.run import run

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


@pytest.fixture(scope="module")
def few():
    return behaviours.run(behaviours.Config(n_samples=5))


def test_there_are_gaussians_above_and_the_belief_below(few):
    axes = draw_beliefs(few).axes
    assert [ax.get_title() for ax in axes[:3]] == [
        "Low uncertainty",
        "Data uncertainty",
        "Knowledge uncertainty",
    ]
    assert [len(ax.lines) for ax in axes] == [6, 6, 6, 0, 0, 0]


@pytest.mark.parametrize("name", ["low", "data", "knowledge"])
def test_curves_are_the_gaussians_that_were_drawn(few, name):
    panel = few["panels"][name]
    *gaussians, predictive = plot_gaussians(few, name).lines
    for line, mean, std in zip(gaussians, panel["means"], panel["stds"], strict=True):
        y, density = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert y[density.argmax()] == pytest.approx(mean, abs=0.05 * std)
        assert density.max() == pytest.approx(1 / (std * np.sqrt(2 * np.pi)), rel=1e-3)
    assert predictive.get_ydata() == pytest.approx(panel["predictive"])


def test_dots_are_the_same_gaussians(few):
    panel = few["panels"]["knowledge"]
    dots = np.asarray(plot_prior(few, "knowledge").collections[-1].get_offsets())
    expected = np.column_stack([panel["means"], np.array(panel["stds"]) ** -2.0])
    assert dots == pytest.approx(expected)


@pytest.mark.parametrize("name", ["low", "data", "knowledge"])
def test_regions_hold_the_shares_of_many_draws(few, name):
    # The share of draws above a level is the probability of its region.
    many = behaviours.run(behaviours.Config(n_samples=4000))["panels"][name]
    panel = few["panels"][name]
    contour: Any = plot_prior(few, name).collections[0]
    mean, log_precision = np.array(panel["mean"]), np.array(panel["log_precision"])
    column = np.searchsorted(mean, many["means"]).clip(0, len(mean) - 1)
    row = np.searchsorted(log_precision, -2 * np.log(many["stds"])).clip(0, len(mean) - 1)
    density = np.array(panel["density"])[row, column]
    for level, share in zip(contour.levels[:4], (0.99, 0.9, 0.5, 0.1), strict=True):
        assert np.mean(density >= level) == pytest.approx(share, abs=0.05)


def test_plots_draw_on_the_axes_they_are_given(few):
    ax = Figure().add_subplot()
    assert plot_gaussians(few, "low", ax=ax) is ax
    assert plot_prior(few, "low", ax=ax) is ax
