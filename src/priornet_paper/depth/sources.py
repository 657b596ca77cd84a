"""Where images lie, and digests of what is in them: the same wherever they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from priornet.depth import (
    DepthError,
    DepthImages,
    Picture,
    StoredDepth,
    check_shapes,
    is_kitti,
    is_pair_folder,
    open_depth,
)
from priornet_paper.depth.config import Config

__all__ = ["Sources", "digest", "digest_of", "find_sources", "named_paths", "same_digests"]

_LENGTH = 12
_AHEAD = 32  # images that wait in memory: of KITTI's size, 90 MB
# The names of files and folders begin like this, by the name of the set.
_NAMES = {"nyu": "nyu", "kitti": "kitti", "lsun_bedroom": "lsun"}


@dataclass(frozen=True)
class Sources:
    """Where things are."""

    own: Path
    """The set that is learnt."""
    foreign: dict[str, Path] = field(default_factory=dict[str, Path])
    """Other sets by name: ``kitti`` or ``nyu``, ``lsun_bedroom``."""
    test: Path | None = None
    """Its test images, where they are elsewhere, as in DenseDepth's two zips."""
    weights: str | None = "imagenet"
    """ImageNet weights of the encoder: a file, ``"imagenet"`` for the package's, None for none."""
    split: Path | None = None
    """Split list of raw KITTI drives, or a folder with lists; None where it lies beside them."""
    missing: Literal["error", "skip"] = "error"
    """Whether a picture without its depth file is an error, or left out."""

    def open(self, path: Path, part: Literal["train", "test", "all"]) -> DepthImages:
        """A part of one of the sets; nothing is decoded."""
        return open_depth(path, part, split=self.split, missing=self.missing)

    def other(self, config: Config) -> str:
        """The set that NWPN takes its out-of-domain training images from."""
        return "kitti" if config.dataset == "nyu" else "nyu"


def named_paths(given: Sequence[str]) -> dict[str, Path]:
    """Sets of a command line, each as ``NAME=PATH``.

    Example:
        >>> list(named_paths(["church=photos/church"]))
        ['church']
    """
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ValueError(f'--foreign must be NAME=PATH; got "{text}".')
        if name in ("train", "train_images", "test", "weights"):
            raise ValueError(f'--foreign: a set cannot be called "{name}".')
        found[name] = Path(path)
    return found


def find_sources(
    data: Path,
    dataset: str,
    foreign: dict[str, Path] | None = None,
    test: Path | None = None,
    weights: str | None = None,
    split: Path | None = None,
    missing: Literal["error", "skip"] = "error",
) -> Sources:
    """Where the sets of an experiment are.

    Args:
        data: The set itself, in any form that ``open_depth`` knows; or a folder with several sets,
            one file or folder each, whose names begin with nyu, kitti and lsun.
        dataset: What is learnt.
        foreign: Other sets by name, beside those found in ``data``.
        test: Its test images, if they are not in ``data``.
        weights: ImageNet weights of the encoder.
        split: Split list of raw KITTI drives.
        missing: Whether a picture without its depth file is an error, or left out.
    """
    if not data.exists():
        raise DepthError(f"{data}: there is no such file or folder.")
    if dataset in (foreign or {}):
        raise DepthError(f"{dataset} is what is learnt: call the foreign set by another name.")
    found = _sets_in(data)
    own = found.pop(dataset, data if not found else None)
    if own is None:
        raise DepthError(f"{data}: nothing in it begins with {dataset}; found {', '.join(found)}.")
    return Sources(own, found | (foreign or {}), test, weights, split, missing)


def _sets_in(data: Path) -> dict[str, Path]:
    """Sets in a folder by name; none where it is a set itself, whatever its parts are called."""
    if not data.is_dir() or is_pair_folder(data):
        return {}
    fitting = {
        name: sorted(path for path in data.iterdir() if path.name.startswith(start))
        for name, start in _NAMES.items()
    }
    fitting = {name: paths for name, paths in fitting.items() if paths}
    if fitting.keys() <= {"kitti"} and is_kitti(data) and any(data.glob("*.txt")):
        return {}  # drives in a folder "kitti_raw", say, and their lists beside it
    for name, paths in fitting.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise DepthError(
                f"{data}: which of these is {name}? {names} (name the sets one by one: what is "
                "learnt, its test images, foreign ones)"
            )
    return {name: path for name, (path,) in fitting.items()}


# -- digests --------------------------------------------------------------------------------------


def digest(*pieces: Any) -> str:
    """Of bytes, one after the other."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()[:_LENGTH]


def digest_of(
    images: DepthImages,
    *,
    with_depth: bool = True,
    n_whole: int | None = None,
    check: bool = False,
) -> str:
    """Of the names of images, and of what is in all of them, or in the first.

    Args:
        images: Read one after the other, so that few are in memory at a time.
        with_depth: Whether depth counts.
        n_whole: How many images are read; all by default.
        check: Whether to decode the photographs too, which refuses damaged ones. The digest is the
            same: it is of their bytes.

    Raises:
        DepthError: An image is damaged; it is named.
    """
    found = hashlib.sha256("\n".join(images.names).encode("utf-8", "surrogateescape"))
    n_read = len(images) if n_whole is None else min(n_whole, len(images))
    contents = partial(_contents, check=check)
    for content in images.map(contents, range(n_read), ahead=_AHEAD, with_depth=with_depth):
        found.update(content)
    return found.hexdigest()[:_LENGTH]


def same_digests(known: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether results are of these images and weights.

    Results from before there was a digest of all training images are compared by the one that they
    have, of the names of all and what is in the first.

    Args:
        known: Of the results.
        asked: Of the images and weights.

    Example:
        >>> same_digests({"train": "a"}, {"train": "a", "train_images": "b"})
        True
    """
    compared = {n: value for n, value in asked.items() if n in known or n != "train_images"}
    return known == compared


def _contents(encoded: tuple[Picture, StoredDepth | None], *, check: bool) -> bytes:
    """Of a photograph its file, of depth its metres."""
    picture, stored = encoded
    content = picture.data if isinstance(picture.data, bytes) else picture.data.tobytes()
    depth = None if stored is None else stored.decode()
    if check:
        pixels = picture.decode(has_depth=stored is not None)
        if stored is not None and depth is not None:
            check_shapes(pixels, stored, depth)
    return content if depth is None else content + depth.tobytes()
