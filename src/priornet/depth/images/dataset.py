"""A set of photographs with depth, in whatever form its files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.depth.images.decoding import DepthError, Picture, Size, StoredDepth, check_size
from priornet.depth.images.workers import (
    EncodedPair,
    Pair,
    batches_by,
    decode_pair,
    decoded,
    default_ahead,
    n_workers,
    stack,
)

Part = Literal["train", "test", "all"]
Missing = Literal["error", "skip"]
"""Whether an image without its depth file is an error, or left out."""
_PARTS = ("train", "test", "all")
Result = TypeVar("Result")


class Source:
    """Images in files of one form. One thread at a time reads them, many decode.

    Attributes:
        name: Name of the set.
        names: Name of each image.
        parts: ``"train"`` or ``"test"`` for each image; None where the set is not divided.
        has_depth: Whether the images have depth.
        crop: First and last row, first and last column that the set's authors score, if they say.
    """

    name: str
    names: Sequence[str]
    parts: Sequence[str] | None = None
    has_depth: bool = True
    crop: tuple[int, int, int, int] | None = None

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        raise NotImplementedError

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        raise NotImplementedError


def rows_of(source: Source, part: Part) -> list[int]:
    """List the images of a part; a set that is not divided is its own test part."""
    if part not in _PARTS:
        raise DepthError(f'unknown part "{part}"; choose one of: {", ".join(_PARTS)}.')
    n_images = len(source.names)
    if source.parts is None:
        if part == "train":
            raise DepthError(
                f"{source.name}: this set is not divided into training and test images, as a "
                'folder of pairs is by its split.csv; only part "all" is there.'
            )
        return list(range(n_images))
    rows = [row for row in range(n_images) if part in ("all", source.parts[row])]
    if not rows:
        raise DepthError(
            f"{source.name}: it has no {part} images; a folder names them in its split.csv, and "
            "test images may be in a set of their own (`test`)."
        )
    return rows


class DepthBatch(NamedTuple):
    """Some images."""

    images: Tensor
    """Bytes, shape ``(B, 3, H, W)``."""
    depth: Tensor | None
    """In metres, shape ``(B, H, W)``; 0 is no measurement. None where the set has no depth."""
    rows: list[int]
    """Their positions in the set."""


class DepthImages:
    """Photographs and the depth of their pixels, read when they are used.

    ``images[:10]`` and ``images[[3, 1]]`` are sets of some of them.

    Args:
        source: Reads them.
        rows: Positions in the source, in order; all by default.

    Attributes:
        name: Name of the set.
        names: Name of each image.
        parts: ``"train"`` or ``"test"`` for each image; None where the set is not divided.
        has_depth: Whether the images have depth.
        crop: First and last row, first and last column that the set's authors score, if they say.
    """

    def __init__(self, source: Source, rows: Sequence[int] | None = None) -> None:
        self._source = source
        self._rows = list(range(len(source.names)) if rows is None else rows)
        self.name, self.has_depth, self.crop = source.name, source.has_depth, source.crop
        self.names = tuple(source.names[row] for row in self._rows)
        parts = source.parts
        self.parts = None if parts is None else tuple(parts[row] for row in self._rows)

    @classmethod
    def of_part(cls, source: Source, part: Part) -> Self:
        """Select the images of a part of a set."""
        return cls(source, rows_of(source, part))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: slice | Sequence[int]) -> Self:
        chosen = self._rows[rows] if isinstance(rows, slice) else [self._rows[row] for row in rows]
        return type(self)(self._source, chosen)

    def __repr__(self) -> str:
        depth = "with" if self.has_depth else "without"
        return f"<{len(self)} images of {self.name} {depth} depth>"

    def picture(self, index: int) -> Picture:
        """Read a photograph without decoding it."""
        return self._source.picture(self._rows[index])

    def stored_depth(self, index: int) -> StoredDepth | None:
        """Read a depth map without decoding it; None if the set has no depth."""
        return self._source.depth(self._rows[index]) if self.has_depth else None

    def image(self, index: int) -> NDArray[np.uint8]:
        """Return a photograph, shape ``(H, W, 3)``."""
        return self.picture(index).decode()

    def depth(self, index: int) -> NDArray[np.float32] | None:
        """Return a depth map in metres, shape ``(H, W)``; 0 is no measurement, None no depth."""
        stored = self.stored_depth(index)
        return None if stored is None else stored.decode()

    def map(
        self,
        function: Callable[[EncodedPair], Result],
        order: Sequence[int] | None = None,
        *,
        workers: int | None = None,
        ahead: int = 64,
        with_depth: bool = True,
    ) -> Generator[Result]:
        """Apply a function to each :class:`Picture` and :class:`StoredDepth`, ahead, in threads.

        Args:
            function: Given a photograph and its depth (or None) as their files hold them.
            order: Positions of the images, in order; all by default.
            workers: Number of threads; one for each processor by default.
            ahead: Number of results that may wait.
            with_depth: Whether to read depth too; without, it is None.
        """
        rows = range(len(self)) if order is None else order
        encoded = (self._encoded(row, with_depth) for row in rows)
        return decoded(encoded, function, workers=n_workers(workers), ahead=ahead)

    def pairs(
        self,
        order: Sequence[int] | None = None,
        *,
        size: Size | None = None,
        crop: bool = False,
        workers: int | None = None,
        ahead: int = 64,
        with_depth: bool = True,
    ) -> Iterator[Pair]:
        """Yield photographs and depth one after the other, decoded ahead by threads.

        Args:
            order: Positions of the images, in order; all by default.
            size: Height and width of the result; None to keep their own.
            crop: Whether to cut to the aspect ratio of ``size`` first, as for images of another
                set, rather than to stretch.
            workers: Threads that decode; one for each processor by default.
            ahead: Number of pairs that may wait.
            with_depth: Whether to read depth too; without, it is None.
        """
        check_size(size)
        decode = partial(decode_pair, size=size, crop=crop)
        return self.map(decode, order, workers=workers, ahead=ahead, with_depth=with_depth)

    def tensors(
        self,
        size: Size | None = None,
        *,
        crop: bool = False,
        workers: int | None = None,
        dtype: torch.dtype = torch.float32,
        with_depth: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Return all images: bytes ``(N, 3, H, W)``, and depth in metres ``(N, H, W)`` if any.

        Args:
            size: Height and width; by default their own, which must then be the same for all.
            crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
            workers: Threads that decode; one for each processor by default.
            dtype: Of the depth. Half precision keeps 11 bits: 8 mm at 10 m, 6 cm at 65 m.
            with_depth: Whether to read depth too; without, it is None.
        """
        if not len(self):
            raise DepthError(f"{self.name}: there are no images to read.")
        pairs = self.pairs(size=size, crop=crop, workers=workers, with_depth=with_depth)
        images, depth = self._stacked(pairs, range(len(self)), dtype)
        return images, None if depth is None else depth.to(dtype)

    def batches(
        self,
        batch: int,
        *,
        order: Sequence[int] | None = None,
        size: Size | None = None,
        crop: bool = False,
        workers: int | Executor | None = None,
        dtype: torch.dtype = torch.float32,
        ahead: int | None = None,
    ) -> Generator[DepthBatch]:
        """Yield some images at a time, decoded ahead: for sets that do not fit into memory.

        Where training waits for images, use processes, and keep them over epochs:
        ``concurrent.futures.ProcessPoolExecutor(8, multiprocessing.get_context("spawn"))``. Closing
        or dropping the iterator ends early: images that no process has begun are not decoded.

        Args:
            batch: Number of images; the last batch may have fewer.
            order: Positions of the images, in order; all by default.
            size: Height and width; by default their own, which must then be the same in a batch.
            crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
            workers: Threads that decode, one for each processor by default; or an open executor.
            dtype: Of the depth.
            ahead: Batches that may wait; by default 4, or 2 for each process.
        """
        if batch < 1:
            raise ValueError(f"`batch` must be at least 1; got {batch}.")
        check_size(size)
        rows = list(range(len(self)) if order is None else order)
        chunks = [rows[start : start + batch] for start in range(0, len(rows), batch)]
        if isinstance(workers, Executor):
            ahead = default_ahead(workers) if ahead is None else ahead
            encoded = ([self._encoded(row, True) for row in chunk] for chunk in chunks)
            found = batches_by(workers, encoded, size=size, crop=crop, ahead=ahead)
        else:
            ahead = (4 if ahead is None else ahead) * batch
            pairs = self.pairs(rows, size=size, crop=crop, workers=workers, ahead=ahead)
            found = (self._stacked(pairs, chunk, dtype) for chunk in chunks)
        return _named(found, chunks, dtype)

    def _encoded(self, row: int, with_depth: bool) -> EncodedPair:
        """Read a photograph and its depth as their files hold them."""
        return self.picture(row), self.stored_depth(row) if with_depth else None

    def _stacked(
        self, pairs: Iterator[Pair], rows: Sequence[int], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor | None]:
        """Stack the next images, one for each row, as tensors."""
        kind = np.float16 if dtype == torch.float16 else np.float32  # half of the memory
        images, depth = stack(pairs, len(rows), lambda at: self.picture(rows[at]).where, kind)
        return torch.from_numpy(images), None if depth is None else torch.from_numpy(depth)


