"""What a training needs to go on where it stopped, one file per epoch.

A file holds the tensors (weights, their averages, the optimiser's moments) in the safetensors
format and everything else as JSON in its header: reading it executes nothing. It is written beside
its place and renamed, so that a process may be killed at any moment; the bytes are summed up in the
header, so that a file damaged later is noticed, named, and passed over for the one before it.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Checkpoint", "Checkpoints", "read_tensors", "write_tensors"]

_KEPT = 2  # the newest, and one to fall back on
_STATE = "state"


class Checkpoint(NamedTuple):
    """Tensors by name, and the plain data that goes with them."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_tensors(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
    """Write one file, whole or not at all.

    Raises:
        OSError: It cannot be written, as on a full disk; the message names it.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {_STATE: json.dumps({**state, "crc32": _checksum(own)}, allow_nan=False)}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        save_file(own, unfinished, header)
        unfinished.replace(path)
    except SafetensorError as error:  # its name for what the system says
        raise OSError(f"{path}: it cannot be written ({error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def read_tensors(path: Path) -> Checkpoint:
    """Read what :func:`write_tensors` wrote.

    Raises:
        ValueError: The file is damaged, or another kind of file; the message names it.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            state: Any = json.loads((file.metadata() or {})[_STATE])
            names = file.keys()  # it is no mapping: it cannot be gone through itself
            tensors = {name: file.get_tensor(name) for name in names}
        if state.pop("crc32") != _checksum(tensors):
            raise ValueError("its numbers have changed since it was written")
    except FileNotFoundError:
        raise
    except KeyError as error:
        raise ValueError(f"{path}: not one of our files (no {error} in it).") from error
    except (SafetensorError, OSError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: damaged ({error}).") from error
    return Checkpoint(tensors, state)


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    total = 0
    for name in sorted(tensors):
        flat = tensors[name].reshape(-1).contiguous()
        total = zlib.crc32(flat.view(torch.uint8).numpy().data, total) if flat.numel() else total
    return total


class Checkpoints:
    """The checkpoints of one training.

    Args:
        folder: Where they lie.
        fingerprint: Of all that the training depends on; others' checkpoints are passed over.
        remark: Told, in one line, of every file that could not be used.
    """

    def __init__(self, folder: Path, fingerprint: str, remark: Callable[[str], object]) -> None:
        self.folder, self.fingerprint, self.remark = folder, fingerprint, remark
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None

    def path(self, epoch: int) -> Path:
        """File of the checkpoint after so many epochs."""
        return self.folder / f"epoch-{epoch:04d}.safetensors"

    def latest(self) -> Checkpoint | None:
        """The newest whole checkpoint of this training; None to start afresh."""
        for path in self._files():
            try:
                found = read_tensors(path)
            except (OSError, ValueError) as error:
                self.remark(f"{str(error).rstrip('.')}; going back to the epoch before it.")
                continue
            if found.state.get("fingerprint") == self.fingerprint:
                return found
            self.remark(f"{path}: of other settings or other data; it is not used.")
        return None

    def save(self, epoch: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Keep the state after an epoch. The file is written while training goes on."""
        self.wait()
        own = {name: _copy(tensor) for name, tensor in tensors.items()}
        whole = {**state, "epoch": epoch, "fingerprint": self.fingerprint}
        self._writing = self._writer.submit(self._write, epoch, own, whole)

    def wait(self) -> None:
        """Until the last checkpoint is on disk; its failure, such as a full disk, is raised."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """Wait, and write no more."""
        try:
            self.wait()
        finally:
            self._writer.shutdown()

    def _write(self, epoch: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        write_tensors(self.path(epoch), tensors, state)
        # Later epochs are of other settings: counted with ours, they would push ours out.
        ours = [path for path in self._files() if path <= self.path(epoch)]
        for old in ours[_KEPT:]:
            old.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Newest first."""
        return sorted(self.folder.glob("epoch-*.safetensors"), reverse=True)


def _copy(tensor: Tensor) -> Tensor:
    """On the CPU and of its own: training will overwrite the original."""
    return tensor.detach().to("cpu", copy=True)
