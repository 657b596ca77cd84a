"""Sets whose images are files of their own: pairs, plain photographs, and KITTI.

**Pairs** are a folder ``rgb/`` with ``depth/`` beside it. People keep the 289 road images of KITTI
as such a folder. The authors published no depth for the road set's own test images, so some
training images must serve. Neighbours on a drive show the same street twenty metres on, so every
n-th image would be a test on streets that were learnt. The last 17 images of each category are the
test images instead: then only three of them border on a training image.

**KITTI** has pictures of the raw drives, depth of the depth completion benchmark (16 bits with 256
levels a metre), and a split list (Geiger et al. 2013; Uhrig et al. 2017). A split list has one
picture a line, in any of the common forms of Eigen et al.'s split:

- ``DATE/DRIVE/image_02/data/FRAME.png  DRIVE/proj_depth/groundtruth/image_02/FRAME.png  721.5``
  (picture, depth or ``None``, focal length);
- ``DATE/DRIVE  FRAME  l`` (``l`` is camera 2, ``r`` camera 3);
- ``DATE/DRIVE/image_02/data/FRAME.jpg  DATE/DRIVE/image_03/data/FRAME.jpg`` (a stereo pair, whose
  first picture is used).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from priornet.depth.images.dataset import Missing, Part, Source
from priornet.depth.images.decoding import (
    KITTI,
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
_DATE = re.compile(r"\d{4}_\d{2}_\d{2}")
_CAMERAS = {"l": "image_02", "r": "image_03", "2": "image_02", "3": "image_03"}
# Folders in which the two archives are commonly unpacked side by side.
_PICTURE_HOMES = ("", "raw", "raw_data", "kitti_raw")
_DEPTH_HOMES = tuple(
    home + part
    for home in ("", "data_depth_annotated/", "depth/", "depth_completion/")
    for part in ("train", "val", "")
)


class FileSource(Source):
    """Pictures in files of their own, by the names of their images, and depth maps in others."""

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


class _Frame(NamedTuple):
    name: str
    picture: str
    depth: str | None


def is_kitti(path: Path) -> bool:
    """Tell if a folder holds raw drives."""
    return any(
        _DATE.fullmatch(folder.name)
        for home in _PICTURE_HOMES
        if (path / home).is_dir()
        for folder in (path / home).iterdir()
    )


def open_kitti(
    path: Path, part: Part, split: Path | None = None, missing: Missing = "error"
) -> FileSource:
    """Open the frames of the split list whose name says ``train`` or ``test``, with their depth.

    ``split`` names the list itself, or another folder with lists. The benchmark has no depth for
    the first and last frames of a drive, and for 45 of Eigen's 697 test images: ``missing`` leaves
    these out, or is an error. A frame with ``None`` in the list is left out in either case.
    """
    pictures: dict[str, Path] = {}
    depths: list[Path] = []
    parts: list[str] = []
    for which, file in _lists(path, part, split):
        for frame in _frames(file):
            depth = None if frame.depth is None else _find(path, _DEPTH_HOMES, [frame.depth])
            if depth is None:
                if frame.depth is None or missing == "skip":
                    continue
                raise DepthError(
                    f"{path / frame.depth}: this depth file of {file.name} is missing; with "
                    '`missing="skip"` such frames are left out.'
                )
            spellings = [frame.picture, str(PurePosixPath(frame.picture).with_suffix(".jpg"))]
            picture = _find(path, _PICTURE_HOMES, spellings)
            if picture is None:
                raise DepthError(f"{path / frame.picture}: this picture is missing.")
            if frame.name not in pictures:
                pictures[frame.name] = picture
                depths.append(depth)
                parts.append(which)
    if not pictures:
        raise DepthError(f"{path}: none of the listed frames has depth.")
    return FileSource(path.resolve().name, pictures, depths, parts=parts, encodings={16: KITTI})


def _lists(path: Path, part: Part, split: Path | None) -> list[tuple[str, Path]]:
    """Return the split lists to read, each with the part of its frames."""
    if split is not None and not split.is_dir():
        if not split.is_file():
            raise DepthError(f"{split}: there is no such split list.")
        return [("test" if part == "test" else "train", split)]
    folder = path if split is None else split
    wanted = ("train", "test") if part == "all" else (part,)
    return [(which, _only(folder, which)) for which in wanted]


def _only(folder: Path, part: str) -> Path:
    files = sorted(file for file in folder.glob("*.txt") if part in file.name.lower())
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise DepthError(
            f"{folder}: expected one split list, a .txt file with {part} in its name; found "
            f"{found}. Name the list with `split`."
        )
    return files[0]


def _frames(file: Path) -> Iterator[_Frame]:
    with reading(file, "a split list"):
        lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if fields:
            try:
                yield _frame(fields)
            except ValueError as error:
                raise DepthError(f"{file}: line {number} names no frame: {line!r}") from error


def _frame(fields: Sequence[str]) -> _Frame:
    """Parse a line; raise ValueError if it names no frame."""
    first = PurePosixPath(fields[0])
    if len(fields) == 3 and fields[2] in _CAMERAS:
        _, drive = first.parts
        camera, frame = _CAMERAS[fields[2]], f"{int(fields[1]):010d}"
        picture = str(first / camera / "data" / f"{frame}.png")
    else:
        _, drive, camera, _, _ = first.parts
        frame, picture = f"{int(first.stem):010d}", str(first)
    depth: str | None = f"{drive}/proj_depth/groundtruth/{camera}/{frame}.png"
    if len(fields) > 1 and fields[1] == "None":
        depth = None
    elif len(fields) > 1 and "proj_depth" in fields[1]:
        depth = fields[1]
    return _Frame(f"{drive}/{camera}/{frame}", picture, depth)


def _find(path: Path, homes: Sequence[str], spellings: Sequence[str]) -> Path | None:
    candidates = (path / home / spelling for home in homes for spelling in spellings)
    return next((file for file in candidates if file.is_file()), None)
