"""NYU Depth v2: DenseDepth's two archives, and the official labelled set.

``nyu_data.zip`` (training) and ``nyu_test.zip`` (scoring) of Alhashim and Wonka, "High Quality
Monocular Depth Estimation via Transfer Learning", 2018, are read from the zip, or from
the folder that it was unpacked to.

``nyu_depth_v2_labeled.mat`` of Silberman, Hoiem, Kohli and Fergus, "Indoor Segmentation and Support
Inference from RGBD Images", 2012, is in MATLAB's version 7.3: HDF5 with all axes in the opposite
order, pictures ``(N, 3, W, H)`` and depth in metres ``(N, W, H)``, missing depth filled in.
"""

from __future__ import annotations

import csv
import io
import math
import weakref
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from priornet.depth.images.decoding import (
    MILLIMETRES,
    TEN_METRE_CODES,
    DepthError,
    Encoding,
    Picture,
    StoredDepth,
    depth_file,
    depth_in_metres,
    need,
    reading,
)
from priornet.depth.images.image_folders import Members

_LISTS = {"train": "data/nyu2_train.csv", "test": "data/nyu2_test.csv"}
# Training depth has 8 bits over ten metres; validation depth has 16, in millimetres.
_ENCODINGS = {8: TEN_METRE_CODES, 16: MILLIMETRES}
_RGB, _DEPTH, _CROP = (f"eigen_test_{what}.npy" for what in ("rgb", "depth", "crop"))

N_IMAGES = 1449
"""Images of the labelled set: 795 for training, 654 for tests."""
# A bit for each image in the order of the release, 1 for test: ``splits.mat`` of the set's authors.
_IS_TEST = (
    "c087c81fffe601be001e1fe000000e0fbc8000e003bf1fffffc3f01c00000040010383f801fc0738"
    "0ffe00033ff00001fc38003c0007e0ff0007cff80000001fbffc38e00e3fffe03e03c03e18f800fc"
    "1861c31f9f87cce07f8c1f3c030003ffffffe001f07c0e00fffc70fc0e00000000700e071e00e003"
    "ce7f8003e0f0700e01c60198c0003ff1ff7f780e3fe301fffc7e673f01f0fff1f07ce003c7ff803f"
    "0ffee7f06000f3f038f0198001fe7f83fc0f0780ff80"
)


def is_dense_depth_data(members: Members) -> bool:
    """Tell if this is ``nyu_data.zip``."""
    return members.home_of(_LISTS["train"]) is not None


def is_dense_depth_test(members: Members) -> bool:
    """Tell if this is ``nyu_test.zip``."""
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
        pictures = (PurePosixPath(picture) for picture, _ in self._pairs)
        # Scene and number: ``living_room_0038_out/37``.
        self.names = tuple(f"{path.parent.name}/{path.stem}" for path in pictures)
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
    """Read picture and depth of each line of a list; the list of test images may be absent."""
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


class DenseDepthTest:
    """``nyu_test.zip``: the 654 test images of Eigen et al. in three arrays.

    An array in a zip is a stream: images in order are read once, and an earlier image costs the
    way from the start again.

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


class ArrayFile:
    """A ``.npy`` file in a folder or a zip, of which single rows are read.

    Args:
        members: The folder or the zip.
        name: Name of the file in it.

    Attributes:
        where: Its name in error messages.
        shape: Shape of the array.
        dtype: Type of its numbers.
    """

    def __init__(self, members: Members, name: str) -> None:
        self.where = members.where(name)
        self._file = members.open(name)
        weakref.finalize(self, self._file.close)
        with reading(self.where, "a NumPy array"):
            version = npy.read_magic(self._file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, is_fortran, self.dtype = header(self._file)
        if is_fortran and len(self.shape) > 1:
            raise DepthError(f"{self.where}: arrays in the order of Fortran are not supported.")
        if self.dtype.hasobject or not self.shape:
            raise DepthError(f"{self.where}: this array does not hold rows of numbers.")
        self._start = self._file.tell()
        self._row = math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(self, index: int) -> NDArray[Any]:
        """Read a row; cheap in order, because a stream in a zip goes forward only."""
        with reading(self.where, "a NumPy array"):
            self._file.seek(self._start + index * self._row)
            data = self._file.read(self._row)
        if len(data) != self._row:
            raise DepthError(f"{self.where}: the file ends before row {index}.")
        return np.frombuffer(data, self.dtype).reshape(self.shape[1:])


class LabelledMat:
    """The labelled set, one image read at a time; all 1449 images have the official division.

    Args:
        path: The file.
    """

    crop = None
    has_depth = True

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.stem, path
        h5py = need("h5py", "read MATLAB files")
        with reading(path, "a MATLAB file of version 7.3"):
            self._file = h5py.File(path, "r")
        self._images, self._depths = self._dataset("images"), self._dataset("depths")
        n_images, *shape = self._images.shape
        if len(shape) != 3 or shape[0] != 3 or self._images.dtype != np.uint8:
            raise DepthError(
                f"{path}: `images` must hold bytes of shape (N, 3, W, H); it holds "
                f"{self._images.dtype}, {self._images.shape}."
            )
        if self._depths.shape != (n_images, *shape[1:]):
            raise DepthError(
                f"{path}: `depths` of shape {self._depths.shape} does not fit `images` of shape "
                f"{self._images.shape}."
            )
        self.names = tuple(f"{number:04d}" for number in range(n_images))
        self.parts: Sequence[str] | None = nyu_parts() if n_images == N_IMAGES else None

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        where = f"{self._path}: images [{index}]"
        with reading(where, "a picture"):
            pixels = self._images[index].transpose(2, 1, 0)  # (H, W, 3)
        return Picture(np.ascontiguousarray(pixels), where)

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        where = f"{self._path}: depths [{index}]"
        with reading(where, "a depth map"):
            values = self._depths[index].T
        return depth_in_metres(values, where)

    def _dataset(self, name: str) -> Any:
        with reading(self._path, "a MATLAB file of version 7.3"):
            found = self._file.get(name)
        if not hasattr(found, "dtype"):  # a group has none
            raise DepthError(f"{self._path}: it has no array `{name}`; is it the labelled set?")
        return found


def nyu_parts() -> list[str]:
    """Return ``"train"`` or ``"test"`` for each image of the labelled set.

    Example:
        >>> nyu_parts()[:3]
        ['test', 'test', 'train']
    """
    bits = "".join(f"{byte:08b}" for byte in bytes.fromhex(_IS_TEST))
    return ["test" if bit == "1" else "train" for bit in bits[:N_IMAGES]]
