"""Curves of depth models: what is drawn is what the results say."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from priornet.methods import COLOURS
from priornet_paper.depth.figures import (
    draw_calibration,
    draw_correlations,
    draw_detection,
    draw_gammas,
    draw_likelihoods,
    line_of,
    plot_calibration,
    plot_dots,
    plot_likelihood,
    plot_likelihood_tail,
)


def histogram(above=0.1):
    shares = np.full(120, (1 - above) / 120)
    return {"from": -4.0, "to": 8.0, "shares": shares.tolist(), "below": 0.0, "above": above}


def scores(bend=2.0):
    levels = np.linspace(0, 1, 51)
    curves = ("predictive_intervals", "predictive_quantiles", "normal_intervals")
    return {
        "nll_histogram": histogram(),
        "calibration": {"expected": levels.tolist()} | {c: (levels**bend).tolist() for c in curves},
        "c_auc": dict.fromkeys(curves, 0.123),
    }


def marked(line):
    """Return the points of a line that have a marker."""
    x, y = xy(line)
    return [(x[place], y[place]) for place in line.get_markevery()]


def xy(line):
    """Return the data of a line as arrays."""
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def over_two_seeds(given):
    """Return scores in the form of results of several seeds."""
    curves = {
        name: curve if name == "expected" else {"mean": curve, "values": [curve, curve]}
        for name, curve in given["calibration"].items()
    }
    shares = given["nll_histogram"]["shares"]
    drawn = given["nll_histogram"] | {
        "shares": {"mean": shares, "values": [shares, shares]},
        "above": {"mean": given["nll_histogram"]["above"], "values": []},
    }
    areas = {name: {"mean": area, "values": [area] * 2} for name, area in given["c_auc"].items()}
    return {"nll_histogram": drawn, "calibration": curves, "c_auc": areas}


def test_density_of_the_likelihood_has_the_area_of_its_shares():
    (line,) = plot_likelihood(histogram(), "EnD2").lines
    x, y = xy(line)
    assert np.sum(y) * (x[1] - x[0]) == pytest.approx(0.9)
    assert (x[0], x[-1]) == pytest.approx((-3.95, 7.95))
    assert to_hex(line.get_color()) == COLOURS["EnD2"].lower()


def test_tail_falls_from_everything_to_what_is_above():
    (line,) = plot_likelihood_tail(histogram(above=0.1), "ENSM").lines
    x, y = xy(line)
    assert y[0] == pytest.approx(1)
    assert y[-1] == pytest.approx(0.1)
    assert np.interp(2.0, x, y) == pytest.approx(0.55)


def test_tail_goes_on_through_the_quantiles_where_the_histogram_ends():
    given = {"50": 1.0, "99": 20.0, "99.9": {"mean": 116.0, "values": [115.0, 117.0]}}
    ax = plot_likelihood_tail(histogram(above=0.1), "ENSM", given)
    (line,) = ax.lines
    x, y = xy(line)
    assert (x[-3:].tolist(), y[-3:].tolist()) == (
        [8.0, 20.0, 116.0],
        pytest.approx([0.1, 0.01, 0.001]),
    )
    assert [place for place, _ in marked(line)] == [20.0, 116.0]
    assert ax.get_xlim() == pytest.approx((1.0, 127.6))
    assert ax.get_ylim()[0] == pytest.approx(0.0005)


def test_quantiles_inside_the_histogram_are_marked_in_their_place():
    light = histogram(above=0.0)
    light["shares"] = np.eye(120)[70].tolist()  # all between 3.0 and 3.1 nats
    (line,) = plot_likelihood_tail(light, "NWPN", {"99": 3.05, "99.9": 3.09}).lines
    x, y = xy(line)
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) <= 0)
    assert marked(line) == [
        (3.05, pytest.approx(0.01)),
        (3.09, pytest.approx(0.001)),
    ]


def test_lines_on_each_other_differ_in_width():
    figure = draw_likelihoods({"ENSM": scores(), "MD-EnD": scores()})
    for ax in figure.axes:
        first, second = ax.lines
        assert first.get_linewidth() > second.get_linewidth() + 1


def test_panels_begin_where_pixels_do_and_end_where_tails_do():
    late = histogram(above=0.02)
    late["shares"] = [0.0] * 60 + [0.98 / 60] * 60  # from 2 nats on
    figure = draw_likelihoods({"ENSM": {"nll_histogram": late}})
    assert [ax.get_xlim()[0] for ax in figure.axes] == [2.0, 2.0]
    assert figure.axes[1].get_ylim()[0] == pytest.approx(0.01)


def test_no_density_leaves_the_panel():
    peak = histogram(above=0.0)
    peak["shares"] = np.eye(120)[50].tolist()
    figure = draw_likelihoods(
        {"ENSM": {"nll_histogram": histogram()}, "EnD2": {"nll_histogram": peak}}
    )
    assert figure.axes[0].get_ylim()[1] > 10


def test_calibration_is_the_curve_of_the_results_beside_the_diagonal():
    given = scores()["calibration"]
    diagonal, line = plot_calibration(given, "EnD2", "normal_intervals").lines
    assert np.array_equal(xy(diagonal), [[0, 1], [0, 1]])
    assert line.get_xdata() == pytest.approx(given["expected"])
    assert line.get_ydata() == pytest.approx(given["normal_intervals"])


def test_the_diagonal_is_drawn_once():
    ax = plot_calibration(scores()["calibration"], "EnD2")
    plot_calibration(scores()["calibration"], "ENSM", ax=ax)
    assert len(ax.lines) == 3


@pytest.mark.parametrize("joined", [False, True], ids=["one seed", "seeds"])
def test_methods_keep_their_colour_and_variants_are_dashed(joined):
    methods = {"DD": {"rmse": 1.0}, "ENSM": scores(), "EnD2": scores(), "EnD2-T1": scores(0.5)}
    if joined:
        methods |= {n: over_two_seeds(m) for n, m in methods.items() if n != "DD"}
    figure = draw_calibration(methods)
    for ax in figure.axes:
        lines = ax.lines[1:]
        colours = [COLOURS[name].lower() for name in ("ENSM", "EnD2", "EnD2")]
        assert [to_hex(line.get_color()) for line in lines] == colours
        assert lines[1].get_linestyle() == "-" != lines[2].get_linestyle()
        legend = ax.get_legend()
        assert legend is not None
        key = [text.get_text() for text in legend.get_texts()]
        assert key == ["Ensemble 0.123", "EnD² 0.123", "EnD², T1 0.123"]
    curves = draw_likelihoods(methods)
    assert [len(ax.lines) for ax in curves.axes] == [3, 3]


def test_variants_of_a_method_are_told_apart():
    lines = [line_of(name) for name in ("EnD2", "EnD2-T10", "EnD2-proxy")]
    assert len({line["color"] for line in lines}) == 1
    assert len({line["ls"] for line in lines}) == 3


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="no method has a calibration curve; got: DD"):
        draw_calibration({"DD": {"rmse": 1.0}})
    with pytest.raises(ValueError, match='no method has a "nll_histogram"; got: DD'):
        draw_likelihoods({"DD": {"rmse": 1.0}})


SYMBOLS = {"total_variance": "V[y]", "epkl": "K"}


def data(line):
    return np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)


def bars_of(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_bars_grow_from_chance_in_the_methods_colour():
    values = {
        "ENSM": {"total_variance": [0.2, 0.4], "epkl": [0.9, 0.9]},
        "Single": {"total_variance": [0.7]},
    }
    printed = {"NYU against KITTI": {"ENSM": {"epkl": 0.779}}}
    figure = draw_detection({"NYU against KITTI": values}, printed, SYMBOLS)
    ax = figure.axes[0]
    bars = bars_of(ax)
    tops = {round(bar.get_y() + bar.get_height(), 6): to_hex(bar.get_facecolor()) for bar in bars}
    assert set(tops) == {0.3, 0.9, 0.7}
    assert tops[0.7] == COLOURS["Single"].lower()
    assert all(bar.get_y() == 0.5 for bar in bars)
    drawn = [data(line) for line in ax.lines]
    assert any(np.array_equal(y, [0.2, 0.4]) and x[0] < 0.5 for x, y in drawn)
    assert [y.tolist() for _, y in drawn].count([0.779]) == 1
    assert [label.get_text() for label in ax.get_xticklabels()] == ["V[y]", "K"]


def test_failed_seeds_are_left_out():
    figure = draw_detection({"a": {"DER": {"epkl": [np.nan, 0.8]}}}, {}, SYMBOLS)
    (bar,) = bars_of(figure.axes[0])
    assert bar.get_height() == pytest.approx(0.3)


def test_three_pairs_leave_no_empty_panel():
    values = {"ENSM": {"epkl": [0.6]}}
    figure = draw_detection(dict.fromkeys("abc", values), {}, SYMBOLS)
    assert [ax.get_visible() for ax in figure.axes] == [True, True, True, False]


def test_weights_stand_in_order_with_the_mean_of_their_seeds():
    sets = {"NYU": {"δ1": {0.05: [0.6, 0.8], 0.0: [0.8, 0.8], 0.01: [0.75]}}}
    figure = draw_gammas(sets, {"NYU": {"δ1": {0.05: 0.556, 0.0: 0.852}}})
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "0.01", "0.05"]
    lines = [data(line) for line in ax.lines]
    assert any(x.tolist() == [0, 1, 2] and np.allclose(y, [0.8, 0.75, 0.7]) for x, y in lines)
    assert any(x.tolist() == [0, 2] and y.tolist() == [0.852, 0.556] for x, y in lines)


def test_a_score_that_one_set_lacks_leaves_its_panel_empty():
    sets = {"NYU": {"δ1": {0.0: [0.8]}}, "KITTI": {"δ1": {0.0: [0.9]}, "NLL": {0.0: [1.0]}}}
    figure = draw_gammas(sets, {})
    assert len(figure.axes) == 4


def test_dots_are_means_between_their_seeds():
    ax = plot_dots({"EnD2": {"epkl": [-0.5, -0.1]}}, SYMBOLS)
    lines = [data(line) for line in ax.lines]
    assert any(x.tolist() == [-0.5, -0.1] and y.tolist() == [1.0, 1.0] for x, y in lines)
    assert any(x.tolist() == pytest.approx([-0.3]) and len(x) == 1 for x, _ in lines)


def test_correlations_have_a_panel_for_each_set_and_partner():
    values = {"EnD2": {"epkl": [0.2]}}
    rows = {
        "with predicted depth": {"NYU": values, "KITTI": values},
        "with the rmse": {"NYU": values},
    }
    figure = draw_correlations(rows, SYMBOLS)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles[:2] == ["NYU: with predicted depth", "KITTI: with predicted depth"]
    assert titles[2] == "NYU: with the rmse"


def test_no_sets_to_draw_are_an_error():
    with pytest.raises(ValueError, match="at least one pair"):
        draw_detection({}, {}, SYMBOLS)
    with pytest.raises(ValueError, match="at least one set"):
        draw_gammas({}, {})
    with pytest.raises(ValueError, match="at least one set"):
        draw_correlations({"with the rmse": {}}, SYMBOLS)


def test_key_of_a_narrow_figure_has_several_rows():
    methods = ("Single", "ENSM", "EnD2", "NWPN", "DER", "EnD", "MD-EnD")
    values = {name: {"epkl": [0.2]} for name in methods}
    figure = draw_correlations({"with the rmse": {"NYU": values}}, SYMBOLS)
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
