"""Augmentation: what is near looks large, colours vary, and nothing depends on the device."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from priornet_paper.depth.changes import changes_for, enlarge, jitter, mix
from priornet_paper.depth.config import Config
from priornet_paper.depth.recipe import recipes

SIZE = (16, 24)


@pytest.fixture
def images(generator):
    return torch.randint(0, 256, (6, 3, *SIZE), generator=generator, dtype=torch.uint8)


@pytest.fixture
def depth(generator):
    found = 1 + torch.rand((6, 8, 12), generator=generator)
    found[:, :2] = 0
    return found


def change(name="Single", **settings):
    """The augmentation, as a function whose results may be anything."""
    made: Any = changes_for(recipes(replace(Config(), **settings), [name])[0])
    return made


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def test_nothing_but_numbers_between_0_and_1(images, depth):
    plain = change(flip=0.0, swap=0.0, jitter=0.0, zoom=1.0)
    found, same = plain(images, depth, source())
    assert torch.equal(found, images.float() / 255)
    assert torch.equal(same, depth)


@pytest.mark.parametrize(
    "settings", [{}, {"jitter": 0.3}, {"zoom": 1.5}, {"jitter": 0.3, "zoom": 1.5}]
)
def test_the_same_draws_give_the_same_images(images, depth, settings):
    one = change(**settings)(images, depth, source())
    other = change(**settings)(images, depth, source())
    assert torch.equal(one[0], other[0])
    assert torch.equal(one[1], other[1])
    assert not torch.equal(one[0], change(**settings)(images, depth, source(1))[0])
    assert 0 <= one[0].min() <= one[0].max() <= 1


def test_foreign_images_have_no_depth(images):
    found, none = change(jitter=0.3, zoom=1.5)(images, None, source())
    assert none is None
    assert found.shape == images.shape


@pytest.mark.parametrize("extra", ["transfer", "strange"])
def test_only_students_see_stranger_images(images, depth, extra):
    settings = {"flip": 0.0, "swap": 0.0, "jitter": 0.0, "zoom": 1.0, "transfer": 0.0, extra: 0.5}
    own = images.float() / 255
    assert torch.equal(change("Single", **settings)(images, depth, source())[0], own)
    assert not torch.equal(change("EnD2", **settings)(images, depth, source())[0], own)


def test_what_is_enlarged_is_nearer():
    """A ramp in both: after enlargement, image and depth still agree, but for the factor."""
    ramp = torch.linspace(0, 1, 64).expand(1, 1, 64, 64)
    images, depth = ramp.expand(1, 3, -1, -1), 1 + ramp[0]
    large, near = enlarge(images, depth, 2.0, source())
    assert near is not None
    factor = (1 + large[0, 0]) / near[0]
    assert 1.05 < factor.mean() < 2
    assert factor.std() < 0.02  # of the nearest pixel, not of an average
    slope = large[0, 0, 0].diff()[4:-4].mean() / ramp[0, 0, 0].diff().mean()
    assert (slope * factor.mean()).item() == pytest.approx(1.0, rel=0.02)


def test_missing_depth_stays_missing(images, depth):
    _, near = enlarge(images.float() / 255, depth, 1.5, source())
    assert near is not None
    values = near[near > 0]
    assert (near == 0).any()
    assert values.min() >= depth[depth > 0].min() / 1.5 - 1e-6
    assert values.max() <= depth.max()


def test_a_factor_of_one_changes_nothing(images, depth):
    own = images.float() / 255
    same, near = enlarge(own, depth, 1.0, source())
    torch.testing.assert_close(same, own, rtol=0, atol=1e-5)
    assert near is not None
    assert torch.equal(near, depth)


def test_jitter_keeps_grey_grey_and_its_mean_near(generator):
    grey = torch.rand((64, 1, 8, 8), generator=generator).expand(-1, 3, -1, -1) * 0.5 + 0.25
    found = jitter(grey, 0.2, source())
    torch.testing.assert_close(found[:, 0], found[:, 1])
    assert not torch.allclose(found, grey, atol=0.05)
    assert found.mean().item() == pytest.approx(grey.mean().item(), abs=0.03)


def test_mixed_images_lie_between(images):
    own = images.float() / 255
    mixed = mix(own, 0.5, source())
    assert not torch.allclose(mixed, own)
    assert torch.corrcoef(torch.stack([mixed.flatten(), own.flatten()]))[0, 1] > 0.7
    torch.testing.assert_close(mix(own, 0.0, source()), own)
