"""Sets in folders: ``rgb/`` with ``depth/`` beside it, and plain folders of photographs."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from priornet.depth.images.decoding import Picture, StoredDepth, depth_file
from priornet.depth.images.encoding import MILLIMETRES, NYU_CODES, Encoding
from priornet.depth.images.errors import DepthError, reading
from priornet.depth.images.road import is_kitti_road, kitti_road_parts
from priornet.depth.images.source import Missing

__all__ = [
    "ENDINGS",
    "FileSource",
    "is_pair_folder",
    "is_picture",
    "open_image_folder",
    "open_pair_folder",
    "picture_files",
]

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm")
"""Of the names of pictures."""
_ENCODINGS = {8: NYU_CODES, 16: MILLIMETRES}


class FileSource:
    """Pictures in files of their own, and depth maps in others.

    Args:
        name: What the set is called.
        pictures: The files by the names of their images.
        depths: Files with depth, one for each picture; None for none.
        parts: ``"train"`` or ``"test"`` for each image.
        encodings: What codes of depth mean, by their number of bits.
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

    @property
    def has_depth(self) -> bool:
        """Whether there are files with depth."""
        return bool(self._depths)

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
    """Whether a folder has the form that :func:`open_pair_folder` reads."""
    return (path / "rgb").is_dir()


def open_pair_folder(path: Path, missing: Missing = "error") -> FileSource:
    """A folder with ``rgb/NAME.jpg`` and ``depth/NAME.png``; without ``depth/``, a set without.

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
    """The depth files of images by their names, of those that have one."""
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
    """All pictures in a folder and in those below it, or one picture, without depth."""
    if is_picture(path):
        return FileSource(path.stem, {path.name: path})
    files = {str(file.relative_to(path)): file for file in picture_files(path)}
    if not files:
        raise DepthError(f"{path}: this folder holds no pictures.")
    return FileSource(path.resolve().name, files)


def picture_files(path: Path) -> list[Path]:
    """Pictures in a folder and in those below it, sorted; hidden files are left alone."""
    return sorted(
        file for file in path.rglob("*") if is_picture(file) and not file.name.startswith(".")
    )


def is_picture(path: Path) -> bool:
    """Whether this is a file that is called as pictures are."""
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
