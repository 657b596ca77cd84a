r"""Photographs and depth maps: as files hold them, decoded, and at another size.

Reading bytes and decoding them are two steps: one thread reads in order, and many threads or
processes decode. Everything here goes through pickle and needs no torch.

A depth code :math:`c > 0` stands for :math:`(c + s)\,u / n` metres. The unit :math:`u`, the number
of levels :math:`n` and the shift :math:`s` belong to the set. Code 0 means not measured.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priornet._lazy import need_for
from priornet.depth.images.codes import decompress_codes, decompress_metres
from priornet.messages import InputError

Size = tuple[int, int]
"""Height and width."""

# Grey, indexed and transparent pictures can be read in three colours. Sixteen bits in one channel
# are nearly always a depth map in the wrong place.
_COLOURS = {"RGB", "L", "LA", "P", "PA", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "1"}
_ORIENTATION, _UPRIGHT = 0x0112, 1  # EXIF


class DepthError(InputError):
    """A set of images is missing, damaged or of another kind; the message is one line."""


need = partial(need_for, extra="depth", error=DepthError)


@contextmanager
def reading(where: object, what: str) -> Generator[None]:
    """Turn any error of a library into one line: the file cannot be read as what it should be."""
    try:
        yield
    except (DepthError, MemoryError):
        raise
    except Exception as error:  # each decoder has its own errors for damaged files
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DepthError(f"{where}: this cannot be read as {what}: {reason}") from error


class Encoding(NamedTuple):
    """The meaning of depth codes; the module has the formula.

    Example:
        >>> Encoding(1.0, 256).metres(np.array([[0, 512]], dtype=np.uint16))
        array([[0., 2.]], dtype=float32)
    """

    unit: float
    """Metres of a whole unit."""
    levels: int
    """Codes in a unit."""
    shift: float = 0.0
    """Added to a code: half a level where codes were truncated."""

    def metres(self, codes: NDArray[np.uint8] | NDArray[np.uint16]) -> NDArray[np.float32]:
        """Return the depth of each pixel; 0 where nothing was measured."""
        return _table(self, codes.dtype).take(codes)


@lru_cache(maxsize=16)
def _table(encoding: Encoding, dtype: np.dtype[Any]) -> NDArray[np.float32]:
    """Return the metres of every code, each rounded once."""
    codes = np.arange(np.iinfo(dtype).max + 1, dtype=np.float64)
    table = ((codes + encoding.shift) * encoding.unit / encoding.levels).astype(np.float32)
    table[0] = 0
    return table


NYU_CODES = Encoding(9.99547, 255, 0.5)
"""8-bit codes over the largest depth of the labelled NYU set, truncated."""
TEN_METRE_CODES = Encoding(10.0, 255)
"""DenseDepth's 8-bit training depth: 255 levels over ten metres, of 3.9 cm each."""
MILLIMETRES = Encoding(1.0, 1000)
"""16-bit depth of many indoor sets."""
KITTI = Encoding(1.0, 256)
"""16-bit depth of KITTI's depth completion benchmark."""


def metres(values: NDArray[Any], encoding: Encoding | None) -> NDArray[np.float32]:
    """Convert codes to metres; without an encoding, replace NaN and negative metres by 0."""
    if encoding is not None:
        return encoding.metres(values)
    depth = np.asarray(values, dtype=np.float32)
    return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(0))


