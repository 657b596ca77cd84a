"""A fixed division of KITTI's 289 road images into training and test.

The set's own test images have no public depth, so some of the training images must serve. They lie
along a few drives, and neighbours show the same street twenty metres on: taking every n-th image
would test on streets that were learnt. The last 17 images of each category are kept together
instead, so that just three test images border on a training image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["KITTI_ROAD_TEST", "is_kitti_road", "kitti_road_parts", "last_of_each_category"]

_N_IMAGES = {"um": 95, "umm": 96, "uu": 98}
_N_TEST = 17
_NAME = re.compile(r"(um|umm|uu)_\d{6}")

KITTI_ROAD_TEST: tuple[str, ...] = tuple(
    f"{category}_{number:06d}"
    for category, n_images in _N_IMAGES.items()
    for number in range(n_images - _N_TEST, n_images)
)
"""The 51 test images: the last 17 of each of ``um``, ``umm`` and ``uu``."""


def is_kitti_road(names: Sequence[str]) -> bool:
    """Whether these are the names of road images."""
    return bool(names) and all(_NAME.fullmatch(name) for name in names)


def kitti_road_parts(names: Sequence[str]) -> list[str]:
    """``"train"`` or ``"test"`` for each image."""
    test = set(KITTI_ROAD_TEST)
    return ["test" if name in test else "train" for name in names]


def last_of_each_category(names: Sequence[str], share: float) -> list[int]:
    """Places of the last road images of ``um``, ``umm`` and ``uu``: as the test images are chosen.

    Example:
        >>> last_of_each_category(["um_000000", "um_000001", "uu_000000", "uu_000001"], 0.5)
        [1, 3]
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name.partition("_")[0], []).append(place)
    return sorted(
        place for found in places.values() for place in found[round((1 - share) * len(found)) :]
    )
