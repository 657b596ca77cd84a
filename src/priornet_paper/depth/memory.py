"""Too little memory: on a GPU, which batch would fit; elsewhere, which images do not."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import torch

from priornet.depth import DepthError, DepthImages

__all__ = [
    "NotEnoughMemory",
    "fitting_batch",
    "in_smaller_batches",
    "is_out_of_memory",
    "room_for",
]

_Found = TypeVar("_Found")


class NotEnoughMemory(MemoryError):
    """A batch does not fit; the message says which one does.

    Args:
        what: What was being trained.
        batch: Images in the batch.
        fits: Images in a batch that fits, or None where not even one does.
        device: Name of the GPU.
    """

    def __init__(self, what: str, batch: int, fits: int | None, device: str) -> None:
        super().__init__(what, batch, fits, device)  # so that it travels between processes
        self.what, self.batch, self.fits, self.device = what, batch, fits, device

    def __str__(self) -> str:
        way_out = (
            "not even one image does: use smaller images, a narrower network or fewer processes"
            if self.fits is None
            else f"a batch of {self.fits} does"
        )
        return (
            f"{self.what}: a batch of {self.batch} images does not fit in the memory of the "
            f"{self.device}; {way_out}. What is finished is kept."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a step failed for want of memory; libraries have names of their own for it."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error)
    return "CUDNN_STATUS_ALLOC_FAILED" in text or "CUBLAS_STATUS_ALLOC_FAILED" in text


@contextmanager
def room_for(
    images: DepthImages, size: tuple[int, int], *, with_depth: bool, setting: str
) -> Generator[None]:
    """Say in one line where images do not fit into the memory of the machine.

    Args:
        images: Brought into memory meanwhile.
        size: Height and width that they get.
        with_depth: Whether they come with depth.
        setting: What limits how many there are.

    Raises:
        DepthError: They do not fit.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # NumPy and Pillow raise the one, torch the other
        if not (isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)):
            raise
        height, width = size
        n_bytes = len(images) * height * width * (7 if with_depth else 3)  # a depth has 4
        raise DepthError(
            f"{images.name}: {len(images)} images of {height} x {width} pixels take "
            f"{n_bytes / 1e9:.1f} GB of memory, more than is left; use smaller ones (`height`, "
            f"`width`) or fewer (`{setting}`). What is finished is kept."
        ) from error


def fitting_batch(probe: Callable[[int], object], batch: int) -> int | None:
    """The largest of half the batch, a quarter of it, and so on, with which a step goes well.

    Args:
        probe: Tries a step with so many images; out of memory, it raises as torch does.
        batch: Does not fit.
    """
    while batch > 1:
        batch //= 2
        try:
            probe(batch)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        else:
            return batch
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return None


def in_smaller_batches(
    work: Callable[[int], _Found], batch: int, remark: Callable[[str], object] = lambda _: None
) -> _Found:
    """What some work gives that may be done with batches of any size: smaller ones if need be.

    Args:
        work: Done with so many images at a time; out of memory, it raises as torch does.
        batch: To begin with.
        remark: Told, in one line, where that was too many.
    """
    while True:
        try:
            return work(batch)
        except RuntimeError as error:
            if batch == 1 or not is_out_of_memory(error):
                raise
        # Outside the handler: the error would hold on to the memory of what failed.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        remark(f"{batch} images at a time do not fit in memory; going on with {batch // 2}.")
        batch //= 2
