"""Sets in one file, in the form of their authors: NYU Depth v2 and LSUN.

``nyu_data.zip`` (training) and ``nyu_test.zip`` (scoring) of Alhashim and Wonka, "High Quality
Monocular Depth Estimation via Transfer Learning", 2018, are read from the zip, or from
the folder that it was unpacked to.

``nyu_depth_v2_labeled.mat`` of Silberman, Hoiem, Kohli and Fergus, "Indoor Segmentation and Support
Inference from RGBD Images", 2012, is in MATLAB's version 7.3: HDF5 with all axes in the opposite
order, pictures ``(N, 3, W, H)`` and depth in metres ``(N, W, H)``, missing depth filled in.

A category of LSUN is an LMDB with one encoded picture a key (Yu et al., "LSUN: Construction of a
Large-scale Image Dataset using Deep Learning with Humans in the Loop", 2015). There is no depth:
its images serve as out-of-domain ones.
"""

from __future__ import annotations

import csv
import io
import math
import weakref
import zipfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from priornet.depth.images.dataset import Source
from priornet.depth.images.decoding import (
    MILLIMETRES,
    TEN_METRE_CODES,
    DepthError,
    Encoding,
    Picture,
    StoredDepth,
    depth_file,
    load_metres,
    need,
    reading,
)

TRAIN_LIST, _TEST_LIST = "data/nyu2_train.csv", "data/nyu2_test.csv"
"""The list of training pairs in ``nyu_data.zip``."""
TEST_PICTURES = "eigen_test_rgb.npy"
"""The pictures in ``nyu_test.zip``."""
# Training depth has 8 bits over ten metres; validation depth has 16, in millimetres.
_ENCODINGS: dict[int, Encoding] = {8: TEN_METRE_CODES, 16: MILLIMETRES}
# A process may open one LMDB once at a time only; opening it costs little.
_ONE_AT_A_TIME = Lock()

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


class Members:
    """The files of a zip or a folder; a zip is opened once and never unpacked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = None
        if not path.is_dir():
            with reading(path, "a zip"):
                self._zip = zipfile.ZipFile(path)
        self._names = None if self._zip is None else frozenset(self._zip.namelist())

    def where(self, name: str) -> str:
        """Return a file's name in error messages."""
        return str(self.path / name) if self._zip is None else f"{self.path}: {name}"

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file() if self._names is None else name in self._names

    def check(self, names: Iterable[str]) -> None:
        """Refuse a set of which a file is missing."""
        for name in names:
            if name not in self:
                raise DepthError(f"{self.where(name)}: this file is missing.")

    def home_of(self, ending: str) -> str | None:
        """Find the folder, with its slash, of a name with this ending; None if there is none.

        An archive may hold everything in a folder of its own.
        """
        if ending in self:
            return ""
        if self._names is None:
            return None
        found = [name for name in self._names if name.endswith(f"/{ending}")]
        return min(found, key=len).removesuffix(ending) if found else None

    def read(self, name: str) -> bytes:
        """Read a file; in a zip, check it against its checksum."""
        with reading(self.where(name), "a file"):
            return (self.path / name).read_bytes() if self._zip is None else self._zip.read(name)

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read it piece by piece."""
        with reading(self.where(name), "a file"):
            return (self.path / name).open("rb") if self._zip is None else self._zip.open(name)


class DenseDepthData(Source):
    """``nyu_data.zip``, or its folder: two lists of pairs, JPEG or PNG pictures, PNG depth."""

    def __init__(self, path: Path) -> None:
        self.name, self._members = path.stem, Members(path)
        home = self._members.home_of(TRAIN_LIST) or ""
        self._members.check([home + TRAIN_LIST])
        train, test = (_pairs(self._members, home, name) for name in (TRAIN_LIST, _TEST_LIST))
        self._pairs, self.parts = train + test, ["train"] * len(train) + ["test"] * len(test)
        pictures = (PurePosixPath(picture) for picture, _ in self._pairs)
        # Scene and number: ``living_room_0038_out/37``.
        self.names = tuple(f"{path.parent.name}/{path.stem}" for path in pictures)
        self._members.check(file for pair in self._pairs for file in pair)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        name = self._pairs[index][0]
        return Picture(self._members.read(name), self._members.where(name))

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        name = self._pairs[index][1]
        return depth_file(self._members.read(name), self._members.where(name), _ENCODINGS)


def _pairs(members: Members, home: str, name: str) -> list[tuple[str, str]]:
    """Read picture and depth of each line of a list; the list of test images may be absent."""
    name = home + name
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


class ArrayFile:
    """A ``.npy`` file in a folder or a zip, of which single rows are read.

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


