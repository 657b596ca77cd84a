"""Devices, their memory, and the processes that share every batch (Lightning Fabric)."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from priornet.depth import DepthError, DepthImages

_Found = TypeVar("_Found")

DEVICES = ("cpu", "cuda")


# -- devices --------------------------------------------------------------------------------------


class GpuNotAvailable(OSError):
    """There is a GPU, but it cannot be used at the moment."""


def check_device(device: str, n_devices: int = 1, nodes: int = 1, workers: int = 1) -> None:
    """Refuse a device that is not here, or that cannot be shared in this way.

    Args:
        device: As the command line names it.
        n_devices: Devices of this machine that share every batch.
        nodes: Machines that share every batch.
        workers: Processes that train side by side on one device.
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
    """Raise CUDA's errors as :class:`GpuNotAvailable`, in one line, while a GPU is set up."""
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


# -- memory ---------------------------------------------------------------------------------------


class NotEnoughMemory(MemoryError):
    """A batch does not fit; the message names one that does, if there is any."""

    def __init__(self, training: str, batch: int, fits: int | None, device: str) -> None:
        super().__init__(training, batch, fits, device)  # so that it travels between processes

    def __str__(self) -> str:
        training, batch, fits, device = self.args
        way_out = (
            "not even one image does: use smaller images, a narrower network or fewer processes"
            if fits is None
            else f"a batch of {fits} does"
        )
        return (
            f"{training}: a batch of {batch} images does not fit in the memory of the {device}; "
            f"{way_out}. What is finished is kept."
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
    """Raise a lack of memory as one line while images of a size are read.

    The message names ``setting``, which limits the number of images.
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
    """Halve a batch that does not fit until a step succeeds; return its size, or None."""
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
    """Return the result of work that any batch size may do, halving the batch until it fits."""
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


# -- processes that share every batch -------------------------------------------------------------


def make_fabric(device: str = "cpu", **more: Any) -> Any:
    """Make Lightning Fabric for a device, with ``devices``, ``num_nodes`` or ``strategy``.

    Its precision is float32: in mixed precision it would round everything that goes into a module,
    the measured depths too. The networks alone compute in bfloat16.
    """
    arguments: dict[str, Any] = {"devices": 1, **more}
    return _fabric_class()(accelerator=device, precision="32-true", **arguments)


def fabric_options(devices: int, nodes: int) -> dict[str, Any]:
    """Return arguments of :func:`make_fabric` for processes that share every batch."""
    if devices * nodes == 1:
        return {}
    return {"devices": devices, "num_nodes": nodes, "strategy": "ddp"}


def _fabric_class() -> Any:
    """Import Fabric from its own package, or from that of all of Lightning."""
    for package in ("lightning_fabric", "lightning.fabric"):
        try:
            found = import_module(package).Fabric
        except ImportError:
            continue
        logging.getLogger(f"{package}.utilities.rank_zero").addFilter(_is_news)
        return found
    raise ImportError(
        "training needs Lightning Fabric; install it with `pip install '.[depth]'` in a checkout "
        "of priornet."
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Drop Fabric's advice on matrix products: every process would give it, and losses need them.

    Networks compute in bfloat16 already; products of float32 must stay precise.
    """
    return "set_float32_matmul_precision" not in record.getMessage()


class Share(NamedTuple):
    """The part of every batch that one process has."""

    rank: int = 0
    n_processes: int = 1

    def of(self, n: int) -> slice:
        """Return the process's part of ``n`` things; every process has as many."""
        each = n // self.n_processes
        return slice(self.rank * each, (self.rank + 1) * each)


class SharedDropout(nn.Dropout2d):
    """Leaves out the maps that one process would leave out with the whole batch.

    Every process draws for the whole batch, from generators in the same state, and keeps its part.
    With draws of their own, all processes would leave out the same maps of their images.

    Args:
        p: Share of the maps that are left out.
        share: Part of a batch that this process has.
        n_own: Images in that part; out-of-domain images may lie behind them, as many or more.
    """

    def __init__(self, p: float, share: Share, n_own: int) -> None:
        super().__init__(p)
        self.share, self.n_own = share, n_own

    def forward(self, input: Tensor) -> Tensor:
        """Set some maps ``(B, C, H, W)`` to zero in training mode, and enlarge the others."""
        if not self.training or self.p == 0:
            return input
        n_parts, n_own = len(input) // self.n_own, self.n_own
        shape = (n_parts * self.share.n_processes * n_own, input.shape[1], 1, 1)
        kept = torch.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - self.p)
        parts = kept.div_(1 - self.p).unflatten(0, (n_parts, -1))
        return input * parts[:, self.share.of(parts.shape[1])].flatten(0, 1)


def shared(network: nn.Module, fabric: Any, share: Share, n_own: int, *, frozen: bool) -> nn.Module:
    """Make batch norms and dropout see the whole batch; one process needs no change.

    Args:
        network: To be trained.
        fabric: From :func:`make_fabric`, launched.
        share: Part of a batch that this process has.
        n_own: Images in that part.
        frozen: Batch norms use frozen statistics, which do not depend on the batch.
    """
    if share.n_processes == 1:
        return network
    if not frozen:
        if fabric.device.type != "cuda":
            raise ValueError(
                'several processes without GPUs cannot share batch statistics; use `norm="frozen"`.'
            )
        network = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    for parent in list(network.modules()):
        for name, part in list(parent.named_children()):
            if type(part) is nn.Dropout2d:
                setattr(parent, name, SharedDropout(part.p, share, n_own))
    return network
