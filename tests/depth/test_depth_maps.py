"""Figures show the given maps on shared scales."""

import numpy as np
import pytest
from matplotlib.colors import LogNorm

from priornet.depth.depth_maps import DepthMaps, draw_maps


def maps(seed, n=3, size=(6, 8)):
    """Make random maps within plausible ranges."""
    generator = np.random.default_rng(seed)
    depth = generator.uniform(1, 8, (n, *size))
    return DepthMaps(depth, 0.1 * depth**2, generator.lognormal(-2, 1, (n, *size)))


def models(**shape):
    return {"ENSM": maps(0, **shape), "EnD2": maps(1, **shape)}


def targets(n=3, size=(6, 8)):
    target = np.random.default_rng(2).uniform(1, 8, (n, *size))
    target[:, 0] = 0  # no measurement
    return target


def photographs(n=3, size=(12, 16)):
    return np.random.default_rng(3).integers(0, 256, (n, *size, 3), dtype=np.uint8)


def is_map(ax):
    """Tell if axes show an image, not a colour bar, which is one pixel high."""
    return np.asarray(ax.images[0].get_array()).shape[0] > 1


def images(figure):
    """Return the drawn images, without the colour bars."""
    return [ax.images[0] for ax in figure.axes if is_map(ax)]


def holds(figure, wanted):
    """Tell if an array is drawn somewhere."""
    shown = [np.ma.filled(np.ma.asarray(i.get_array(), float), np.nan) for i in images(figure)]
    return any(s.shape == wanted.shape and np.array_equal(s, wanted, equal_nan=True) for s in shown)


def texts(figure):
    found = [text.get_text() for text in figure.texts]
    for ax in figure.axes:
        found += [ax.get_title(), ax.get_xlabel(), ax.get_ylabel()]
    return [text for text in found if text]


@pytest.mark.parametrize("size", [(6, 8), (4, 12)], ids=["beside", "below"])
def test_every_map_is_drawn(size):
    given, target, photos = models(size=size), targets(size=size), photographs()
    figure = draw_maps(given, target, photos)
    assert len(images(figure)) == 3 * (2 + 2 * 4)
    measured = np.where(target > 0, target, np.nan)
    for i in range(3):
        assert holds(figure, photos[i].astype(float))
        assert holds(figure, measured[i])
        for model in given.values():
            for value in (model.prediction, model.total_variance, model.epkl):
                assert holds(figure, value[i])
            assert holds(figure, np.abs(model.prediction - measured)[i])


def test_photographs_can_stay_out():
    figure = draw_maps(models(), targets())
    assert len(images(figure)) == 3 * (1 + 2 * 4)
    assert "input" not in texts(figure)
    assert all(np.asarray(image.get_array()).ndim == 2 for image in images(figure))


def test_images_of_another_set_have_no_error():
    figure = draw_maps(models())
    assert len(images(figure)) == 3 * 2 * 3
    assert not {"absolute error", "measured"} & set(texts(figure))


def test_maps_of_one_quantity_share_their_scale_over_models_and_images():
    given, target = models(), targets()
    scales = {}
    for image in images(draw_maps(given, target)):
        value = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
        for name in ("prediction", "total_variance", "epkl"):
            whole = [v for m in given.values() for v in getattr(m, name)]
            if any(np.array_equal(value, v) for v in whole):
                scales.setdefault(name, set()).add(
                    (type(image.norm) is LogNorm, image.norm.vmin, image.norm.vmax)
                )
    assert {name: len(found) for name, found in scales.items()} == {
        **{"prediction": 1, "total_variance": 1, "epkl": 1},
    }
    is_log = {name: next(iter(found))[0] for name, found in scales.items()}
    assert is_log == {"prediction": False, "total_variance": True, "epkl": True}
    values = np.concatenate([m.epkl.ravel() for m in given.values()])
    low, high = np.percentile(values, (1, 99))
    assert next(iter(scales["epkl"]))[1:] == pytest.approx((low, high))


def test_scales_have_units_and_models_their_names():
    found = texts(draw_maps(models(), targets(), photographs(), names=["a", "b", "c"]))
    assert [text for text in found if text in ("m", "m²", "nats")] == ["m", "m", "m²", "nats"]
    assert {"Ensemble", "EnD²", "input", "measured", "a", "b", "c"} <= set(found)


@pytest.mark.parametrize("size", [(6, 8), (4, 12)], ids=["beside", "below"])
@pytest.mark.parametrize("n", [1, 5])
def test_maps_keep_their_shape_and_stay_on_the_page(size, n):
    figure = draw_maps(models(n=n, size=size), targets(n=n, size=size), photographs(n=n))
    width, height = figure.get_size_inches()
    boxes = [ax.get_position() for ax in figure.axes]
    for ax, box in zip(figure.axes, boxes, strict=True):
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1
        if is_map(ax):
            assert box.width * width / (box.height * height) == pytest.approx(size[1] / size[0])
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = (a.x0 >= b.x1, b.x0 >= a.x1, a.y0 >= b.y1, b.y0 >= a.y1)
            assert any(apart), (a, b)


def test_maps_of_a_model_that_failed_are_drawn_all_the_same():
    failed = DepthMaps(*(np.full((2, 6, 8), np.nan) for _ in range(3)))
    figure = draw_maps({"EnD2": failed}, np.zeros((2, 6, 8)))
    figure.canvas.draw()
    assert len(images(figure)) == 2 * 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": {}}, "at least one model"),
        ({"targets": targets(n=2)}, r"`targets` must have shape \(N, h, w\) like all; got \(2, 6"),
        ({"models": {"ENSM": maps(0), "EnD2": maps(1, n=2)}}, "EnD2's prediction must have"),
        ({"photographs": photographs(n=2)}, "`photographs` must be one per image, 3; got 2"),
        ({"names": ["a"]}, "`names` must be one per image, 3; got 1"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        draw_maps(**({"models": models(), "targets": targets()} | change))


def test_parts_and_joined_maps_keep_their_numbers():
    whole = maps(0)
    assert len(whole) == 3
    again = DepthMaps.joined([whole.part(slice(1)), whole.part(slice(1, None))])
    assert np.array_equal(again.epkl, whole.epkl)
    cut = whole.part(slice(None), slice(2, 4), slice(5))
    assert np.array_equal(cut.total_variance, whole.total_variance[:, 2:4, :5])


def test_long_names_make_room_and_do_not_squeeze_the_maps():
    short, long = (
        draw_maps({"ENSM": maps(0)}, names=names) for names in ("abc", ["bedroom 1"] * 3)
    )
    widths = [
        figure.get_figwidth() * figure.axes[0].get_position().width for figure in (short, long)
    ]
    assert widths[0] == pytest.approx(widths[1])
    assert long.get_figwidth() > short.get_figwidth()
