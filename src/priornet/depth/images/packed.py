"""A set of images in one small file, which a machine needs only NumPy and Pillow to read.

It is a zip without further compression: the bytes of the picture files, the depth of each image
compressed without loss, and an index, ``set.json``.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from priornet.depth.images.archives import Members
from priornet.depth.images.codes import compress_codes, compress_metres
from priornet.depth.images.dataset import DepthImages, Source
from priornet.depth.images.decoding import (
    DepthError,
    Encoding,
    Picture,
    Raw,
    Size,
    StoredDepth,
    check_shapes,
    check_size,
    load_compressed,
    metres,
    need,
    reading,
    resize_depth,
    resize_picture,
)
from priornet.depth.images.workers import EncodedPair
from priornet.writing import whole_file

INDEX = "set.json"
"""The index in a packed set."""
_FORMAT, _VERSION = "priornet depth images", 1
_MOST_CODES = (1 << 16) - 1

Pressed = tuple[bytes, bytes | None, Encoding | None]
"""The bytes to write of a picture and of its depth, and the meaning of the depth's codes."""


def pack(
    images: DepthImages,
    path: str | Path,
    *,
    size: Size | None = None,
    quality: int | None = None,
    step: float | None = None,
    workers: int | None = None,
) -> None:
    """Write a set to one file that ``open_depth`` reads.

    By default the file is lossless: pictures keep the bytes of their files (arrays of pixels become
    PNG), and depth codes are compressed. Each option makes the file smaller and loses something.

    Args:
        images: The set; its division into training and test is kept.
        path: The file to write; it appears when it is complete.
        size: Height and width of the images in the file; None to keep their own.
        quality: Makes pictures WebP of this quality, 0 to 100.
        step: Rounds depth to multiples of this, in metres: for sets with depth in metres rather
            than codes, which does not compress well.
        workers: Threads that compress; one for each processor by default.
    """
    check_size(size)
    if quality is not None and not 0 <= quality <= 100:
        raise ValueError(f"`quality` must be between 0 and 100; got {quality}.")
    if step is not None and not step > 0:
        raise ValueError(f"`step` must be positive; got {step}.")
    path = Path(path)
    with reading(path.parent, "a folder to write to"), os.scandir(path.parent):
        pass
    press = partial(_press, size=size, quality=quality, step=step)
    with whole_file(path) as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as file:
        _write(file, images, images.map(press, workers=workers))


def _write(file: zipfile.ZipFile, images: DepthImages, pressed: Iterable[Pressed]) -> None:
    """Write pictures and depth, and then the index."""
    encodings: list[Encoding | None] = []
    for row, (picture, depth, encoding) in enumerate(pressed):
        file.writestr(_member("picture", row), picture)
        if depth is not None:
            file.writestr(_member("depth", row), depth)
            encodings.append(encoding)
    kinds = sorted({encoding for encoding in encodings if encoding is not None})
    index = {
        "format": _FORMAT,
        "version": _VERSION,
        "name": images.name,
        "names": images.names,
        "parts": images.parts,
        "crop": images.crop,
        "encodings": kinds,
        # -1: in metres
        "depth": [-1 if e is None else kinds.index(e) for e in encodings] or None,
    }
    file.writestr(INDEX, json.dumps(index), zipfile.ZIP_DEFLATED)


def _member(what: str, row: int) -> str:
    return f"{what}/{row:06d}"


def _press(
    stored: EncodedPair, *, size: Size | None, quality: int | None, step: float | None
) -> Pressed:
    picture, depth = stored
    # Decode even if the bytes are kept: a packed set has no damaged pictures.
    pixels = picture.decode(has_depth=depth is not None)
    data = picture.data
    if not isinstance(data, bytes) or quality is not None or size is not None:
        data = _encoded(resize_picture(pixels, size, crop=False), quality)
    if depth is None:
        return data, None, None
    values, encoding = depth.raw()
    check_shapes(pixels, depth, values)
    values = resize_depth(values, size, crop=False)
    if step is not None:
        values, encoding = _rounded(metres(values, encoding), step, depth.where)
    if encoding is None:
        return data, compress_metres(values), None
    return data, compress_codes(values), encoding


def _encoded(pixels: NDArray[np.uint8], quality: int | None) -> bytes:
    pillow, file = need("PIL.Image", "encode pictures"), io.BytesIO()
    image = pillow.fromarray(np.ascontiguousarray(pixels))
    if quality is None:
        image.save(file, "PNG", optimize=True)
    else:
        image.save(file, "WEBP", quality=quality, method=6)
    return file.getvalue()


def _rounded(depth: NDArray[np.float32], step: float, where: str) -> Raw:
    codes = np.rint(depth / step)
    if codes.max() > _MOST_CODES:
        raise DepthError(f"{where}: {depth.max():.1f} m in steps of {step} m does not fit 16 bits.")
    codes = np.where(depth > 0, np.maximum(codes, 1), 0)  # a measurement stays one
    return codes.astype(np.uint16), Encoding(step, 1)


class PackedFile(Source):
    """A set that :func:`pack` wrote."""

    def __init__(self, path: Path) -> None:
        self._members = Members(path)
        self._members.check([INDEX])
        where = self._members.where(INDEX)
        with reading(where, "the index of a packed set"):
            index = json.loads(self._members.read(INDEX))
            if index["format"] != _FORMAT:
                raise DepthError(f"{where}: this is not the index of a packed set.")
            if index["version"] != _VERSION:
                raise DepthError(
                    f"{where}: version {index['version']} of the form is not known; this priornet "
                    f"knows version {_VERSION}."
                )
            self.name: str = index["name"]
            self.names = tuple(str(name) for name in index["names"])
            self.parts = index["parts"]
            self.crop = None if index["crop"] is None else tuple(index["crop"])
            kinds = [Encoding(*encoding) for encoding in index["encodings"]]
            self._encodings = [None if e < 0 else kinds[e] for e in index["depth"] or ()]
        self.has_depth = bool(self._encodings)
        whats = ("picture", "depth") if self.has_depth else ("picture",)
        rows = range(len(self.names))
        self._members.check(_member(what, row) for what in whats for row in rows)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        return Picture(self._members.read(_member("picture", index)), self._where(index))

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        data = self._members.read(_member("depth", index))
        return StoredDepth(
            self._where(index), partial(load_compressed, data, self._encodings[index])
        )

    def _where(self, index: int) -> str:
        return f"{self._members.path}: {self.names[index]}"
