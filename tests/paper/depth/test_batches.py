"""Batches: half resolution, standardised depth, the same epoch twice, and parts of a batch."""

import pytest
import torch

from _depth_training import flip_only, make_set
from priornet_paper.depth.batches import TrainingSet, half_resolution
from priornet_paper.depth.sharing import Share

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
