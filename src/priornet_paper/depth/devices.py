"""Whether there is the device that is asked for, and whether it can be had now."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["DEVICES", "GpuNotAvailable", "check_device", "getting_the_gpu"]

DEVICES = ("cpu", "cuda")


class GpuNotAvailable(OSError):
    """There is a GPU, but it cannot be used at the moment."""


def check_device(device: str, n_devices: int = 1, nodes: int = 1, workers: int = 1) -> None:
    """Refuse what this machine has not, or cannot do, before anything is read or trained.

    Args:
        device: As the command line names it.
        n_devices: How many of them share every batch here.
        nodes: Machines that do.
        workers: Processes that train side by side on one device.

    Raises:
        ValueError: It is not there, or is to be used in two ways.
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
    """Say in one line where a GPU that is there cannot be had while it is set up.

    Raises:
        GpuNotAvailable: CUDA failed.
    """
    try:
        yield
    except RuntimeError as error:  # torch's kinds of errors for this differ, and their text less
        reason = str(error).partition("\n")[0]
        if "CUDA" not in reason:
            raise
        raise GpuNotAvailable(
            f"the GPU is not available now ({reason.rstrip('.')}): other programs hold it, or it "
            "is in a fault. Try again, or use --device cpu. What is finished is kept."
        ) from error
