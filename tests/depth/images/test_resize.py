"""Foreign images take our shape; depths are never mixed."""

import numpy as np
import pytest

from _depth_files import photograph
from priornet.depth import DepthError, prepare_foreign
from priornet.depth.images.resize import resize_depth, resize_picture


def ramp(height, width):
    """Red grows to the right, green downwards, in grey values a pixel."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x, y, np.zeros_like(x)], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("shape", [(60, 80), (30, 200), (200, 30), (7, 5), (48, 64)])
def test_a_foreign_picture_takes_the_size(shape):
    found = prepare_foreign(photograph(*shape), (24, 32))
    assert found.shape == (24, 32, 3)
    assert found.dtype == np.uint8


def test_the_middle_of_a_wide_picture_is_kept_and_not_stretched():
    found = prepare_foreign(ramp(60, 200), (30, 40)).astype(float)  # keeps 60 x 80 of it
    middle = slice(5, -5)
    assert found[15, middle, 0].mean() == pytest.approx(99.5, abs=0.5)
    assert np.diff(found[15, middle, 0]) == pytest.approx(2.0, abs=1.01)
    assert found[15, -6, 0] - found[15, 5, 0] == pytest.approx(2 * 29, abs=1)
    assert found[-6, 20, 1] - found[5, 20, 1] == pytest.approx(2 * 19, abs=1)


def test_the_middle_of_a_high_picture_is_kept():
    found = prepare_foreign(ramp(200, 60), (40, 30)).astype(float)  # keeps 80 x 60 of it
    assert found[5:-5, 15, 1].mean() == pytest.approx(99.5, abs=0.5)


def test_a_picture_of_the_right_size_stays():
    image = photograph()
    assert (prepare_foreign(image, (12, 16)) == image).all()


def test_shrinking_averages():
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[:, ::2] = 200
    found = resize_picture(stripes, (8, 8), crop=False)
    assert np.abs(found[2:-2, 2:-2].astype(int) - 100).max() <= 2


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4)), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8)]
)
def test_other_arrays_are_refused(image):
    with pytest.raises(DepthError, match=r"`image` must hold bytes of shape \(H, W, 3\)"):
        prepare_foreign(image, (2, 2))


def test_an_impossible_size_is_refused():
    with pytest.raises(DepthError, match="`size` must be"):
        prepare_foreign(photograph(), (0, 4))


def test_depth_takes_values_that_were_there():
    depth = np.random.default_rng(0).uniform(1, 9, (31, 47)).astype(np.float32)
    depth[:15] = 0
    for size in ((10, 20), (62, 94), (7, 100)):
        found = resize_depth(depth, size, crop=False)
        assert found.shape == size
        assert np.isin(found, depth).all()
    assert (resize_depth(depth, (62, 94), crop=False)[::2, ::2] == depth).all()


def test_depth_is_cut_as_its_picture_is():
    pixels = ramp(60, 200)
    depth = pixels[..., 0].astype(np.float32)
    found = resize_depth(depth, (30, 40), crop=True)
    picture = resize_picture(pixels, (30, 40), crop=True)[..., 0]
    inner = np.s_[2:-2, 2:-2]
    assert np.abs(found[inner] - picture[inner]).max() <= 1.01
