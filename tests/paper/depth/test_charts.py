"""Charts of the depth experiment: what is drawn is what was given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from priornet.depth import DepthMaps
from priornet.methods import COLOURS
from priornet_paper.depth.charts import (
    draw_correlations,
    draw_detection,
    draw_gammas,
    draw_inputs,
    draw_scale,
    plot_dots,
    plot_scale,
)

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


def test_nothing_to_draw_is_an_error():
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


def test_a_variance_that_grows_with_the_square_is_a_line_of_slope_two():
    depth = np.random.default_rng(0).uniform(1, 10, (3, 20, 30))
    (line,) = plot_scale(depth, 0.1 * depth**2, {"color": "k"}).lines
    x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    assert len(x) == 12
    # The median of an even number lies between two pixels: nearly on the line.
    assert np.diff(np.log(y)) / np.diff(np.log(x)) == pytest.approx(2, abs=1e-3)


def test_what_is_not_a_positive_number_is_left_out():
    depth = np.array([1.0, 2.0, np.nan, 3.0, 4.0])
    values = np.array([5.0, 0.0, 7.0, np.inf, 8.0])
    (line,) = plot_scale(depth, values, {"color": "k"}).lines
    assert np.asarray(line.get_xdata()).tolist() == [1.0, 4.0]
    assert np.asarray(line.get_ydata()).tolist() == [5.0, 8.0]


def test_a_line_for_each_model_and_set_and_a_band_for_the_own_set():
    maps = DepthMaps(*np.random.default_rng(1).uniform(1, 2, (3, 2, 8, 8)))
    sets = {name: {"ENSM": maps, "EnD2": maps} for name in ("NYU", "bedroom", "KITTI")}
    figure = draw_scale(sets)
    for ax in figure.axes:
        assert len(ax.lines) == 6
        assert len(ax.collections) == 2
    key = [text.get_text() for text in figure.legends[0].get_texts()]
    assert key == ["Ensemble", "EnD²", "NYU", "bedroom", "KITTI"]


def test_no_maps_are_an_error():
    with pytest.raises(ValueError, match="at least one model"):
        draw_scale({"NYU": {}})


def test_inputs_are_rows_of_images_with_the_name_of_their_set():
    generator = np.random.default_rng(0)
    sets = {
        name: generator.integers(0, 256, (n, 12, 16, 3), dtype=np.uint8)
        for name, n in (("NYU", 4), ("LSUN bedroom", 3))
    }
    figure = draw_inputs(sets)
    drawn = [np.asarray(ax.images[0].get_array()) for ax in figure.axes]
    given = [image for images in sets.values() for image in images]
    assert all(np.array_equal(a, b) for a, b in zip(drawn, given, strict=True))
    assert [text.get_text() for text in figure.texts] == ["NYU", "LSUN bedroom"]
    rows = {round(ax.get_position().y0, 6) for ax in figure.axes}
    assert len(rows) == 2


@pytest.mark.parametrize("shapes", [[(2, 4, 4, 3), (2, 4, 5, 3)], [(0, 4, 4, 3)], []])
def test_inputs_of_different_shapes_are_refused(shapes):
    sets = {str(i): np.zeros(shape, np.uint8) for i, shape in enumerate(shapes)}
    with pytest.raises(ValueError, match="of one shape"):
        draw_inputs(sets)
