"""Images and depth are mirrored together; colours are exchanged; a generator decides."""

from collections import Counter

import pytest
import torch
from torch import Generator

from priornet.depth import Augment


def batch(n=8, device="cpu"):
    generator = Generator().manual_seed(1)
    images = torch.randint(256, (n, 3, 4, 6), generator=generator, dtype=torch.uint8)
    return images.to(device), torch.rand((n, 4, 6), generator=generator).to(device)


def augment(seed=0, **options):
    return Augment(Generator().manual_seed(seed), **options)


def test_probability_zero_changes_nothing():
    images, depth = batch()
    found = augment(flip=0, swap=0)(images, depth)
    assert (found[0] == images).all()
    assert (found[1] == depth).all()


def test_mirrored_image_has_its_depth_mirrored():
    images, depth = batch()
    found_images, found_depth = augment(flip=1, swap=0)(images, depth)
    assert (found_images == images.flip(-1)).all()
    assert (found_depth == depth.flip(-1)).all()


def test_each_image_is_mirrored_by_its_own_draw_together_with_its_depth():
    images, depth = batch(200)
    found_images, found_depth = augment(swap=0)(images, depth)
    mirrored = (found_images == images.flip(-1)).flatten(1).all(1)
    kept = (found_images == images).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert ((found_depth == depth.flip(-1)).flatten(1).all(1) == mirrored).all()
    # 200 draws of one half: five standard errors are 35.
    assert 65 < mirrored.sum() < 135


def test_colours_are_exchanged_with_their_probability_and_depth_stays():
    n = 2400
    images = torch.tensor([10, 20, 30], dtype=torch.uint8).reshape(1, 3, 1, 1).expand(n, 3, 2, 2)
    depth = torch.rand(n, 2, 2, generator=Generator().manual_seed(2))
    found, found_depth = augment(flip=0)(images, depth)
    orders = Counter(tuple(order) for order in found[:, :, 0, 0].tolist())
    assert len(orders) == 6
    # A quarter of the images draws one of six orders; five standard errors of 1/24 are 49.
    others = [count for order, count in orders.items() if order != (10, 20, 30)]
    assert all(abs(count - n / 24) < 49 for count in others)
    assert (found == found[:, :, :1, :1]).all()
    assert found_depth is not None
    assert (found_depth == depth).all()


def test_seed_decides_and_the_arguments_stay():
    images, depth = batch(32)
    before = images.clone(), depth.clone()
    first, second, other = (augment(seed)(images, depth) for seed in (3, 3, 4))
    assert (first[0] == second[0]).all()
    assert (first[0] != other[0]).any()
    assert (images == before[0]).all()
    assert (depth == before[1]).all()


def test_probabilities_do_not_change_later_draws():
    after = []
    for options in ({"flip": 0.0, "swap": 0.0}, {}, {"swap": 1.0}):
        generator = Generator().manual_seed(0)
        Augment(generator, **options)(*batch())
        after.append(torch.rand(1, generator=generator))
    assert after[0] == after[1] == after[2]


def test_depth_may_be_absent_or_of_another_resolution():
    images, depth = batch()
    assert augment()(images)[1] is None
    found = augment(flip=1)(images, depth[:, ::2, ::2])[1]
    assert found is not None
    assert (found == depth[:, ::2, ::2].flip(-1)).all()
    assert (augment()(images)[0] == augment()(images, depth)[0]).all()


def test_changes_are_the_same_on_every_device(device):
    images, depth = batch(16)
    here = augment(5)(images, depth)
    there = augment(5)(*batch(16, device))
    assert there[0].device.type == device.type
    for mine, other in zip(here, there, strict=True):
        assert mine is not None
        assert other is not None
        assert (mine == other.cpu()).all()


def test_generator_may_be_on_the_device_of_the_images(device):
    images, depth = batch(16, device)
    found, _ = Augment(Generator(device).manual_seed(0))(images, depth)
    assert found.shape == images.shape


def test_wrong_arguments_are_refused():
    images, depth = batch()
    with pytest.raises(ValueError, match="`flip` must be a probability; got 2"):
        augment(flip=2)
    with pytest.raises(ValueError, match=r"`images` must have shape \(B, 3, H, W\)"):
        augment()(images[:, :1])
    with pytest.raises(ValueError, match=r"`depth` must have shape \(B, h, w\) with B = 8"):
        augment()(images, depth[:3])
