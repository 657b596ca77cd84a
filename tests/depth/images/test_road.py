"""The division of KITTI's road images is fixed by their names."""

import pytest

from priornet.depth import KITTI_ROAD_TEST, open_depth
from priornet.depth.images.road import is_kitti_road, kitti_road_parts, last_of_each_category

EXPECTED = [
    *(f"um_0000{number}" for number in range(78, 95)),
    *(f"umm_0000{number}" for number in range(79, 96)),
    *(f"uu_0000{number}" for number in range(81, 98)),
]


def test_the_list_is_the_one_that_was_published():
    assert list(KITTI_ROAD_TEST) == EXPECTED
    assert len(KITTI_ROAD_TEST) == 51


def test_names_decide():
    names = ["um_000077", "um_000078", "umm_000079", "uu_000000", "uu_000097"]
    assert kitti_road_parts(names) == ["train", "test", "test", "train", "test"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["um_000001", "uu_000002"], True), (["um_000001", "0002"], False), ([], False)],
)
def test_road_images_are_known_by_their_names(names, expected):
    assert is_kitti_road(names) == expected


def test_the_real_set_is_divided_evenly(real_depth):
    train, test = (open_depth(real_depth / "kitti_road", part) for part in ("train", "test"))
    assert test.names == tuple(sorted(EXPECTED))
    assert len(train) == 289 - 51
    assert not set(train.names) & set(test.names)
    for category in ("um_", "umm_", "uu_"):
        assert sum(name.startswith(category) for name in test.names) == 17


def test_images_held_out_are_the_last_of_every_category():
    names = [f"{kind}_{i:06d}" for kind, n in (("um", 10), ("umm", 4), ("uu", 1)) for i in range(n)]
    held = [names[place] for place in last_of_each_category(names, 0.25)]
    assert held == ["um_000008", "um_000009", "umm_000003"]
    assert last_of_each_category(names, 0.0) == []


def test_held_out_images_of_the_real_set_are_divided_as_its_test_images(real_depth):
    train = open_depth(real_depth / "kitti_road", "train")
    held = [train.names[place] for place in last_of_each_category(train.names, 0.18)]
    counts = [sum(name.startswith(kind) for name in held) for kind in ("um_", "umm_", "uu_")]
    assert counts == [14, 14, 15]
