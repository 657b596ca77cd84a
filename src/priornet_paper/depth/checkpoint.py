"""What a training needs to go on where it stopped, one file per epoch.

A file holds the tensors (weights, their averages, the optimiser's moments) and everything else as
:mod:`priornet.nn.tensor_files` writes it: a process may be killed at any moment, and a file damaged
later is noticed, named, and passed over for the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor

from priornet.nn.tensor_files import TensorFile, read_tensors, write_tensors

__all__ = ["Checkpoints"]

_KEPT = 2  # the newest, and one to fall back on


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

    def whole(self) -> Iterator[TensorFile]:
        """The whole checkpoints of this training, the newest first."""
        for path in self._files():
            try:
                found = read_tensors(path)
            except (OSError, ValueError) as error:
                self.remark(f"{str(error).rstrip('.')}; going back to the epoch before it.")
                continue
            if found.state.get("fingerprint") == self.fingerprint:
                yield found
            else:
                self.remark(f"{path}: of other settings or other data; it is not used.")

    def epochs(self) -> list[int]:
        """After how many epochs one can go on, the newest first; 0 where there is none."""
        return [int(found.state["epoch"]) for found in self.whole()] or [0]

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
