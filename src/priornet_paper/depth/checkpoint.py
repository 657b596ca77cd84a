"""Checkpoints, one file per epoch: with them a training goes on where it stopped.

A file holds the tensors (weights, their averages, the optimiser's moments) and all other state, as
:func:`priornet.nn.write_tensors` does. A process may be killed at any moment; a file damaged
later is named, and passed over for the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor

from priornet.nn import TensorFile, read_tensors, write_tensors

__all__ = ["Checkpoints"]

_KEPT = 2  # the newest, and one to fall back on


class Checkpoints:
    """The checkpoints of one training.

    Args:
        folder: Where they lie.
        fingerprint: Of all that the training depends on; checkpoints with another are passed over.
        message: Called with a line on every file that could not be used.
    """

    def __init__(self, folder: Path, fingerprint: str, message: Callable[[str], object]) -> None:
        self.folder, self.fingerprint, self.message = folder, fingerprint, message
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None

    def path(self, epoch: int) -> Path:
        """Name the checkpoint after so many epochs."""
        return self.folder / f"epoch-{epoch:04d}.safetensors"

    def whole(self) -> Iterator[TensorFile]:
        """Read the undamaged checkpoints of this training, the newest first."""
        for path in self._files():
            try:
                found = read_tensors(path)
            except (OSError, ValueError) as error:
                self.message(f"{str(error).rstrip('.')}; going back to the epoch before it.")
                continue
            if found.state.get("fingerprint") == self.fingerprint:
                yield found
            else:
                self.message(f"{path}: of other settings or other data; it is not used.")

    def epochs(self) -> list[int]:
        """List the epochs after which training can go on, the newest first; 0 without any."""
        return [int(found.state["epoch"]) for found in self.whole()] or [0]

    def save(self, epoch: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Keep the state after an epoch; a thread writes the file while training goes on."""
        self.wait()
        # Copies: training will overwrite the originals.
        own = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
        whole = {**state, "epoch": epoch, "fingerprint": self.fingerprint}
        self._writing = self._writer.submit(self._write, epoch, own, whole)

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk; raise its failure, such as a full disk."""
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
        # Later epochs come from a run with other settings and do not count.
        own = [path for path in self._files() if path <= self.path(epoch)]
        for old in own[_KEPT:]:
            old.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """List the files, the newest first."""
        return sorted(self.folder.glob("epoch-*.safetensors"), reverse=True)
