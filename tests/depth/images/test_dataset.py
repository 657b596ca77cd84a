"""Sets have parts, tensors, batches and a description."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from _depth_files import codes, encoded, photograph, write_pairs, write_split
from priornet.depth import DepthError, describe, open_depth
from priornet.depth.images.dataset import rows_of
from priornet.depth.images.decoding import resize_picture


def divided(parts, n=4) -> Any:
    return SimpleNamespace(name="rooms", names=[str(k) for k in range(n)], parts=parts)


def test_parts_are_disjoint_and_complete():
    source = divided(["train", "test", "train", "test"])
    assert rows_of(source, "train") == [0, 2]
    assert rows_of(source, "test") == [1, 3]
    assert rows_of(source, "all") == [0, 1, 2, 3]


def test_undivided_set_is_its_own_test_part():
    assert rows_of(divided(None), "test") == rows_of(divided(None), "all") == [0, 1, 2, 3]
    with pytest.raises(DepthError, match="rooms: this set is not divided"):
        rows_of(divided(None), "train")


def test_empty_part_and_an_unknown_one_are_refused():
    unknown: Any = "val"
    with pytest.raises(DepthError, match="rooms: it has no test images"):
        rows_of(divided(["train"] * 4), "test")
    with pytest.raises(DepthError, match='unknown part "val"; choose one of: train, test, all'):
        rows_of(divided(None), unknown)


NAMES = [f"{number:04d}" for number in range(11)]


@pytest.fixture
def images(tmp_path):
    return open_depth(write_pairs(tmp_path / "rooms", NAMES))


def depths(images):
    return np.stack([images.depth(row) for row in range(len(images))])


def test_returned_arrays_are_writable_copies(images):
    image = images.image(0)
    for array in (image, images.depth(0), resize_picture(image, (6, 6), crop=True)):
        assert torch.from_numpy(array).shape == array.shape  # which warns of arrays of others
    images.image(0)[:] = 0
    assert images.image(0).any()


@pytest.mark.parametrize("workers", [1, 3])
def test_tensors_equal_the_images(images, workers):
    pixels, depth = images.tensors(workers=workers)
    assert pixels.dtype == torch.uint8
    assert pixels.shape == (11, 3, 12, 16)
    assert pixels.is_contiguous()
    for row in range(11):
        assert (pixels[row].permute(1, 2, 0).numpy() == images.image(row)).all()
    assert depth.dtype == torch.float32
    assert (depth.numpy() == depths(images)).all()


def test_depth_may_have_half_precision(images):
    _, depth = images.tensors(dtype=torch.float16)
    assert depth.dtype == torch.float16
    np.testing.assert_allclose(depth.numpy(), depths(images), rtol=5e-4)


def test_tensors_may_have_another_size(images):
    pixels, depth = images.tensors((6, 8))
    assert pixels.shape == (11, 3, 6, 8)
    assert depth.shape == (11, 6, 8)
    assert np.isin(depth.numpy(), depths(images)).all()


def test_tensors_may_be_cut_to_shape(images):
    pixels, _ = images.tensors((8, 8), crop=True)
    for row in (0, 7):
        expected = resize_picture(images.image(row), (8, 8), crop=True)
        assert (pixels[row].permute(1, 2, 0).numpy() == expected).all()


def test_unwanted_depth_is_not_read(images, tmp_path):
    for path in (tmp_path / "rooms" / "depth").iterdir():
        path.write_bytes(b"no depth map")
    pixels, depth = images.tensors(with_depth=False)
    assert pixels.shape == (11, 3, 12, 16)
    assert depth is None


def test_parts_of_a_set_are_sets(images):
    assert images[:3].names == ("0000", "0001", "0002")
    assert images[[4, 2]].names == ("0004", "0002")
    assert (images[[4, 2]].image(1) == images.image(2)).all()
    assert images[5:][1:2].names == ("0006",)
    assert len(images[::2].tensors()[0]) == 6
    assert repr(images[:3]) == "<3 images of rooms with depth>"


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_hold_all_images_in_order(images, workers):
    batches = list(images.batches(4, workers=workers))
    assert [len(batch.images) for batch in batches] == [4, 4, 3]
    assert [row for batch in batches for row in batch.rows] == list(range(11))
    whole, depth = images.tensors()
    assert (torch.cat([batch.images for batch in batches]) == whole).all()
    assert (torch.cat([batch.depth for batch in batches]) == depth).all()


def test_batches_follow_an_order(images):
    order = torch.randperm(11, generator=torch.Generator().manual_seed(0)).tolist()
    whole, _ = images.tensors()
    for batch in images.batches(3, order=order):
        assert (batch.images == whole[batch.rows]).all()


def test_few_images_are_decoded_ahead(images, monkeypatch):
    read = []
    picture = images.picture
    monkeypatch.setattr(images, "picture", lambda row: read.append(row) or picture(row))
    batches = images.batches(2, workers=2, ahead=2)
    next(batches)
    assert len(read) <= 7
    batches.close()


def test_set_without_depth_has_none(tmp_path):
    images = open_depth(write_pairs(tmp_path / "beds", NAMES[:2], with_depth=False))
    pixels, depth = images.tensors()
    assert pixels.shape == (2, 3, 12, 16)
    assert depth is None
    assert next(images.batches(2)).depth is None


def test_picture_of_another_size_is_named(images, tmp_path):
    (tmp_path / "rooms/rgb/0005.jpg").write_bytes(encoded(photograph(24, 32)))
    with pytest.raises(DepthError, match=r"0005\.png: depth of 12 x 16 .* picture of 24 x 32"):
        images.tensors()
    (tmp_path / "rooms/depth/0005.png").write_bytes(encoded(photograph(24, 32)[..., 0], "PNG"))
    with pytest.raises(DepthError, match=r"0005\.jpg: 24 x 32 pixels, where .* 12 x 16; give a"):
        images.tensors()
    assert images.tensors((12, 16))[0].shape == (11, 3, 12, 16)


@pytest.mark.parametrize("workers", [1, 2])
def test_damaged_picture_is_named_from_any_thread(images, tmp_path, workers):
    path = tmp_path / "rooms/rgb/0006.jpg"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DepthError, match=r"rooms/rgb/0006\.jpg: this cannot be read as a picture"):
        images.tensors(workers=workers)


def test_wrong_arguments_are_refused(images):
    with pytest.raises(DepthError, match="there are no images to read"):
        images[:0].tensors()
    with pytest.raises(ValueError, match="`batch` must be at least 1; got 0"):
        next(images.batches(0))
    with pytest.raises(DepthError, match="`size` must be a height and a width"):
        images.tensors((0, 5))


def test_description_covers_all_pixels(tmp_path):
    folder = write_pairs(tmp_path / "road", ["0000", "0001", "0002"], dtype=np.uint16)
    write_split(folder, {"0000": "train", "0001": "train", "0002": "test"})
    metres = np.stack([codes(seed=s, dtype=np.uint16, high=60_000) / 1000 for s in range(3)])
    found = describe(open_depth(folder))
    assert (found.name, found.n_images) == ("road", 3)
    assert found.parts == {"train": 2, "test": 1}
    assert found.sizes == {(12, 16): 3}
    valid = metres[metres > 0]
    assert found.depth_range == pytest.approx((valid.min(), valid.max()))
    assert found.depth_mean == pytest.approx(valid.mean())
    assert found.valid_share == pytest.approx(valid.size / metres.size)
    assert valid.size < metres.size


def test_pictures_alone_have_sizes_only(tmp_path):
    for number, shape in enumerate([(4, 6), (4, 6), (8, 5)]):
        (tmp_path / f"{number}.png").write_bytes(encoded(photograph(*shape), "PNG"))
    found = describe(open_depth(tmp_path))
    assert found.sizes == {(4, 6): 2, (8, 5): 1}
    assert (found.depth_range, found.depth_mean, found.valid_share) == (None, None, None)
    assert found.parts == {}


def test_damaged_file_is_named(tmp_path):
    folder = write_pairs(tmp_path / "rooms", ["0000", "0001"])
    (folder / "depth" / "0001.png").write_bytes(b"nothing")
    with pytest.raises(DepthError, match=r"depth/0001\.png"):
        describe(open_depth(folder))


def test_real_sets_match_their_descriptions(real_depth):
    road = describe(open_depth(real_depth / "kitti_road")[::8])
    assert road.sizes == {(192, 640): 37}
    assert road.valid_share == pytest.approx(0.51, abs=0.01)
    rooms = describe(open_depth(real_depth / "nyu_v2")[::10])
    assert rooms.valid_share == 1.0
    assert rooms.depth_mean == pytest.approx(2.80, abs=0.1)
