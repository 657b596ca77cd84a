"""DenseDepth's copies of NYU Depth v2: ``nyu_data.zip`` to learn from, ``nyu_test.zip`` to score.

Alhashim and Wonka, "High Quality Monocular Depth Estimation via Transfer Learning", 2018. Both are
read from the zip, file by file, or from the folder that it was unpacked to.
"""

from __future__ import annotations

import csv
import io
from pathlib import PurePosixPath

from priornet.depth.images.arrays import ArrayFile
from priornet.depth.images.decoding import Picture, StoredDepth, depth_file, depth_in_metres
from priornet.depth.images.encoding import MILLIMETRES, TEN_METRE_CODES, Encoding
from priornet.depth.images.errors import DepthError, reading
from priornet.depth.images.members import Members

__all__ = ["DenseDepthData", "DenseDepthTest", "is_dense_depth_data", "is_dense_depth_test"]

_LISTS = {"train": "data/nyu2_train.csv", "test": "data/nyu2_test.csv"}
# Depth to learn from has 8 bits over ten metres; depth to validate with has 16, in millimetres.
_ENCODINGS = {8: TEN_METRE_CODES, 16: MILLIMETRES}
_RGB, _DEPTH, _CROP = (f"eigen_test_{what}.npy" for what in ("rgb", "depth", "crop"))


def is_dense_depth_data(members: Members) -> bool:
    """Whether this is ``nyu_data.zip``."""
    return members.home_of(_LISTS["train"]) is not None


def is_dense_depth_test(members: Members) -> bool:
    """Whether this is ``nyu_test.zip``."""
    return members.home_of(_RGB) is not None


class DenseDepthData:
    """``nyu_data.zip``: two lists of pairs, JPEG or PNG pictures, PNG depth.

    Args:
        members: The zip, or the folder it was unpacked to.
    """

    crop = None
    has_depth = True

    def __init__(self, members: Members) -> None:
        self.name = members.path.stem
        self._members = members
        home = members.home_of(_LISTS["train"]) or ""
        members.check([home + _LISTS["train"]])
        listed = [(part, pair) for part in _LISTS for pair in _pairs(members, home, part)]
        self.parts = [part for part, _ in listed]
        self._pairs = [pair for _, pair in listed]
        self.names = tuple(_name(picture) for picture, _ in self._pairs)
        members.check(file for pair in self._pairs for file in pair)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        name = self._pairs[index][0]
        return Picture(self._members.read(name), self._members.where(name))

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        name = self._pairs[index][1]
        encodings: dict[int, Encoding] = _ENCODINGS
        return depth_file(self._members.read(name), self._members.where(name), encodings)


def _pairs(members: Members, home: str, part: str) -> list[tuple[str, str]]:
    """Picture and depth of each line of a list; the list of test images may be absent."""
    name = home + _LISTS[part]
    if name not in members:
        return []
    with reading(members.where(name), "a list of pairs"):
        rows = list(csv.reader(io.StringIO(members.read(name).decode("utf-8"))))
    found = [tuple(home + field.strip() for field in row) for row in rows if any(row)]
    for number, row in enumerate(found, start=1):
        if len(row) != 2:
            raise DepthError(
                f"{members.where(name)}: line {number} must name a picture and its depth."
            )
    return [(row[0], row[1]) for row in found]


def _name(picture: str) -> str:
    """Scene and number: ``living_room_0038_out/37``."""
    path = PurePosixPath(picture)
    return f"{path.parent.name}/{path.stem}"


class DenseDepthTest:
    """``nyu_test.zip``: the 654 test images of Eigen et al. in three arrays.

    An array in a zip is a stream: images asked for in order are read once, one that lies behind
    costs the way from the start again.

    Args:
        members: The zip, or the folder it was unpacked to.
    """

    has_depth = True

    def __init__(self, members: Members) -> None:
        self.name = members.path.stem
        home = members.home_of(_RGB) or ""
        members.check(home + name for name in (_RGB, _DEPTH, _CROP))
        self._rgb, self._depth, crop = (
            ArrayFile(members, home + name) for name in (_RGB, _DEPTH, _CROP)
        )
        n_images, *shape = self._rgb.shape
        if len(shape) != 3 or shape[-1] != 3 or self._rgb.dtype != "uint8":
            raise DepthError(
                f"{self._rgb.where}: pictures must be bytes of shape (N, H, W, 3); these are "
                f"{self._rgb.dtype}, {self._rgb.shape}."
            )
        if self._depth.shape != (n_images, *shape[:2]):
            raise DepthError(
                f"{self._depth.where}: depth of shape {self._depth.shape} does not fit pictures of "
                f"shape {self._rgb.shape}."
            )
        if crop.shape != (4,):
            raise DepthError(f"{crop.where}: expected four numbers; its shape is {crop.shape}.")
        top, bottom, left, right = (int(crop.read(place)) for place in range(4))
        self.crop = (top, bottom, left, right)
        self.names = tuple(f"{number:04d}" for number in range(n_images))
        self.parts = ["test"] * n_images

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        return Picture(self._rgb.read(index), f"{self._rgb.where} [{index}]")

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        return depth_in_metres(self._depth.read(index), f"{self._depth.where} [{index}]")
