"""Pictures and depth maps as they lie in files, and what they decode to.

Reading bytes and decoding them are two steps, so that one thread can read in order and many can
decode. What was read goes through pickle, so that these may be in other processes, which need no
torch.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.depth.images.codes import decompress_codes, decompress_metres
from priornet.depth.images.encoding import Encoding, metres
from priornet.depth.images.errors import DepthError, need, reading

__all__ = [
    "Picture",
    "Raw",
    "StoredDepth",
    "check_shapes",
    "compressed_depth",
    "depth_file",
    "depth_in_metres",
]

Raw = tuple[NDArray[Any], Encoding | None]

# Grey, indexed and transparent pictures have one sensible reading in three colours. Sixteen bits in
# one channel do not: that is nearly always a depth map in the wrong place.
_COLOURS = {"RGB", "L", "LA", "P", "PA", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "1"}


@dataclass(frozen=True, eq=False)
class Picture:
    """A photograph: the bytes of its file, or its pixels ``(H, W, 3)``.

    Attributes:
        data: Bytes or pixels.
        where: What errors call it.
    """

    data: bytes | NDArray[np.uint8]
    where: str

    def decode(self, *, has_depth: bool = False) -> NDArray[np.uint8]:
        """Pixels in three colours, shape ``(H, W, 3)``, for the caller to keep and change.

        Of 16 bits a colour, as PNG may have, the upper 8 are kept: ``value >> 8``.

        Args:
            has_depth: Whether a depth map lies on it. One from a camera that was turned is then
                refused: nobody can tell whether the map was turned as well.
        """
        if not isinstance(self.data, bytes):
            return self.data.copy()
        with reading(self.where, "a picture"), _opened(self.data) as image:
            if image.mode not in _COLOURS:
                raise DepthError(
                    f"{self.where}: a picture of mode {image.mode} is not a photograph with 8 bits "
                    "a colour; is it a depth map?"
                )
            image.load()
            if _is_turned(image):
                if has_depth:
                    raise DepthError(
                        f"{self.where}: its camera was turned (EXIF), which its depth map does not "
                        "say: save the picture as it lies on the depth map, without that entry."
                    )
                image = need("PIL.ImageOps", "turn pictures").exif_transpose(image)
            return np.array(_in_colour(image))


def _opened(data: bytes) -> Any:
    """A picture file, not decoded yet."""
    pillow = need("PIL.Image", "decode pictures")
    try:
        return pillow.open(io.BytesIO(data))
    except pillow.UnidentifiedImageError as error:  # it names the place in memory
        raise ValueError("it is in no format that is known, or damaged") from error


def _in_colour(image: Any) -> Any:
    """In three colours; of what is transparent, the colour that lies there."""
    if image.mode in ("P", "PA"):  # a palette may say how transparent each of its colours is
        image = image.convert("RGBA")
    return image.convert("RGB")


def _is_turned(image: Any) -> bool:
    """Whether its camera says that it was not held upright."""
    return image.getexif().get(0x0112, 1) != 1


@dataclass(frozen=True, eq=False)
class StoredDepth:
    """A depth map that is read but not decoded.

    Attributes:
        where: What errors call it.
        load: Decodes it: codes and what they mean, or metres and None. A function of a module, with
            its arguments in a ``functools.partial``, goes through pickle; a closure does not.
    """

    where: str
    load: Callable[[], Raw]

    def raw(self) -> Raw:
        """The numbers as they are kept, and what they mean; None where they are metres."""
        with reading(self.where, "a depth map"):
            values, encoding = self.load()
        if values.ndim != 2:
            raise DepthError(f"{self.where}: a depth map has two axes; this has {values.ndim}.")
        values = values if encoding is not None else metres(values, None)
        if not values.any():
            raise DepthError(f"{self.where}: no pixel of this depth map holds a measurement.")
        return values, encoding

    def decode(self) -> NDArray[np.float32]:
        """Metres, shape ``(H, W)``; 0 where nothing was measured."""
        values, encoding = self.raw()
        return values if encoding is None else encoding.metres(values)


def check_shapes(pixels: NDArray[Any], stored: StoredDepth, depth: NDArray[Any]) -> None:
    """Refuse a photograph and a depth map of different shapes.

    Args:
        pixels: What was decoded of the photograph.
        stored: The depth map, for its name.
        depth: What was decoded of it.
    """
    if depth.shape != pixels.shape[:2]:
        raise DepthError(
            f"{stored.where}: depth of {depth.shape[0]} x {depth.shape[1]} pixels for a picture of "
            f"{pixels.shape[0]} x {pixels.shape[1]}."
        )


def depth_file(data: bytes, where: str, encodings: Mapping[int, Encoding]) -> StoredDepth:
    """A depth map in a grey PNG.

    Args:
        data: The bytes of the file.
        where: What errors call it.
        encodings: What codes mean, by the number of bits (8, 16) that a code has.
    """
    return StoredDepth(where, partial(_load_file, data, where, encodings))


def _load_file(data: bytes, where: str, encodings: Mapping[int, Encoding]) -> Raw:
    with _opened(data) as image:
        image.load()
        # Older versions of Pillow widen 16 bits to 32 when they open a PNG.
        bits = {"L": 8, "I;16": 16, "I;16B": 16, "I": 16}.get(image.mode, 0)
        if bits not in encodings:
            wanted = " or ".join(str(known) for known in sorted(encodings))
            raise DepthError(
                f"{where}: depth must be a grey PNG of {wanted} bits; this has mode {image.mode}."
            )
        return np.asarray(image).astype(f"u{bits // 8}", copy=False), encodings[bits]


def compressed_depth(data: bytes, where: str, encoding: Encoding | None) -> StoredDepth:
    """A depth map as packed files have it.

    Args:
        data: The bytes.
        where: What errors call it.
        encoding: What codes mean; None where they are metres.
    """
    return StoredDepth(where, partial(_decompress, data, encoding))


def _decompress(data: bytes, encoding: Encoding | None) -> Raw:
    return decompress_metres(data) if encoding is None else decompress_codes(data), encoding


def depth_in_metres(values: NDArray[Any], where: str) -> StoredDepth:
    """A depth map that is not encoded.

    Args:
        values: Metres, shape ``(H, W)``.
        where: What errors call it.
    """
    return StoredDepth(where, partial(_as_they_are, values))


def _as_they_are(values: NDArray[Any]) -> Raw:
    return np.ascontiguousarray(values), None
