"""KITTI: pictures of the raw drives, depth of the depth completion benchmark, and a split list.

Geiger et al. 2013; Uhrig et al. 2017 for the depth, 16 bits with 256 levels a metre. A split list
has one picture a line, in any of the common forms of Eigen et al.'s split:

- ``DATE/DRIVE/image_02/data/FRAME.png  DRIVE/proj_depth/groundtruth/image_02/FRAME.png  721.5``
  (picture, depth or ``None``, focal length);
- ``DATE/DRIVE  FRAME  l`` (``l`` is camera 2, ``r`` camera 3);
- ``DATE/DRIVE/image_02/data/FRAME.jpg  DATE/DRIVE/image_03/data/FRAME.jpg`` (a stereo pair, whose
  first picture is used).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from priornet.depth.images.dataset import Missing, Part
from priornet.depth.images.decoding import KITTI, DepthError, reading
from priornet.depth.images.image_folders import FileSource

_DATE = re.compile(r"\d{4}_\d{2}_\d{2}")
_CAMERAS = {"l": "image_02", "r": "image_03", "2": "image_02", "3": "image_03"}
# Folders in which the two archives are commonly unpacked side by side.
_PICTURE_HOMES = ("", "raw", "raw_data", "kitti_raw")
_DEPTH_HOMES = tuple(
    home + part
    for home in ("", "data_depth_annotated/", "depth/", "depth_completion/")
    for part in ("train", "val", "")
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
    """Open the frames of a split list, with their depth.

    Args:
        path: The folder with the raw drives and the depth.
        part: Which list: the one in ``path`` whose name says ``train`` or ``test``; both for all.
        split: The list itself, or another folder with lists.
        missing: Whether a frame without a depth file is an error, or left out. The benchmark has
            no depth for the first and last frames of a drive, and for 45 of Eigen's 697 test
            images. A frame with ``None`` in the list is left out in either case.
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


def _frames(file: Path) -> Iterable[_Frame]:
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
