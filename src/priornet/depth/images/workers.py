"""Decode pairs of photograph and depth ahead of their use: in threads, or in processes.

Python lets one thread of a process run at a time, and decoding has enough Python and NumPy in it
that sixteen threads do less than twice the work of one. Processes of the caller's executor decode
whole batches. Files are read in the calling thread, because handles of archives belong to one
process. Decoded batches come back in shared memory where there is some: a file in ``/dev/shm``
that is mapped, and removed at once. A pipe takes four times as long. Torch's own sharing of tensors
would need torch in each worker, whose import takes longer than all the rest; so nothing here
imports it before a batch has arrived.
"""

from __future__ import annotations

import math
import operator
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from priornet.depth.images.decoding import (
    DepthError,
    Picture,
    Size,
    StoredDepth,
    check_shapes,
    resize_depth,
    resize_picture,
)

if TYPE_CHECKING:
    from torch import Tensor

_MOST = 16
_SHARED_MEMORY = "/dev/shm"

EncodedPair = tuple[Picture, StoredDepth | None]
Pair = tuple[NDArray[np.uint8], NDArray[np.float32] | None]
Encoded = TypeVar("Encoded")
Decoded = TypeVar("Decoded")


class SharedArray(NamedTuple):
    """An array that a worker left in a file; the receiver removes the file."""

    path: str
    shape: tuple[int, ...]
    dtype: str


Sent = NDArray[Any] | SharedArray


def n_workers(workers: int | None = None) -> int:
    """Return the number of threads that decode; by default one for each available processor."""
    if workers is not None:
        try:
            operator.index(workers)
        except TypeError as error:
            raise TypeError(
                f"`workers` must be a number of threads; got {workers!r}. `DepthImages.batches` "
                "also takes a concurrent.futures.Executor."
            ) from error
        if workers < 1:
            raise ValueError(f"`workers` must be at least 1; got {workers}.")
        return workers
    has_affinity = hasattr(os, "sched_getaffinity")  # not on every system
    return min(_MOST, len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


def decoded(
    encoded: Iterable[Encoded], decode: Callable[[Encoded], Decoded], *, workers: int, ahead: int
) -> Generator[Decoded]:
    """Decode items in threads, and yield the results in order; at most ``ahead`` of them wait.

    Items are taken from the calling thread, in order. One worker decodes in that thread too.
    """
    if workers == 1:
        yield from map(decode, encoded)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="decode") as pool:
        yield from in_order(pool, encoded, decode, ahead=ahead)


def in_order(
    pool: Executor,
    encoded: Iterable[Encoded],
    decode: Callable[[Encoded], Decoded],
    *,
    ahead: int,
    late: Callable[[Future[Decoded]], object] | None = None,
) -> Generator[Decoded]:
    """Decode items by the workers of an executor, and yield the results in order.

    Items that no worker has begun when the generator is closed are not decoded; ``late`` is called
    with each result that finishes after that. The executor is not shut down.
    """
    waiting: deque[Future[Decoded]] = deque()
    try:
        for item in encoded:
            waiting.append(pool.submit(decode, item))
            if len(waiting) > ahead:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:  # also when the caller leaves early
        for future in waiting:
            if not future.cancel() and late is not None:
                future.add_done_callback(late)


def _first(waiting: deque[Future[Decoded]]) -> Decoded:
    """Take the first result; an interrupted wait leaves it in the queue."""
    result = waiting[0].result()
    waiting.popleft()
    return result


def decode_pair(encoded: EncodedPair, *, size: Size | None, crop: bool) -> Pair:
    """Decode a photograph ``(H, W, 3)`` and its depth ``(H, W)``, if it has one."""
    picture, stored = encoded
    image, depth = picture.decode(has_depth=stored is not None), None
    if stored is not None:
        depth = stored.decode()
        check_shapes(image, stored, depth)
    image = resize_picture(image, size, crop=crop)  # first: Pillow refuses a size without memory
    return image, None if depth is None else resize_depth(depth, size, crop=crop)


