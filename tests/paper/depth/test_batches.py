"""Batches: half resolution, standardised depth, the same epoch twice, and parts of a batch."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from _depth_training import flip_only, make_set
from priornet_paper.depth import batches
from priornet_paper.depth.batches import (
    TrainingSet,
    augmentation_for,
    dead_leaves,
    enlarge,
    filtered,
    half_resolution,
    jitter,
    mix,
    replace_by_ood,
    rotate,
)
from priornet_paper.depth.config import Config, variants
from priornet_paper.depth.machine import Share

CPU = torch.device("cpu")


def training_set(**options):
    return TrainingSet(*make_set(**options), flip_only, CPU)


def epoch(data, number=0, seed=3, batch=4, share=None):
    return list(data.epoch(seed, number, batch, share or Share()))


def test_half_resolution_averages_what_was_measured():
    depth = torch.tensor([[[1.0, 3.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]])
    assert half_resolution(depth).tolist() == [[[2.0, 0.0]]]


def test_odd_sizes_have_no_half():
    with pytest.raises(ValueError, match=r"must be even.*got 3 x 4"):
        half_resolution(torch.ones(1, 3, 4))


def test_depth_is_standardised_by_all_valid_pixels():
    data = training_set()
    _, depth, _ = make_set()
    valid = depth[depth > 0].double()
    assert data.scale.mean == pytest.approx(valid.mean().item(), rel=1e-12)
    assert data.scale.std == pytest.approx(valid.std(correction=0).item(), rel=1e-9)
    standardised = data.scale.standardised(valid)
    assert standardised.mean().abs() < 1e-9
    assert standardised.std(correction=0).item() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("fill", "message"), [(0.0, "no training image has a measured"), (2.0, "every measured depth")]
)
def test_depth_without_information_is_refused(fill, message):
    images, depth, _ = make_set()
    with pytest.raises(ValueError, match=message):
        TrainingSet(images, torch.full_like(depth, fill), None, flip_only, CPU)


def test_an_epoch_is_the_same_whenever_it_is_drawn():
    data = training_set()
    first, again = epoch(data), epoch(data)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.depth, other.depth)
        assert one.ood is not None
        assert other.ood is not None
        assert torch.equal(one.ood, other.ood)
    for other in (epoch(data, number=1), epoch(data, seed=4)):
        assert not torch.equal(first[0].images, other[0].images)


def test_every_image_serves_once():
    images, depth, _ = make_set(ood=False)
    depth[:] = torch.arange(1, 13)[:, None, None]
    data = TrainingSet(images, depth, None, flip_only, CPU)
    seen = torch.cat([batch.depth[:, 0, 0] for batch in epoch(data)])
    assert sorted(seen.tolist()) == list(range(1, 13))
    assert len(epoch(data, batch=5)) == 2  # two images wait for the next epoch
    assert len(epoch(data, batch=50)[0].images) == 12


def test_processes_see_the_parts_of_one_batch():
    data = training_set()
    halves = [epoch(data, share=Share(rank, 2)) for rank in (0, 1)]
    for whole, *parts in zip(epoch(data), *halves, strict=True):
        for name in ("images", "depth", "ood"):
            together = torch.cat([getattr(part, name) for part in parts])
            assert torch.equal(together, getattr(whole, name))


def test_ood_images_do_not_change_those_of_the_set():
    with_ood, without = epoch(training_set()), epoch(training_set(ood=False))
    for one, other in zip(with_ood, without, strict=True):
        assert torch.equal(one.images, other.images)
        assert other.ood is None


def test_ood_images_take_turns():
    """Seven of them for twelve places: each once before any comes again."""
    data = training_set()
    assert data.ood is not None
    known = {tuple(image.flatten().tolist()): i for i, image in enumerate(data.ood)}
    seen = []
    for batch in epoch(data):
        assert batch.ood is not None
        for image in (batch.ood * 255).round().to(torch.uint8):
            mirrored = known.get(tuple(image.flip(-1).flatten().tolist()))
            seen.append(known.get(tuple(image.flatten().tolist()), mirrored))
    assert sorted(seen[:7]) == list(range(7))
    assert None not in seen


def test_images_are_numbers_between_0_and_1_in_channels_last():
    batch = epoch(training_set())[0]
    assert batch.images.dtype == torch.float32
    assert 0 <= batch.images.min() <= batch.images.max() <= 1
    assert batch.images.is_contiguous(memory_format=torch.channels_last)


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
    made: Any = augmentation_for(variants(replace(Config(), **settings), [name])[0])
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


def test_ood_images_have_no_depth(images):
    found, none = change(jitter=0.3, zoom=1.5)(images, None, source())
    assert none is None
    assert found.shape == images.shape


@pytest.mark.parametrize("extra", ["transfer", "strange"])
def test_only_students_see_images_farther_from_photographs(images, depth, extra):
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


@pytest.fixture
def photographs():
    """Smooth, grey, with an edge: as photographs are, unlike noise."""
    ramp = torch.linspace(0.2, 0.6, 48).expand(32, 3, 32, 48).clone()
    ramp[..., 8:24, 20:30] += 0.3
    return ramp


def test_ood_images_are_of_all_kinds():
    images = torch.rand((3500, 3, 6, 8), generator=source())
    found = replace_by_ood(images, 6 / 7, source())
    overlaid = 0.5 * (images + images.roll(1, 0))
    kinds = (images, 1 - images, images.roll((3, 4), (-2, -1)), overlaid)
    same = [(found == kind).flatten(1).all(1).float().mean() for kind in kinds]
    for share in same:  # the others are turned, filtered, or leaves
        assert abs(share - 1 / 7) < 4 * (1 / 7 * 6 / 7 / 3500) ** 0.5
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize(
    "make", [rotate, filtered, dead_leaves, lambda x, g: replace_by_ood(x, 0.5, g)]
)
def test_the_same_draws_give_the_same_ood_images(photographs, make):
    found = make(photographs, source())
    assert torch.equal(found, make(photographs, source()))
    assert not torch.equal(found, make(photographs, source(1)))
    assert found.shape == photographs.shape
    assert 0 <= found.min() <= found.max() <= 1


def test_turned_images_keep_their_shapes(monkeypatch):
    """A quarter turn of a picture that is wider than high, by hand: pixels stay square."""

    def middle(n, low, high, *_):
        return torch.full((n, 1, 1, 1), high / 2)

    monkeypatch.setattr(batches, "_draw", middle)
    image = torch.zeros(1, 3, 32, 48)
    image[..., 12:20, 16:32] = 1.0  # twice as wide as high, in the middle
    found = rotate(image, source())[0, 0, :, 8:40] > 0.5  # farther out it is seen in a mirror
    rows, columns = found.any(1).sum(), found.any(0).sum()
    assert (rows, columns) == pytest.approx((16 / 2**0.5, 8 / 2**0.5), abs=1)


def test_turned_images_have_no_borders():
    white = torch.ones(64, 3, 8, 12)
    assert torch.allclose(rotate(white, source()), white)


def test_a_filter_sees_its_own_image_only(photographs):
    """The first of many images gets the same filter whatever the others show."""
    others = torch.rand(photographs.shape, generator=source(5))
    others[0] = photographs[0]
    torch.testing.assert_close(
        filtered(photographs, source())[0],
        filtered(others, source())[0],
        rtol=1e-4,
        atol=1e-5,
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
    found = dead_leaves(photographs.repeat(1, 1, 4, 4), source())  # 128 x 192
    step = found.diff(dim=-1).abs().amax(1)
    assert (step < 0.02).float().mean() > 0.75  # surfaces
    assert (step > 0.1).float().mean() > 0.005  # edges
    assert (step.flatten(1).amax(1) > 0.1).all()  # in every picture


def test_leaves_have_nothing_of_the_images(photographs):
    noise = torch.rand(photographs.shape, generator=source(3))
    assert torch.equal(dead_leaves(photographs, source()), dead_leaves(noise, source()))


def test_some_leaves_are_grey_and_some_colourful(photographs):
    found = dead_leaves(photographs, source())
    colour = (found.amax(1) - found.amin(1)).mean((-2, -1))
    assert colour.min() < 0.15
    assert colour.max() > 0.3
    assert math.isfinite(float(colour.sum()))
