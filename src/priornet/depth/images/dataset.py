"""A set of photographs with depth, whatever form it came in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from itertools import islice
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.depth.images.ahead import decoded, n_workers
from priornet.depth.images.decoding import Picture, StoredDepth
from priornet.depth.images.errors import DepthError
from priornet.depth.images.executor import batches_by, usual_ahead
from priornet.depth.images.pairs import EncodedPair, Pair, decode_pair, even
from priornet.depth.images.resize import Size, check_size
from priornet.depth.images.source import Part, Source, rows_of

__all__ = ["DepthBatch", "DepthImages"]


class DepthBatch(NamedTuple):
    """Some images."""

    images: Tensor
    """Bytes, shape ``(B, 3, H, W)``."""
    depth: Tensor | None
    """In metres, shape ``(B, H, W)``; 0 is no measurement. None where the set has no depth."""
    rows: list[int]
    """Which images they are."""


class DepthImages:
    """Photographs and the depth of their pixels, read when they are asked for.

    ``images[:10]`` and ``images[[3, 1]]`` are sets of some of them.

    Args:
        source: Reads them.
        rows: Which of them, in which order; all by default.

    Attributes:
        name: What the set is called.
        names: What each image is called.
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
        """The images of a part of a set."""
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
        """A photograph as it lies in its file."""
        return self._source.picture(self._rows[index])

    def stored_depth(self, index: int) -> StoredDepth | None:
        """A depth map as it lies in its file."""
        return self._source.depth(self._rows[index]) if self.has_depth else None

    def image(self, index: int) -> NDArray[np.uint8]:
        """A photograph, shape ``(H, W, 3)``."""
        return self.picture(index).decode()

    def depth(self, index: int) -> NDArray[np.float32] | None:
        """Its depth in metres, shape ``(H, W)``; 0 is no measurement. None if it has no depth."""
        stored = self.stored_depth(index)
        return None if stored is None else stored.decode()

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
        """Photographs and depth one after the other, decoded ahead by threads.

        Args:
            order: Which images, in which order; all by default.
            size: Height and width to bring them to.
            crop: Whether to cut to the aspect ratio of ``size`` first, as for foreign images,
                rather than to stretch.
            workers: Threads that decode; one for each processor by default.
            ahead: How many may wait to be asked for.
            with_depth: Whether to read depth too; without, it is None.
        """
        if size is not None:
            check_size(size)
        order = range(len(self)) if order is None else order
        encoded = (self._encoded(row, with_depth=with_depth) for row in order)
        decode = partial(decode_pair, size=size, crop=crop)
        return decoded(encoded, decode, workers=n_workers(workers), ahead=ahead)

    def tensors(
        self,
        size: Size | None = None,
        *,
        crop: bool = False,
        workers: int | None = None,
        dtype: torch.dtype = torch.float32,
        with_depth: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """All images in memory: bytes ``(N, 3, H, W)``, and depth in metres ``(N, H, W)`` if any.

        Args:
            size: Height and width; by default their own, which must then be the same for all.
            crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
            workers: Threads that decode; one for each processor by default.
            dtype: Of the depth. Half precision keeps 11 bits: 8 mm at 10 m, 6 cm at 65 m.
            with_depth: Whether to read depth too; without, it is None.
        """
        pairs = self.pairs(size=size, crop=crop, workers=workers, with_depth=with_depth)
        found = self._stacked(pairs, range(len(self)), dtype)
        return found.images, found.depth

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
    ) -> Iterator[DepthBatch]:
        """Some images at a time, for sets that do not fit into memory; decoded ahead.

        Threads of one process wait for each other. Where training waits for images, try an executor
        whose processes decode a batch each and leave this one to the training: a
        ``concurrent.futures.ProcessPoolExecutor(8, multiprocessing.get_context("spawn"))``, kept
        over epochs, for it takes a moment to start. Leaving early, ``close`` the iterator or let go
        of it: what was not sent to a process is not decoded then.

        Args:
            batch: How many; the last batch may have fewer.
            order: Which images, in which order; all by default.
            size: Height and width; by default their own, which must then be the same in a batch.
            crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
            workers: Threads that decode, one for each processor by default; or an executor, which
                stays open.
            dtype: Of the depth.
            ahead: How many batches may wait to be asked for; 4 by default, with an executor two for
                each of its workers.
        """
        if batch < 1:
            raise ValueError(f"`batch` must be at least 1; got {batch}.")
        rows = list(range(len(self)) if order is None else order)
        chunks = [rows[start : start + batch] for start in range(0, len(rows), batch)]
        if isinstance(workers, Executor):
            ahead = usual_ahead(workers) if ahead is None else ahead
            yield from self._batches_by(workers, chunks, size, crop, dtype, ahead)
            return
        ahead = (4 if ahead is None else ahead) * batch
        pairs = self.pairs(rows, size=size, crop=crop, workers=workers, ahead=ahead)
        for chunk in chunks:
            yield self._stacked(pairs, chunk, dtype)

    def _batches_by(
        self,
        pool: Executor,
        chunks: Sequence[list[int]],
        size: Size | None,
        crop: bool,
        dtype: torch.dtype,
        ahead: int,
    ) -> Iterator[DepthBatch]:
        if size is not None:
            check_size(size)
        encoded = ([self._encoded(row) for row in chunk] for chunk in chunks)
        with closing(batches_by(pool, encoded, size=size, crop=crop, ahead=ahead)) as found:
            for chunk, (images, depth) in zip(chunks, found, strict=True):
                yield DepthBatch(images, None if depth is None else depth.to(dtype), chunk)

    def _encoded(self, row: int, *, with_depth: bool = True) -> EncodedPair:
        return self.picture(row), self.stored_depth(row) if with_depth else None

    def _stacked(
        self, pairs: Iterator[Pair], rows: Sequence[int], dtype: torch.dtype
    ) -> DepthBatch:
        """The next images, one for each row, as tensors."""
        if not rows:
            raise DepthError(f"{self.name}: there are no images to read.")
        images, depth = torch.empty(0), None
        found = even(islice(pairs, len(rows)), lambda place: self.picture(rows[place]).where)
        for place, (image, metres) in enumerate(found):
            if place == 0:
                images = torch.empty((len(rows), 3, *image.shape[:2]), dtype=torch.uint8)
                if metres is not None:
                    depth = torch.empty((len(rows), *image.shape[:2]), dtype=dtype)
            images.numpy()[place] = image.transpose(2, 0, 1)
            if depth is not None and metres is not None:
                depth[place] = torch.from_numpy(metres)
        return DepthBatch(images, depth, list(rows))
