"""A set in a few numbers."""

import numpy as np
import pytest

from _depth_files import codes, encoded, photograph, write_pairs, write_split
from priornet.depth import DepthError, describe, open_depth


def test_numbers_are_those_of_all_pixels(tmp_path):
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


def test_a_damaged_file_is_named(tmp_path):
    folder = write_pairs(tmp_path / "rooms", ["0000", "0001"])
    (folder / "depth" / "0001.png").write_bytes(b"nothing")
    with pytest.raises(DepthError, match=r"depth/0001\.png"):
        describe(open_depth(folder))


def test_the_real_sets_are_as_their_authors_say(real_depth):
    road = describe(open_depth(real_depth / "kitti_road")[::8])
    assert road.sizes == {(192, 640): 37}
    assert road.valid_share == pytest.approx(0.51, abs=0.01)
    rooms = describe(open_depth(real_depth / "nyu_v2")[::10])
    assert rooms.valid_share == 1.0
    assert rooms.depth_mean == pytest.approx(2.80, abs=0.1)
