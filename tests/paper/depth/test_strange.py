"""Strange images: as many as asked for, of every kind, the same for the same draws."""

import math

import pytest
import torch

from priornet_paper.depth import strange
from priornet_paper.depth.strange import filtered, leaves, turn, upset


def source(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def photographs():
    """Smooth, grey, with an edge: as photographs are, unlike noise."""
    ramp = torch.linspace(0.2, 0.6, 48).expand(32, 3, 32, 48).clone()
    ramp[..., 8:24, 20:30] += 0.3
    return ramp


def test_strange_images_are_of_all_kinds():
    images = torch.rand((3500, 3, 6, 8), generator=source())
    found = upset(images, 6 / 7, source())
    overlaid = 0.5 * (images + images.roll(1, 0))
    kinds = (images, 1 - images, images.roll((3, 4), (-2, -1)), overlaid)
    same = [(found == kind).flatten(1).all(1).float().mean() for kind in kinds]
    for share in same:  # the others are turned, filtered, or leaves
        assert abs(share - 1 / 7) < 4 * (1 / 7 * 6 / 7 / 3500) ** 0.5
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("make", [turn, filtered, leaves, lambda x, g: upset(x, 0.5, g)])
def test_the_same_draws_give_the_same_images(photographs, make):
    found = make(photographs, source())
    assert torch.equal(found, make(photographs, source()))
    assert not torch.equal(found, make(photographs, source(1)))
    assert found.shape == photographs.shape
    assert 0 <= found.min() <= found.max() <= 1


def test_turned_images_keep_their_shapes(monkeypatch):
    """A quarter turn of a picture that is wider than high, by hand: pixels stay square."""

    def middle(n, low, high, *_):
        return torch.full((n, 1, 1, 1), high / 2)

    monkeypatch.setattr(strange, "draw", middle)
    image = torch.zeros(1, 3, 32, 48)
    image[..., 12:20, 16:32] = 1.0  # twice as wide as high, in the middle
    found = turn(image, source())[0, 0, :, 8:40] > 0.5  # farther out it is seen in a mirror
    rows, columns = found.any(1).sum(), found.any(0).sum()
    assert (rows, columns) == pytest.approx((16 / 2**0.5, 8 / 2**0.5), abs=1)


def test_turned_images_have_no_borders():
    white = torch.ones(64, 3, 8, 12)
    assert torch.allclose(turn(white, source()), white)


def test_a_filter_sees_its_own_image_only(photographs):
    """The first of many images gets the same filter whatever the others show."""
    others = torch.rand(photographs.shape, generator=source(5))
    others[0] = photographs[0]
    torch.testing.assert_close(
        filtered(photographs, source())[0], filtered(others, source())[0], rtol=1e-4, atol=1e-5
    )


def test_a_filter_changes_texture_and_keeps_shapes(photographs):
    found = filtered(photographs, source())
    plain = found[:, :, 12:20, 4:16]  # far from every edge of the picture: a ramp stays a ramp
    bend = plain.diff(dim=-1).diff(dim=-1).abs().amax((1, 2, 3))
    inside = (plain > 0).flatten(1).all(1) & (plain < 1).flatten(1).all(1)
    assert inside.sum() > 8
    assert bend[inside].max() < 1e-4
    assert found.std((0, -2, -1)).min() > 0.05  # but colours differ from image to image
    levels = found.mean((-2, -1)).std(0)
    assert levels.min() > 0.05


def test_leaves_are_plain_surfaces_with_sharp_edges(photographs):
    found = leaves(photographs.repeat(1, 1, 4, 4), source())  # 128 x 192
    step = found.diff(dim=-1).abs().amax(1)
    assert (step < 0.02).float().mean() > 0.75  # surfaces
    assert (step > 0.1).float().mean() > 0.005  # edges
    assert (step.flatten(1).amax(1) > 0.1).all()  # in every picture


def test_leaves_have_nothing_of_the_images(photographs):
    noise = torch.rand(photographs.shape, generator=source(3))
    assert torch.equal(leaves(photographs, source()), leaves(noise, source()))


def test_some_leaves_are_grey_and_some_colourful(photographs):
    found = leaves(photographs, source())
    colour = (found.amax(1) - found.amin(1)).mean((-2, -1))
    assert colour.min() < 0.15
    assert colour.max() > 0.3
    assert math.isfinite(float(colour.sum()))