class _MatArray:
    """An array of a MATLAB file, with its axes turned back; attributes as of :class:`ArrayFile`."""

    def __init__(self, path: Path, file: Any, name: str) -> None:
        self.where = f"{path}: {name}"
        with reading(path, "a MATLAB file of version 7.3"):
            self._found: Any = file.get(name)
        if not hasattr(self._found, "dtype"):  # a group has none
            raise DepthError(f"{path}: it has no array `{name}`; is it the labelled set?")
        n_rows, *shape = self._found.shape
        self.shape, self.dtype = (n_rows, *reversed(shape)), self._found.dtype

    def read(self, index: int) -> NDArray[Any]:
        """Read a row."""
        with reading(f"{self.where} [{index}]", "an array"):
            return np.ascontiguousarray(self._found[index].T)


class ArraySource(Source):
    """Rows of two arrays: pictures ``(N, H, W, 3)`` and depth in metres ``(N, H, W)``."""

    def __init__(
        self,
        name: str,
        pictures: ArrayFile | _MatArray,
        depths: ArrayFile | _MatArray,
        parts: Sequence[str] | None,
        crop: tuple[int, int, int, int] | None = None,
    ) -> None:
        n_images, *shape = pictures.shape
        if len(shape) != 3 or shape[-1] != 3 or pictures.dtype != np.uint8:
            raise DepthError(
                f"{pictures.where}: pictures must be bytes of shape (N, H, W, 3); these are "
                f"{pictures.dtype}, {pictures.shape}."
            )
        if depths.shape != (n_images, *shape[:2]):
            raise DepthError(
                f"{depths.where}: depth of shape {depths.shape} does not fit pictures of shape "
                f"{pictures.shape}."
            )
        self.name, self.parts, self.crop = name, parts, crop
        self.names = tuple(f"{number:04d}" for number in range(n_images))
        self._pictures, self._depths = pictures, depths

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        return Picture(self._pictures.read(index), f"{self._pictures.where} [{index}]")

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        where, values = f"{self._depths.where} [{index}]", self._depths.read(index)
        return StoredDepth(where, partial(load_metres, values))


def open_dense_depth_test(path: Path) -> ArraySource:
    """Open ``nyu_test.zip``, or its folder: the 654 test images of Eigen et al. in three arrays.

    An array in a zip is a stream: images in order are read once, and an earlier image costs the
    way from the start again.
    """
    members = Members(path)
    home = members.home_of(TEST_PICTURES) or ""
    names = [home + TEST_PICTURES.replace("rgb", what) for what in ("rgb", "depth", "crop")]
    members.check(names)
    pictures, depths, crop = (ArrayFile(members, name) for name in names)
    if crop.shape != (4,):
        raise DepthError(f"{crop.where}: expected four numbers; its shape is {crop.shape}.")
    top, bottom, left, right = (int(crop.read(place)) for place in range(4))
    parts = ["test"] * pictures.shape[0]
    return ArraySource(path.stem, pictures, depths, parts, (top, bottom, left, right))


def open_labelled(path: Path) -> ArraySource:
    """Open the labelled set; all 1449 images have the official division."""
    h5py = need("h5py", "read MATLAB files")
    with reading(path, "a MATLAB file of version 7.3"):
        file = h5py.File(path, "r")
    pictures, depths = (_MatArray(path, file, name) for name in ("images", "depths"))
    parts = nyu_parts() if pictures.shape[0] == N_IMAGES else None
    return ArraySource(path.stem, pictures, depths, parts)


def nyu_parts() -> list[str]:
    """Return ``"train"`` or ``"test"`` for each image of the labelled set."""
    bits = "".join(f"{byte:08b}" for byte in bytes.fromhex(_IS_TEST))
    return ["test" if bit == "1" else "train" for bit in bits[:N_IMAGES]]


class LsunLmdb(Source):
    """An LMDB of LSUN (its folder, or ``data.mdb``): pictures in the order of their keys."""

    has_depth = False

    def __init__(self, path: Path) -> None:
        self._path = path.parent if path.name == "data.mdb" else path
        self.name = self._path.resolve().name
        with self._transaction() as transaction:
            keys = list(transaction.cursor().iternext(keys=True, values=False))
        if not keys:
            raise DepthError(f"{self._path}: this LMDB is empty.")
        self._keys: list[bytes] = keys
        self.names = tuple(key.decode("utf-8", "backslashreplace") for key in keys)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        with self._transaction() as transaction:
            data = bytes(transaction.get(self._keys[index]))
        return Picture(data, f"{self._path}: {self.names[index]}")

    @contextmanager
    def _transaction(self) -> Generator[Any]:
        lmdb = need("lmdb", "read LSUN's LMDB files")
        is_folder = self._path.is_dir()
        with _ONE_AT_A_TIME, reading(self._path, "an LMDB"):
            environment = lmdb.open(
                str(self._path), subdir=is_folder, readonly=True, lock=False, readahead=False
            )
            with environment:
                self._check_whole(environment)
                with environment.begin() as transaction:
                    yield transaction

    def _check_whole(self, environment: Any) -> None:
        """Refuse a truncated file: reading past its end would kill the process."""
        file = self._path / "data.mdb" if self._path.is_dir() else self._path
        needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        if file.stat().st_size < needed:
            raise DepthError(
                f"{file}: it is truncated, {file.stat().st_size} of {needed} bytes are there."
            )
