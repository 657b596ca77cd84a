"""Several processes on one GPU at the same time, where NVIDIA's MPS is installed.

Without it a GPU serves one process at a time, and small networks leave most of it idle. We start
a daemon with sockets in a folder of its own. It ends with the work, unless this process is killed:
then it idles on. If MPS is not installed, or does not answer, the work goes on without it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from priornet.training import available_cores

_log = logging.getLogger(__name__)

_DAEMON = "nvidia-cuda-mps-control"
_PIPES, _LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEFAULT_PIPES = Path("/tmp/nvidia-mps")
_PATIENCE = 30.0  # seconds for the daemon to answer
_MOST_WORKERS = 10  # as many as were timed on an H200; each holds memory of its own

# A context is what a server that cannot serve refuses. The driver alone: torch takes seconds to
# import.
_PROBE = """
import ctypes, sys
driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
sys.exit(driver.cuInit(0) or driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
"""


def default_workers(device: str) -> int:
    """Return the default number of processes side by side."""
    n_cores = available_cores()
    if device == "cpu":
        return n_cores
    return min(n_cores, _MOST_WORKERS) if can_share() else 1


def can_share() -> bool:
    """Tell if MPS is there: installed, or running already."""
    return _is_running() or shutil.which(_DAEMON) is not None


@contextmanager
def shared_gpu(device: str, workers: int) -> Generator[bool]:
    """Let the processes that are started inside compute on a GPU at the same time.

    Args:
        device: ``"cuda"``; for others nothing happens.
        workers: Processes; for one nothing happens.

    Yields:
        True if they do; the log says why they cannot.
    """
    if device != "cuda" or workers < 2:
        yield False
    elif _is_running():
        yield True
    elif shutil.which(_DAEMON) is None:
        _log.info("%d processes take turns on the GPU: NVIDIA's MPS is not installed", workers)
        yield False
    else:
        # Its log may still be written while the folder goes.
        with (
            TemporaryDirectory(prefix="priornet-mps-", ignore_cleanup_errors=True) as folder,
            _daemon({_PIPES: folder, _LOGS: folder}) as works,
        ):
            if not works:
                _log.warning("%d processes take turns on the GPU: MPS does not answer", workers)
            yield works


def _is_running() -> bool:
    """Tell if another daemon runs already: processes then find it by themselves."""
    return (Path(os.environ.get(_PIPES, _DEFAULT_PIPES)) / "control").exists()


@contextmanager
def _daemon(own: dict[str, str]) -> Generator[bool]:
    before = {name: os.environ.get(name) for name in own}
    try:
        # It serves all GPUs, numbered as they are: a choice among them is its clients'.
        plain = {name: value for name, value in os.environ.items() if name != _VISIBLE}
        works = _succeeds([_DAEMON, "-d"], plain | own)
        works = works and _succeeds([sys.executable, "-c", _PROBE], os.environ | own)
        if works:
            if torch.cuda.is_available():
                torch.cuda.init()  # outside: the daemon would wait for this process before it ends
            os.environ.update(own)  # the processes take it over
        yield works
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _succeeds([_DAEMON], os.environ | own, "quit -t 10\n")  # by force where a process hangs


def _succeeds(command: list[str], environment: Mapping[str, str], text: str = "") -> bool:
    """Tell if a command ends well, and in time."""
    try:
        done = subprocess.run(
            command,
            input=text,
            text=True,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
