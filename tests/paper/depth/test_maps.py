"""Figures of maps: uncertainty against depth, and the images that models receive."""

import numpy as np
import pytest

from priornet.depth import DepthMaps
from priornet_paper.depth.maps import draw_inputs, draw_scale, plot_scale


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
