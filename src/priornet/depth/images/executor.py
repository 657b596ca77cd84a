"""Batches that are decoded by an executor of the caller's own, in other processes for instance.

Python lets one thread of a process run at a time; decoding has enough of Python and NumPy in it
that sixteen threads do less than twice the work of one. Files are read in the calling thread, for
handles of archives belong to one process. What was decoded comes back in shared memory, where there
is some: a file in ``/dev/shm`` that is mapped, and removed at once. Through a pipe it takes four
times as long. Torch's own way to share tensors needs the process that made one until it is fetched,
and torch in that process, which takes longer to import than all the rest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing
from functools import partial
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from priornet.depth.images.ahead import in_order, n_workers
from priornet.depth.images.errors import DepthError
from priornet.depth.images.pairs import EncodedPair, Left, Sent, decode_batch
from priornet.depth.images.resize import Size

__all__ = ["batches_by", "usual_ahead"]

_SHARED_MEMORY = "/dev/shm"


def usual_ahead(pool: Executor) -> int:
    """How many batches may wait: one that each worker is at, and one that it goes on with."""
    # Both executors of Python's own have it, though not by a public name.
    return 2 * int(getattr(pool, "_max_workers", n_workers()))


def batches_by(
    pool: Executor,
    encoded: Iterable[Sequence[EncodedPair]],
    *,
    size: Size | None,
    crop: bool,
    ahead: int,
) -> Generator[tuple[Tensor, Tensor | None]]:
    """Photographs as bytes ``(B, 3, H, W)`` and depth in metres ``(B, H, W)`` of each batch.

    Args:
        pool: Decodes, one batch at a time each of its workers; it is not shut down.
        encoded: The images of each batch; taken from the calling thread, in order.
        size: Height and width to bring them to.
        crop: Whether to cut to the aspect ratio of ``size`` first, rather than to stretch.
        ahead: How many batches may wait to be asked for.
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
    """A folder in shared memory, where the system has such folders."""
    try:
        return TemporaryDirectory(
            prefix="priornet-", dir=_SHARED_MEMORY, ignore_cleanup_errors=True
        )
    except OSError:
        return None


def _tensor(sent: Sent) -> Tensor:
    """What a worker has left; its memory is that of the tensor from now on."""
    if not isinstance(sent, Left):
        return torch.from_numpy(sent)
    dtype = torch.from_numpy(np.empty(0, sent.dtype)).dtype
    # Not `shared`, which would make a file that is not there. It keeps no descriptor open.
    flat = torch.from_file(sent.path, shared=False, size=math.prod(sent.shape), dtype=dtype)
    os.unlink(sent.path)
    return flat.view(sent.shape)
