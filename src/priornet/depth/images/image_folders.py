"""Sets in folders: ``rgb/`` with ``depth/`` beside it, and plain folders of photographs.

Beside them: files of a folder or a zip under the same names, and the division of KITTI's 289 road
images, which people keep as such a folder. The authors published no depth for the road set's own
test images, so some training images must serve. Neighbours on a drive show the same street twenty
metres on, so every n-th image would be a test on streets that were learnt. The last 17 images of
each category are the test images instead: then only three of them border on a training image.
"""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from priornet.depth.images.dataset import Missing
from priornet.depth.images.decoding import (
    MILLIMETRES,
    NYU_CODES,
    DepthError,
    Encoding,
    Picture,
    StoredDepth,
    depth_file,
    reading,
)

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm")
"""Endings of the names of pictures."""
_ENCODINGS = {8: NYU_CODES, 16: MILLIMETRES}
_ROAD_COUNTS, _N_ROAD_TEST = {"um": 95, "umm": 96, "uu": 98}, 17
_ROAD_NAME = re.compile(r"(um|umm|uu)_\d{6}")

KITTI_ROAD_TEST: tuple[str, ...] = tuple(
    f"{category}_{number:06d}"
    for category, n_images in _ROAD_COUNTS.items()
    for number in range(n_images - _N_ROAD_TEST, n_images)
)
"""The 51 test images: the last 17 of each of ``um``, ``umm`` and ``uu``."""


class Members:
    """The files of a zip or a folder; a zip is opened once and never unpacked.

    Args:
        path: The zip or the folder.
    """

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


class FileSource:
    """Pictures in files of their own, and depth maps in others.

    Args:
        name: Name of the set.
        pictures: The files by the names of their images.
        depths: Files with depth, one for each picture; None for none.
        parts: ``"train"`` or ``"test"`` for each image.
        encodings: The meaning of depth codes, by their number of bits.
    """

    crop = None

    def __init__(
        self,
        name: str,
        pictures: Mapping[str, Path],
        depths: Sequence[Path] | None = None,
        *,
        parts: Sequence[str] | None = None,
        encodings: Mapping[int, Encoding] | None = None,
    ) -> None:
        self.name, self.names, self.parts = name, tuple(pictures), parts
        self._pictures, self._depths = tuple(pictures.values()), tuple(depths or ())
        self._encodings = encodings or {}
        self.has_depth = bool(self._depths)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        path = self._pictures[index]
        with reading(path, "a file"):
            return Picture(path.read_bytes(), str(path))

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        path = self._depths[index]
        with reading(path, "a file"):
            return depth_file(path.read_bytes(), str(path), self._encodings)


def is_pair_folder(path: Path) -> bool:
    """Tell if a folder has the form that :func:`open_pair_folder` reads."""
    return (path / "rgb").is_dir()


def open_pair_folder(path: Path, missing: Missing = "error") -> FileSource:
    """Open a folder with ``rgb/NAME.jpg`` and ``depth/NAME.png``; ``depth/`` may be absent.

    An 8-bit depth is a code as in the labelled NYU set, a 16-bit depth is in millimetres. A file
    ``split.csv`` with the columns ``index`` and ``split`` divides the set; the road images of KITTI
    are divided by ``KITTI_ROAD_TEST``.

    Args:
        path: The folder.
        missing: Whether a picture without a depth file is an error, or left out.
    """
    pictures = _by_stem(picture_files(path / "rgb"))
    if not pictures:
        raise DepthError(f"{path / 'rgb'}: this folder holds no pictures.")
    parts = _parts(path, tuple(pictures))
    depths = None
    if (path / "depth").is_dir():
        found = _depth_files(path / "depth", list(pictures), missing)
        parts = parts and [
            part for name, part in zip(pictures, parts, strict=True) if name in found
        ]
        pictures = {name: pictures[name] for name in found}
        depths = list(found.values())
    return FileSource(path.resolve().name, pictures, depths, parts=parts, encodings=_ENCODINGS)


def _depth_files(folder: Path, names: Sequence[str], missing: Missing) -> dict[str, Path]:
    """Return the depth files that exist, by the names of their images."""
    there = set(folder.iterdir())
    wanted = {name: folder / f"{name}.png" for name in names}
    absent = next((file for file in wanted.values() if file not in there), None)
    if absent is not None and missing == "error":
        other = next((file.name for file in sorted(there) if file.stem == absent.stem), None)
        found = "" if other is None else f" ({other} is there, but depth is read from .png)"
        raise DepthError(
            f'{absent}: this depth file is missing{found}; with `missing="skip"` such images are '
            "left out."
        )
    kept = {name: file for name, file in wanted.items() if file in there}
    if not kept:
        raise DepthError(f"{folder}: no picture has its depth here.")
    return kept


def open_image_folder(path: Path) -> FileSource:
    """Open all pictures in a folder and below it, or one picture, without depth."""
    if is_picture(path):
        return FileSource(path.stem, {path.name: path})
    files = {str(file.relative_to(path)): file for file in picture_files(path)}
    if not files:
        raise DepthError(f"{path}: this folder holds no pictures.")
    return FileSource(path.resolve().name, files)


def picture_files(path: Path) -> list[Path]:
    """List the pictures in a folder and below it, sorted, without hidden files."""
    return sorted(
        file for file in path.rglob("*") if is_picture(file) and not file.name.startswith(".")
    )


def is_picture(path: Path) -> bool:
    """Tell if a path is a file whose name ends like a picture's."""
    return path.suffix.lower() in ENDINGS and path.is_file()


def _by_stem(files: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in files:
        if file.stem in found:
            raise DepthError(f"{file}: {found[file.stem]} has the same name.")
        found[file.stem] = file
    return found


def _parts(path: Path, names: Sequence[str]) -> list[str] | None:
    if (path / "split.csv").is_file():
        return _listed_parts(path / "split.csv", names)
    return kitti_road_parts(names) if is_kitti_road(names) else None


def _listed_parts(path: Path, names: Sequence[str]) -> list[str]:
    with reading(path, "a CSV file"), path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        missing = {"index", "split"} - set(rows.fieldnames or ())
        if missing:
            raise DepthError(f'{path}: it has no column "{min(missing)}".')
        listed = {row["index"]: row["split"] for row in rows}
    for name, part in listed.items():
        if part not in ("train", "test"):
            raise DepthError(f'{path}: {name} belongs to "{part}"; expected train or test.')
    for name in names:
        if name not in listed:
            raise DepthError(f"{path}: {name} is not listed.")
    absent = next(iter(listed.keys() - set(names)), None)
    if absent is not None:
        raise DepthError(f"{path.parent / 'rgb' / absent}: {path.name} lists it, it is missing.")
    return [listed[name] for name in names]


def is_kitti_road(names: Sequence[str]) -> bool:
    """Tell if these are the names of KITTI's road images."""
    return bool(names) and all(_ROAD_NAME.fullmatch(name) for name in names)


def kitti_road_parts(names: Sequence[str]) -> list[str]:
    """Return ``"train"`` or ``"test"`` for each road image."""
    test = set(KITTI_ROAD_TEST)
    return ["test" if name in test else "train" for name in names]


def last_of_each_category(names: Sequence[str], share: float) -> list[int]:
    """Select the last road images of ``um``, ``umm`` and ``uu``, as ``KITTI_ROAD_TEST`` does.

    Args:
        names: Names of road images.
        share: Share of each category to select.

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
