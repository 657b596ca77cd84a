"""The three beliefs and their picture: it draws what they say, and the arrays of its results."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from priornet_paper.synthetic.behaviours import (
    BELIEFS,
    Config,
    draw,
    plot_gaussians,
    plot_prior,
    run,
)


@pytest.fixture(scope="module")
def results():
    return run(Config(n_samples=400))


def area(panel):
    mean, log_precision = np.array(panel["mean"]), np.array(panel["log_precision"])
    return np.trapezoid(np.trapezoid(np.array(panel["density"]), mean, axis=1), log_precision)


@pytest.mark.parametrize("name", BELIEFS)
def test_density_over_mean_and_log_precision_integrates_to_one(results, name):
    assert area(results["panels"][name]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("name", BELIEFS)
def test_predictive_is_the_average_of_the_gaussians(results, name):
    panel = results["panels"][name]
    y, means, stds = (np.array(panel[key]) for key in ("target", "means", "stds"))
    each = np.exp(-0.5 * ((y[:, None] - means) / stds) ** 2) / (stds * np.sqrt(2 * np.pi))
    standard_error = each.std(1) / np.sqrt(len(means))
    off = np.abs(each.mean(1) - np.array(panel["predictive"]))
    assert (off <= 5 * standard_error + 1e-4).all()


def test_gaussians_agree_but_for_knowledge_uncertainty(results):
    panels = results["panels"]
    spread = {name: np.std(panel["means"]) for name, panel in panels.items()}
    ratio = {name: np.std(np.log(panel["stds"])) for name, panel in panels.items()}
    assert spread["knowledge"] > 3 * max(spread["low"], spread["data"])
    assert ratio["knowledge"] > 3 * max(ratio["low"], ratio["data"])


def test_data_uncertainty_is_wide_and_sure(results):
    low, data = results["panels"]["low"], results["panels"]["data"]
    assert data["data_std"] > 2 * low["data_std"]
    assert data["knowledge_std"] < 0.2 * data["data_std"]


def test_results_are_plain_data_and_repeat(results):
    json.dumps(results, allow_nan=False)
    assert run()["panels"] == run()["panels"]
    assert run()["panels"] != run(Config(seed=1))["panels"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precisions": (2.0, 1.0)}, "`precisions` a positive range"),
        ({"edge": 0.0}, "`edge` must be positive"),
        ({"n_grid": 1}, "`n_grid` must be at least 2; got 1"),
    ],
)
def test_config_that_cannot_be_drawn_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Config(**change)


@pytest.fixture(scope="module")
def few():
    return run(Config(n_samples=5))


def test_there_are_gaussians_above_and_the_belief_below(few):
    axes = draw(few).axes
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
    many = run(Config(n_samples=4000))["panels"][name]
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
