"""Recognise the form of a set of images from its path, and open it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from priornet.depth.images.archives import (
    TEST_PICTURES,
    TRAIN_LIST,
    DenseDepthData,
    LsunLmdb,
    Members,
    open_dense_depth_test,
    open_labelled,
)
from priornet.depth.images.dataset import DepthImages, Missing, Part, Source
from priornet.depth.images.decoding import DepthError, reading
from priornet.depth.images.image_folders import (
    ENDINGS,
    is_kitti,
    is_pair_folder,
    is_picture,
    open_image_folder,
    open_kitti,
    open_pair_folder,
    picture_files,
)
from priornet.depth.images.packed import INDEX, PackedFile

_READERS: dict[str, Callable[[Path], Source]] = {
    "dense-depth": DenseDepthData,
    "dense-depth-test": open_dense_depth_test,
    "labelled": open_labelled,
    "lsun": LsunLmdb,
    "images": open_image_folder,
    "packed": PackedFile,
}
KINDS: tuple[str, ...] = ("pairs", *_READERS, "kitti")
"""The forms that :func:`open_depth` reads."""


def open_depth(
    path: str | Path,
    part: Part = "all",
    kind: str | None = None,
    *,
    split: str | Path | None = None,
    missing: Missing = "error",
) -> DepthImages:
    """Open a set of images, with its depth if it has any.

    ===================== ==========================================================================
    ``pairs``             a folder with ``rgb/`` and ``depth/`` (16 bits: millimetres, 8 bits: codes
                          as in the labelled NYU set), and perhaps ``split.csv``
    ``dense-depth``       DenseDepth's ``nyu_data.zip``, or the folder it was unpacked to
    ``dense-depth-test``  DenseDepth's ``nyu_test.zip``, likewise
    ``labelled``          the official labelled NYU set, a ``.mat`` file of version 7.3
    ``kitti``             raw KITTI drives, depth of the completion benchmark, split lists
    ``lsun``              an LMDB of LSUN, without depth
    ``images``            a folder of photographs, or one, without depth
    ``packed``            a file that ``pack`` wrote
    ===================== ==========================================================================

    Args:
        path: The file or folder; files are read, and images decoded, when they are used.
        part: ``"train"``, ``"test"`` or ``"all"``. A set that is not divided is all test.
        kind: The form; recognised by default.
        split: A split list or a folder with lists, for ``kitti``.
        missing: For ``pairs`` and ``kitti``: skip images without their depth file, or refuse them.

    Raises:
        DepthError: The path is missing, or its content is of no known form, or damaged.
    """
    path = Path(path)
    if not path.exists():
        raise DepthError(f"{path}: there is no such file or folder.")
    kind = _recognised(path) if kind is None else kind
    lists = None if split is None else Path(split)
    return DepthImages.of_part(_source(path, kind, part, lists, missing), part)


def _source(path: Path, kind: str, part: Part, split: Path | None, missing: Missing) -> Source:
    if kind == "kitti":
        return open_kitti(path, part, split, missing)
    if kind == "pairs":
        return open_pair_folder(path, missing)
    if kind not in _READERS:
        raise DepthError(f'unknown kind "{kind}"; choose one of: {", ".join(KINDS)}.')
    return _READERS[kind](path)


def _recognised(path: Path) -> str:
    """Return the form of a set, which its names tell."""
    if path.is_dir():
        return _kind_of_folder(path)
    if path.name == "data.mdb":
        return "lsun"
    if path.suffix.lower() == ".mat":
        return "labelled"
    if is_picture(path):
        return "images"
    with reading(path, "a file"), path.open("rb") as file:
        is_zip = file.read(2) == b"PK"  # a truncated one still begins so
    if not is_zip and path.suffix.lower() != ".zip":
        raise DepthError(
            f"{path}: this is no set of images, or damaged; expected a picture "
            f"({', '.join(ENDINGS)}), a folder of pictures, a .zip of DenseDepth, a .mat file of "
            "NYU, an LMDB of LSUN, or what `pack` writes."
        )
    kind = _kind_of_members(path)
    if kind is None:
        raise DepthError(
            f"{path}: this zip is neither DenseDepth's nyu_data.zip (it would hold "
            f"{TRAIN_LIST}) nor its nyu_test.zip ({TEST_PICTURES}), nor a packed set."
        )
    return kind


def _kind_of_members(path: Path) -> str | None:
    """Recognise what is read alike from a zip and from a folder."""
    members = Members(path)
    if INDEX in members:
        return "packed"
    if members.home_of(TRAIN_LIST) is not None:
        return "dense-depth"
    return None if members.home_of(TEST_PICTURES) is None else "dense-depth-test"


def _kind_of_folder(path: Path) -> str:
    if is_pair_folder(path):
        return "pairs"
    if (path / "data.mdb").is_file():
        return "lsun"
    kind = _kind_of_members(path)
    if kind is not None:
        return kind
    if is_kitti(path):
        return "kitti"
    several = sorted(folder.name for folder in path.iterdir() if is_pair_folder(folder))
    if several:
        raise DepthError(f"{path}: which of the sets in it? {', '.join(several)}")
    if picture_files(path):
        return "images"
    raise DepthError(
        f"{path}: this folder holds no images in a form that is known; pictures end in "
        f"{', '.join(ENDINGS)}."
    )