@dataclass(frozen=True, eq=False)
class Picture:
    """A photograph: the bytes of its file, or its pixels ``(H, W, 3)``.

    Attributes:
        data: Bytes or pixels.
        where: Its name in error messages.
    """

    data: bytes | NDArray[np.uint8]
    where: str

    def decode(self, *, has_depth: bool = False) -> NDArray[np.uint8]:
        """Return a new array of pixels in three colours, shape ``(H, W, 3)``.

        PNG may have 16 bits a colour; the upper 8 are kept: ``value >> 8``.

        Args:
            has_depth: Whether it comes with a depth map. A photograph that its camera marks as
                turned is then refused, because the map may be turned or not.
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
            if image.getexif().get(_ORIENTATION, _UPRIGHT) != _UPRIGHT:
                if has_depth:
                    raise DepthError(
                        f"{self.where}: the camera marks it as turned (EXIF), and its depth map "
                        "has no such mark; save the picture in the orientation of the depth map, "
                        "without that entry."
                    )
                image = need("PIL.ImageOps", "turn pictures").exif_transpose(image)
            if image.mode in ("P", "PA"):  # its palette may have transparent colours
                image = image.convert("RGBA")
            return np.array(image.convert("RGB"))


def _opened(data: bytes) -> Any:
    """Open a picture file without decoding it."""
    pillow = need("PIL.Image", "decode pictures")
    try:
        return pillow.open(io.BytesIO(data))
    except pillow.UnidentifiedImageError as error:  # its message has an address in memory
        raise ValueError("its format is unknown, or it is damaged") from error


Raw = tuple[NDArray[Any], Encoding | None]


@dataclass(frozen=True, eq=False)
class StoredDepth:
    """A depth map that was read but not decoded.

    Attributes:
        where: Its name in error messages.
        load: Decodes it to codes and their encoding, or to metres and None. Give a module's
            function, with arguments in a ``functools.partial``: a closure cannot be pickled.
    """

    where: str
    load: Callable[[], Raw]

    def raw(self) -> Raw:
        """Return the stored numbers and their encoding; None where they are metres."""
        with reading(self.where, "a depth map"):
            values, encoding = self.load()
        if values.ndim != 2:
            raise DepthError(f"{self.where}: a depth map has two axes; this has {values.ndim}.")
        values = values if encoding is not None else metres(values, None)
        if not values.any():
            raise DepthError(f"{self.where}: no pixel of this depth map holds a measurement.")
        return values, encoding

    def decode(self) -> NDArray[np.float32]:
        """Return metres, shape ``(H, W)``; 0 where nothing was measured."""
        values, encoding = self.raw()
        return values if encoding is None else encoding.metres(values)


def check_shapes(pixels: NDArray[Any], stored: StoredDepth, depth: NDArray[Any]) -> None:
    """Refuse a photograph and a depth map of different shapes.

    Args:
        pixels: The decoded photograph.
        stored: The depth map, for its name.
        depth: The decoded depth map.
    """
    if depth.shape != pixels.shape[:2]:
        raise DepthError(
            f"{stored.where}: depth of {depth.shape[0]} x {depth.shape[1]} pixels for a picture of "
            f"{pixels.shape[0]} x {pixels.shape[1]}."
        )


def depth_file(data: bytes, where: str, encodings: Mapping[int, Encoding]) -> StoredDepth:
    """Return the depth map of a grey PNG; its codes mean what their number of bits says."""
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


def load_compressed(data: bytes, encoding: Encoding | None) -> Raw:
    """Load a depth map of a packed set; without an encoding, it holds metres."""
    return decompress_metres(data) if encoding is None else decompress_codes(data), encoding


def load_metres(values: NDArray[Any]) -> Raw:
    """Load a depth map that is an array of metres, shape ``(H, W)``."""
    return np.ascontiguousarray(values), None


def check_size(size: Size | None) -> None:
    """Refuse a size that no image can have."""
    if size is not None and (len(size) != 2 or min(size) < 1):
        raise DepthError(f"`size` must be a height and a width of at least 1; got {size}.")


def resize_picture(image: NDArray[np.uint8], size: Size | None, *, crop: bool) -> NDArray[np.uint8]:
    """Resize a picture ``(H, W, 3)``; pixels are averaged where it shrinks.

    Args:
        image: The picture.
        size: Height and width of the result.
        crop: Keep the middle, and cut off as little as the new aspect ratio allows; else stretch.
    """
    if size is None or image.shape[:2] == size:
        return image
    pillow = need("PIL.Image", "rescale pictures")
    scaled = pillow.fromarray(np.ascontiguousarray(image)).resize(
        (size[1], size[0]), pillow.Resampling.BILINEAR, box=_window(image.shape[:2], size, crop)
    )
    return np.array(scaled)


def resize_depth(depth: NDArray[Any], size: Size | None, *, crop: bool) -> NDArray[Any]:
    """Resize a depth map to the nearest pixels: the average of two depths may be of no object."""
    if size is None or depth.shape == size:
        return depth
    left, top, right, bottom = _window(depth.shape, size, crop)
    rows = top + (np.arange(size[0]) + 0.5) * (bottom - top) / size[0]
    columns = left + (np.arange(size[1]) + 0.5) * (right - left) / size[1]
    return depth[rows.astype(int)[:, None], columns.astype(int)]


def _window(shape: tuple[int, ...], size: Size, crop: bool) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of the part to keep; they may lie between pixels."""
    height, width = shape
    if not crop:
        return 0.0, 0.0, float(width), float(height)
    scale = min(height / size[0], width / size[1])
    kept_height, kept_width = scale * size[0], scale * size[1]
    left, top = (width - kept_width) / 2, (height - kept_height) / 2
    right, bottom = min(left + kept_width, width), min(top + kept_height, height)
    return max(left, 0.0), max(top, 0.0), right, bottom