def stack(
    pairs: Iterable[Pair],
    n: int,
    where: Callable[[int], str],
    kind: type[np.floating[Any]] = np.float32,
) -> Pair:
    """Stack the next n photographs ``(n, 3, H, W)`` and their depth ``(n, H, W)``, of one size.

    ``where`` returns the name of the photograph at a position, for an error message.
    """
    images: NDArray[np.uint8] = np.empty((n, 3, 0, 0), np.uint8)
    depth = None
    for place, (image, metres) in enumerate(islice(pairs, n)):
        shape = image.shape[:2]
        if place == 0:
            images = np.empty((n, 3, *shape), np.uint8)
            depth = None if metres is None else np.empty((n, *shape), kind)
        if shape != images.shape[2:]:
            raise DepthError(
                f"{where(place)}: {shape[0]} x {shape[1]} pixels, where those before it have "
                f"{images.shape[2]} x {images.shape[3]}; give a `size` to bring all images to."
            )
        images[place] = image.transpose(2, 0, 1)
        if depth is not None and metres is not None:
            depth[place] = metres
    return images, depth


def decode_batch(
    encoded: Sequence[EncodedPair], *, size: Size | None, crop: bool, folder: str | None
) -> tuple[Sent, Sent | None]:
    """Decode photographs ``(B, 3, H, W)`` and depth ``(B, H, W)`` for another process.

    A folder in shared memory takes the arrays; None returns them.
    """
    pairs = (decode_pair(pair, size=size, crop=crop) for pair in encoded)
    images, depth = stack(pairs, len(encoded), lambda at: encoded[at][0].where)
    return _sent(images, folder), None if depth is None else _sent(depth, folder)


def _sent(array: NDArray[Any], folder: str | None) -> Sent:
    """Leave an array in a folder; return it unchanged where that fails."""
    if folder is None:
        return array
    path = os.path.join(folder, uuid4().hex)
    try:
        with open(path, "xb") as file:
            file.write(array.data)
    except OSError:  # full, on another machine, or removed because the caller has left
        Path(path).unlink(missing_ok=True)
        return array
    return SharedArray(path, array.shape, array.dtype.str)


def default_ahead(pool: Executor) -> int:
    """Return the number of batches that may wait: two for each worker."""
    # Both executors of the standard library have it, though not under a public name.
    return 2 * int(getattr(pool, "_max_workers", n_workers()))


def batches_by(
    pool: Executor,
    encoded: Iterable[Sequence[EncodedPair]],
    *,
    size: Size | None,
    crop: bool,
    ahead: int,
) -> Generator[tuple[Tensor, Tensor | None]]:
    """Yield photographs as bytes ``(B, 3, H, W)`` and depth in metres ``(B, H, W)``.

    The workers of an executor decode them, one batch at a time each.
    """
    folder = _shared_folder()
    decode = partial(decode_batch, size=size, crop=crop, folder=folder and folder.name)

    def clear(_: object = None) -> None:
        if folder is not None:
            folder.cleanup()

    try:
        with closing(in_order(pool, encoded, decode, ahead=ahead, late=clear)) as found:
            for images, depth in found:
                yield _tensor(images), None if depth is None else _tensor(depth)
    except BrokenExecutor as error:
        raise DepthError(
            "a process that decodes images was lost (killed, or out of memory), and its executor "
            "with it: make a new one, with fewer processes or smaller batches if memory is short. "
            'In a script, what makes it must stand below `if __name__ == "__main__":`.'
        ) from error
    finally:
        clear()


def _shared_folder() -> TemporaryDirectory[str] | None:
    """Make a folder in shared memory; None where the system has no shared memory."""
    try:
        return TemporaryDirectory(
            prefix="priornet-", dir=_SHARED_MEMORY, ignore_cleanup_errors=True
        )
    except OSError:
        return None


def _tensor(sent: Sent) -> Tensor:
    """Map a worker's array as a tensor, which owns the memory from now on."""
    import torch

    if not isinstance(sent, SharedArray):
        return torch.from_numpy(sent)
    dtype = torch.from_numpy(np.empty(0, sent.dtype)).dtype
    # Not `shared`, which would make a missing file. It keeps no descriptor open.
    flat = torch.from_file(sent.path, shared=False, size=math.prod(sent.shape), dtype=dtype)
    os.unlink(sent.path)
    return flat.view(sent.shape)
