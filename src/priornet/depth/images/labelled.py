"""The official labelled set of NYU Depth v2, ``nyu_depth_v2_labeled.mat``.

Silberman, Hoiem, Kohli and Fergus, "Indoor Segmentation and Support Inference from RGBD Images",
2012. MATLAB wrote it in its version 7.3, which is HDF5 with all axes in the opposite order:
pictures ``(N, 3, W, H)``, depth in metres ``(N, W, H)`` with holes filled. One image is read at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from priornet.depth.images.decoding import Picture, StoredDepth, depth_in_metres
from priornet.depth.images.errors import DepthError, need, reading
from priornet.depth.images.nyu_split import N_IMAGES, nyu_parts

__all__ = ["LabelledMat"]


class LabelledMat:
    """A labelled set in a file; the whole set of 1449 images has the official division.

    Args:
        path: The file.
    """

    crop = None
    has_depth = True

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.stem, path
        h5py = need("h5py", "read MATLAB files")
        with reading(path, "a MATLAB file of version 7.3"):
            self._file = h5py.File(path, "r")
        self._images, self._depths = self._dataset("images"), self._dataset("depths")
        n_images, *shape = self._images.shape
        if len(shape) != 3 or shape[0] != 3 or self._images.dtype != np.uint8:
            raise DepthError(
                f"{path}: `images` must hold bytes of shape (N, 3, W, H); it holds "
                f"{self._images.dtype}, {self._images.shape}."
            )
        if self._depths.shape != (n_images, *shape[1:]):
            raise DepthError(
                f"{path}: `depths` of shape {self._depths.shape} does not fit `images` of shape "
                f"{self._images.shape}."
            )
        self.names = tuple(f"{number:04d}" for number in range(n_images))
        self.parts: Sequence[str] | None = nyu_parts() if n_images == N_IMAGES else None

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        where = f"{self._path}: images [{index}]"
        with reading(where, "a picture"):
            pixels = self._images[index].transpose(2, 1, 0)  # (H, W, 3)
        return Picture(np.ascontiguousarray(pixels), where)

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        where = f"{self._path}: depths [{index}]"
        with reading(where, "a depth map"):
            values = self._depths[index].T
        return depth_in_metres(values, where)

    def _dataset(self, name: str) -> Any:
        with reading(self._path, "a MATLAB file of version 7.3"):
            found = self._file.get(name)
        if not hasattr(found, "dtype"):  # a group has none
            raise DepthError(f"{self._path}: it has no array `{name}`; is it the labelled set?")
        return found
