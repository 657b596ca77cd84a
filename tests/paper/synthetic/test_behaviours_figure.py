"""The picture of the three beliefs: it shows the arrays of its results."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from priornet_paper.synthetic.behaviours import Config, run
from priornet_paper.synthetic.behaviours_figure import draw, plot_gaussians, plot_prior


@pytest.fixture(scope="module")
def results():
    return run(Config(n_samples=5))


def test_there_are_gaussians_above_and_the_belief_below(results):
    axes = draw(results).axes
    assert [ax.get_title() for ax in axes[:3]] == [
        "Low uncertainty",
        "Data uncertainty",
        "Knowledge uncertainty",
    ]
    assert [len(ax.lines) for ax in axes] == [6, 6, 6, 0, 0, 0]


@pytest.mark.parametrize("name", ["low", "data", "knowledge"])
def test_curves_are_the_gaussians_that_were_drawn(results, name):
    panel = results["panels"][name]
    *gaussians, predictive = plot_gaussians(results, name).lines
    for line, mean, std in zip(gaussians, panel["means"], panel["stds"], strict=True):
        y, density = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert y[density.argmax()] == pytest.approx(mean, abs=0.05 * std)
        assert density.max() == pytest.approx(1 / (std * np.sqrt(2 * np.pi)), rel=1e-3)
    assert predictive.get_ydata() == pytest.approx(panel["predictive"])


def test_dots_are_the_same_gaussians(results):
    panel = results["panels"]["knowledge"]
    dots = np.asarray(plot_prior(results, "knowledge").collections[-1].get_offsets())
    expected = np.column_stack([panel["means"], np.array(panel["stds"]) ** -2.0])
    assert dots == pytest.approx(expected)


@pytest.mark.parametrize("name", ["low", "data", "knowledge"])
def test_regions_hold_the_shares_of_many_draws(results, name):
    # The share of draws above a level is the probability of its region.
    many = run(Config(n_samples=4000))["panels"][name]
    panel = results["panels"][name]
    contour: Any = plot_prior(results, name).collections[0]
    mean, log_precision = np.array(panel["mean"]), np.array(panel["log_precision"])
    column = np.searchsorted(mean, many["means"]).clip(0, len(mean) - 1)
    row = np.searchsorted(log_precision, -2 * np.log(many["stds"])).clip(0, len(mean) - 1)
    density = np.array(panel["density"])[row, column]
    for level, share in zip(contour.levels[:4], (0.99, 0.9, 0.5, 0.1), strict=True):
        assert np.mean(density >= level) == pytest.approx(share, abs=0.05)


def test_plots_draw_on_the_axes_they_are_given(results):
    ax = Figure().add_subplot()
    assert plot_gaussians(results, "low", ax=ax) is ax
    assert plot_prior(results, "low", ax=ax) is ax
