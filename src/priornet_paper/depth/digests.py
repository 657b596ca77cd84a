"""Short names for what is in files and images, the same wherever they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from priornet.depth import DepthImages, Picture, StoredDepth, check_shapes

__all__ = ["digest", "digest_of", "same_digests"]

_LENGTH = 12
_AHEAD = 32  # images that wait in memory: of KITTI's size, 90 MB


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
