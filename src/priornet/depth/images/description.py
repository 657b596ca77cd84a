"""A set of images in a few numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from priornet.depth.images.dataset import DepthImages

__all__ = ["Description", "describe"]


@dataclass(frozen=True)
class Description:
    """What is in a set of images.

    Attributes:
        name: What the set is called.
        n_images: How many.
        parts: How many images of each part; empty where the set is not divided.
        sizes: How many images of each height and width.
        depth_range: Least and largest depth in metres; None without depth.
        depth_mean: Mean over the measured pixels of all images; None without depth.
        valid_share: Part of all pixels that have a measurement; None without depth.
    """

    name: str
    n_images: int
    parts: dict[str, int]
    sizes: dict[tuple[int, int], int]
    depth_range: tuple[float, float] | None
    depth_mean: float | None
    valid_share: float | None


def describe(images: DepthImages, *, workers: int | None = None) -> Description:
    """Look at every pixel of a set, one image after the other.

    Args:
        images: The set.
        workers: Threads that decode; one for each processor by default.

    Raises:
        DepthError: A file that is damaged or missing, by its name.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    n_pixels, n_valid, total = 0, 0, 0.0
    least, largest = np.inf, -np.inf
    for image, depth in images.pairs(workers=workers):
        sizes[image.shape[0], image.shape[1]] += 1
        if depth is None:
            continue
        valid = depth[depth > 0]
        n_pixels, n_valid = n_pixels + depth.size, n_valid + valid.size
        total += float(valid.sum(dtype=np.float64))
        least, largest = min(least, float(valid.min())), max(largest, float(valid.max()))
    has_depth = n_valid > 0
    return Description(
        name=images.name,
        n_images=len(images),
        parts=dict(Counter(images.parts or ())),
        sizes=dict(sizes),
        depth_range=(float(least), float(largest)) if has_depth else None,
        depth_mean=total / n_valid if has_depth else None,
        valid_share=n_valid / n_pixels if has_depth else None,
    )