def _named(
    batches: Generator[tuple[Tensor, Tensor | None]], chunks: list[list[int]], dtype: torch.dtype
) -> Generator[DepthBatch]:
    """Yield batches with the positions of their images."""
    with closing(batches):
        for rows, (images, depth) in zip(chunks, batches, strict=True):
            yield DepthBatch(images, None if depth is None else depth.to(dtype), rows)


@dataclass(frozen=True)
class Description:
    """A set of images in a few numbers.

    Attributes:
        name: Name of the set.
        n_images: Number of images.
        parts: Number of images of each part; empty where the set is not divided.
        sizes: Number of images of each height and width.
        depth_range: Least and largest depth in metres; None without depth.
        depth_mean: Mean over the measured pixels of all images; None without depth.
        valid_share: Share of all pixels that have a measurement; None without depth.
    """

    name: str
    n_images: int
    parts: dict[str, int]
    sizes: dict[tuple[int, int], int]
    depth_range: tuple[float, float] | None
    depth_mean: float | None
    valid_share: float | None


def describe(images: DepthImages, *, workers: int | None = None) -> Description:
    """Describe a set; every pixel is decoded, one image after the other.

    Args:
        images: The set.
        workers: Threads that decode; one for each processor by default.

    Raises:
        DepthError: A file is damaged or missing; the message names it.
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
