"""Pictures and depth maps at another size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet.depth.images.errors import DepthError, need

__all__ = ["Size", "check_size", "prepare_foreign", "resize_depth", "resize_picture"]

Size = tuple[int, int]
"""Height and width."""


def check_size(size: Size) -> None:
    """Refuse a size that no image can have."""
    if len(size) != 2 or min(size) < 1:
        raise DepthError(f"`size` must be a height and a width of at least 1; got {size}.")


def prepare_foreign(image: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """Give a picture from elsewhere the shape of our own: cut its middle out, then rescale.

    Args:
        image: Shape ``(H, W, 3)``.
        size: Height and width to give it. What is cut off is the least that brings the aspect
            ratio about.

    Returns:
        Shape ``(*size, 3)``.
    """
    if image.ndim != 3 or image.shape[-1] != 3 or image.dtype != np.uint8:
        raise DepthError(
            f"`image` must hold bytes of shape (H, W, 3); got {image.dtype}, {image.shape}."
        )
    return resize_picture(image, size, crop=True)


def resize_picture(image: NDArray[np.uint8], size: Size, *, crop: bool) -> NDArray[np.uint8]:
    """A picture at another size, averaged where it shrinks.

    Args:
        image: Shape ``(H, W, 3)``.
        size: Height and width.
        crop: Whether to cut to the aspect ratio, rather than to stretch.
    """
    check_size(size)
    if image.shape[:2] == size:
        return image
    pillow = need("PIL.Image", "rescale pictures")
    left, top, right, bottom = _window(image.shape[:2], size, crop)
    scaled = pillow.fromarray(np.ascontiguousarray(image)).resize(
        (size[1], size[0]), pillow.Resampling.BILINEAR, box=(left, top, right, bottom)
    )
    return np.array(scaled)


def resize_depth(depth: NDArray[Any], size: Size, *, crop: bool) -> NDArray[Any]:
    """A depth map at another size: each pixel that of the nearest one, for depths do not mix."""
    check_size(size)
    if depth.shape == size:
        return depth
    left, top, right, bottom = _window(depth.shape, size, crop)
    rows = top + (np.arange(size[0]) + 0.5) * (bottom - top) / size[0]
    columns = left + (np.arange(size[1]) + 0.5) * (right - left) / size[1]
    return depth[rows.astype(int)[:, None], columns.astype(int)]


def _window(shape: tuple[int, ...], size: Size, crop: bool) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what is kept; it need not end between pixels."""
    height, width = shape
    if not crop:
        return 0.0, 0.0, float(width), float(height)
    scale = min(height / size[0], width / size[1])
    kept_height, kept_width = scale * size[0], scale * size[1]
    left, top = (width - kept_width) / 2, (height - kept_height) / 2
    return (
        max(left, 0.0),
        max(top, 0.0),
        min(left + kept_width, width),
        min(top + kept_height, height),
    )
