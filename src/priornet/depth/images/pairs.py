"""From what lies in files to arrays of one shape, in a thread or in a process of its own.

Nothing here needs torch, so that a process that decodes is there soon and takes little memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from priornet.depth.images.decoding import Picture, StoredDepth, check_shapes
from priornet.depth.images.errors import DepthError
from priornet.depth.images.resize import Size, resize_depth, resize_picture

__all__ = ["EncodedPair", "Left", "Pair", "Sent", "decode_batch", "decode_pair", "even"]

EncodedPair = tuple[Picture, StoredDepth | None]
Pair = tuple[NDArray[np.uint8], NDArray[np.float32] | None]


class Left(NamedTuple):
    """An array that a process has left in a file for another one, which removes the file."""

    path: str
    shape: tuple[int, ...]
    dtype: str


Sent = NDArray[Any] | Left


def decode_pair(encoded: EncodedPair, *, size: Size | None, crop: bool) -> Pair:
    """A photograph ``(H, W, 3)`` and its depth ``(H, W)``, if it has one.

    Args:
        encoded: Both as they lie in their files.
        size: Height and width to bring them to.
        crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
    """
    picture, stored = encoded
    image, depth = picture.decode(has_depth=stored is not None), None
    if stored is not None:
        depth = stored.decode()
        check_shapes(image, stored, depth)
    if size is not None:
        image = resize_picture(image, size, crop=crop)
        depth = None if depth is None else resize_depth(depth, size, crop=crop)
    return image, depth


def even(pairs: Iterable[Pair], where: Callable[[int], str]) -> Iterator[Pair]:
    """Pass pairs on, and refuse one whose size is not that of the first.

    Args:
        pairs: Photographs and depth.
        where: What errors call the photograph at a place.
    """
    shape = None
    for place, (image, depth) in enumerate(pairs):
        shape = image.shape[:2] if shape is None else shape
        if image.shape[:2] != shape:
            raise DepthError(
                f"{where(place)}: {image.shape[0]} x {image.shape[1]} pixels, where those before "
                f"it have {shape[0]} x {shape[1]}; give a `size` to bring all images to."
            )
        yield image, depth


def decode_batch(
    encoded: Sequence[EncodedPair], *, size: Size | None, crop: bool, folder: str | None
) -> tuple[Sent, Sent | None]:
    """Photographs ``(B, 3, H, W)`` and depth ``(B, H, W)``, for another process to take.

    Args:
        encoded: As they lie in their files; either all with depth or none.
        size: Height and width to bring them to.
        crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
        folder: In shared memory, where the arrays are left; without one they are returned.
    """
    decoded = (decode_pair(pair, size=size, crop=crop) for pair in encoded)
    images, depth = np.empty(0, np.uint8), None
    for place, (image, metres) in enumerate(even(decoded, lambda at: encoded[at][0].where)):
        if place == 0:
            images = np.empty((len(encoded), 3, *image.shape[:2]), np.uint8)
            if metres is not None:
                depth = np.empty((len(encoded), *image.shape[:2]), np.float32)
        images[place] = image.transpose(2, 0, 1)
        if depth is not None and metres is not None:
            depth[place] = metres
    return _sent(images, folder), None if depth is None else _sent(depth, folder)


def _sent(array: NDArray[Any], folder: str | None) -> Sent:
    """Leave an array in a folder, or give it back where that cannot be: it is sent as it is."""
    if folder is None:
        return array
    path = os.path.join(folder, uuid4().hex)
    try:
        with open(path, "xb") as file:
            file.write(array.data)
    except OSError:  # shared memory is full, or another machine's, or nobody waits any more
        Path(path).unlink(missing_ok=True)
        return array
    return Left(path, array.shape, array.dtype.str)
