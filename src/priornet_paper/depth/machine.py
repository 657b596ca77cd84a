"""The machine: its devices and its memory, and messages that say what is missing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import torch

from priornet.depth import DepthError, DepthImages

__all__ = [
    "DEVICES",
    "GpuNotAvailable",
    "NotEnoughMemory",
    "check_device",
    "fitting_batch",
    "free_memory",
    "getting_the_gpu",
    "in_smaller_batches",
    "is_out_of_memory",
    "room_for",
]

_Found = TypeVar("_Found")

DEVICES = ("cpu", "cuda")


class GpuNotAvailable(OSError):
    """There is a GPU, but it cannot be used at the moment."""


def check_device(device: str, n_devices: int = 1, nodes: int = 1, workers: int = 1) -> None:
    """Refuse a device that is not here, or that cannot be shared in this way.

    Args:
        device: As the command line names it.
        n_devices: Devices of this machine that share every batch.
        nodes: Machines that share every batch.
        workers: Processes that train side by side on one device.

    Raises:
        ValueError: The device is not there, or is to be shared in two ways.
    """
    if n_devices * nodes > 1 and workers > 1:
        raise ValueError("--workers trains side by side, --devices and --nodes together: not both.")
    if device not in DEVICES:
        raise ValueError(f'unknown device "{device}"; choose from: {", ".join(DEVICES)}.')
    if device != "cuda":
        return
    if not torch.cuda.is_available():
        raise ValueError("--device cuda: torch finds no CUDA device here.")
    n_there = torch.cuda.device_count()
    if n_devices > n_there:
        raise ValueError(f"--devices {n_devices}: torch finds only {n_there} CUDA devices here.")


@contextmanager
def getting_the_gpu() -> Generator[None]:
    """Turn torch's errors into one line while a GPU is set up.

    Raises:
        GpuNotAvailable: CUDA failed.
    """
    try:
        yield
    except RuntimeError as error:  # torch raises several kinds of errors for this
        reason = str(error).partition("\n")[0]
        if "CUDA" not in reason:
            raise
        raise GpuNotAvailable(
            f"the GPU is not available now ({reason.rstrip('.')}): other programs hold it, or it "
            "is in a fault. Try again, or use --device cpu. What is finished is kept."
        ) from error


class NotEnoughMemory(MemoryError):
    """A batch does not fit; the message names one that does.

    Args:
        what: Name of the training.
        batch: Images in the batch.
        fits: Images in a batch that fits, or None if not even one does.
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
    """Check if a step failed for lack of memory; libraries have their own names for it."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error)
    return "CUDNN_STATUS_ALLOC_FAILED" in text or "CUBLAS_STATUS_ALLOC_FAILED" in text


def free_memory() -> None:
    """Give back the memory of what is no longer used, on the GPU too."""
    gc.collect()
    torch.cuda.empty_cache()


@contextmanager
def room_for(
    images: DepthImages, size: tuple[int, int], *, with_depth: bool, setting: str
) -> Generator[None]:
    """Turn errors into one line while images are brought into the memory of the machine.

    Args:
        images: The images.
        size: Height and width that they get.
        with_depth: Bring in their depth too.
        setting: Setting that limits their number.

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
    """Halve a batch that does not fit until a step succeeds; return its size, or None.

    Args:
        probe: Tries a step with so many images; out of memory, it raises as torch does.
        batch: Size of the batch that does not fit.
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
        free_memory()
    return None


def in_smaller_batches(
    work: Callable[[int], _Found], batch: int, message: Callable[[str], object] = lambda _: None
) -> _Found:
    """Return the result of work that any batch size may do, halving the batch until it fits.

    Args:
        work: Done with so many images at a time; out of memory, it raises as torch does.
        batch: The first size.
        message: Called with one line each time that a size was too large.
    """
    while True:
        try:
            return work(batch)
        except RuntimeError as error:
            if batch == 1 or not is_out_of_memory(error):
                raise
        # Outside the handler: the error would hold on to the memory of what failed.
        free_memory()
        message(f"{batch} images at a time do not fit in memory; going on with {batch // 2}.")
        batch //= 2
