"""The training loop: one for all methods, on one device or many, which goes on where it stopped.

Networks that see the same batches can be trained together: students of one ensemble, whose teachers
are then asked once for all of them. Each ends with the weights that it would have alone (on a CPU
with the same bits, as long as it drops nothing at random), and has checkpoints of its own.

Everything random in an epoch follows from the seed and the number of the epoch, so that a training
killed in the middle of an epoch and started again ends, on a CPU, with the same bits. Processes
that share a batch (DDP) do what one process would do with the whole of it: sums are divided by
what the whole batch holds, dropout is drawn for all of it, and batch norms use frozen statistics,
or on GPUs those of all processes (``norm="batch"``).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from priornet.nn.tensor_files import TensorFile
from priornet_paper.depth.batches import Share, TrainingSet, epoch_seed
from priornet_paper.depth.checkpoint import Checkpoints
from priornet_paper.depth.learning import Learning
from priornet_paper.depth.methods import Objective
from priornet_paper.depth.sharing import shared
from priornet_paper.depth.step import Step, rate_at, set_norms

__all__ = ["Lesson", "Outcome", "Tick", "Training", "fabric_options", "make_fabric", "train"]


class Tick(NamedTuple):
    """Where a training stands; handed to the ``progress`` callback after every epoch."""

    epoch: int
    n_epochs: int
    losses: list[float]
    """Of every network."""


class Lesson(NamedTuple):
    """A network and what it is to learn."""

    network: nn.Module
    """With ``raw(images)``; with ``encoder`` and ``head`` if it has those."""
    objective: Objective
    """What it learns."""
    folder: Path
    """Where its checkpoints lie."""
    fingerprint: str
    """Of all that its weights depend on: a checkpoint of another one is not used."""


@dataclass(frozen=True)
class Training:
    """What one call of :func:`train` needs beside networks and images."""

    seed: int
    capture: bool = True
    """Replay a CUDA graph, where there is one GPU and one process."""
    compile: bool = False
    """Let torch.compile fuse the network, its loss and its teachers, on GPUs only."""
    half: bool | None = None
    """Whether networks compute in bfloat16; None for what the settings say, on a GPU."""
    progress: Callable[[Tick], object] = field(default=lambda _: None)
    """Told of every epoch, by the first of the processes that share a batch."""
    remark: Callable[[str], object] = field(default=lambda _: None)
    """Told in one line of what should be known, such as a damaged checkpoint."""
    stop: Callable[[], bool] = field(default=lambda: False)
    """Asked after every epoch whether to leave it at that."""


@dataclass(frozen=True)
class Outcome:
    """What a training did. A network holds its weights, averaged if that was asked for."""

    losses: list[float]
    """Mean loss of every epoch."""
    seconds: float
    """Also those before an interruption; of networks trained together an equal share."""
    is_finished: bool


def make_fabric(device: str = "cpu", **more: Any) -> Any:
    """Lightning Fabric for a device.

    Its precision is float32: in mixed precision it would round everything that goes into a module,
    the measured depths too. The network alone computes in bfloat16, see :class:`Learner`.

    Args:
        device: ``"cpu"``, ``"cuda"``, or another accelerator that Fabric knows.
        more: Other arguments of ``Fabric``: ``devices``, ``num_nodes``, ``strategy``.
    """
    arguments: dict[str, Any] = {"devices": 1, **more}
    return _fabric_class()(accelerator=device, precision="32-true", **arguments)


def fabric_options(devices: int, nodes: int) -> dict[str, Any]:
    """Arguments of :func:`make_fabric` for processes that share every batch."""
    if devices * nodes == 1:
        return {}
    return {"devices": devices, "num_nodes": nodes, "strategy": "ddp"}


def _fabric_class() -> Any:
    """From its own package, or from that of all of Lightning."""
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
    """Not that products could be less precise: networks compute in bfloat16, losses must not.

    Every process would say so, across the progress bars.
    """
    return "set_float32_matmul_precision" not in record.getMessage()


def train(
    fabric: Any,
    lessons: Sequence[Lesson],
    data: TrainingSet,
    training: Training,
    teachers: Sequence[nn.Module] = (),
) -> list[Outcome]:
    """Train networks, from the last checkpoints that they have of one epoch.

    Args:
        fabric: From :func:`make_fabric`, launched.
        lessons: One network, or several that are to see the same images for as many epochs.
        data: Training images.
        training: Seed and callbacks.
        teachers: For students, in the ensemble's order; on the device, in evaluation mode. They are
            for these students only: see :class:`~priornet_paper.depth.step.Step`.

    Returns:
        What became of each network.
    """
    run = _Run(fabric, lessons, data, training, teachers)
    with run.step.on_stream():
        return run.go()


class _Run:
    def __init__(
        self,
        fabric: Any,
        lessons: Sequence[Lesson],
        data: TrainingSet,
        training: Training,
        teachers: Sequence[nn.Module],
    ) -> None:
        self.fabric, self.data, self.training = fabric, data, training
        self.config = config = lessons[0].objective.config
        recipes = [lesson.objective.recipe for lesson in lessons]
        (self.n_epochs,) = {recipe.config.epochs_of(recipe.method) for recipe in recipes}
        self.n_steps = data.n_steps(config.batch)
        self.share = Share(fabric.global_rank, fabric.world_size)
        if min(config.batch, len(data)) % fabric.world_size:
            raise ValueError(
                f"a batch of {min(config.batch, len(data))} images cannot be shared equally by "
                f"{fabric.world_size} processes."
            )
        n_own = min(config.batch, len(data)) // fabric.world_size
        on_gpu = fabric.device.type == "cuda"
        capture = training.capture and on_gpu and fabric.world_size == 1
        half = config.precision == "bf16" and on_gpu if training.half is None else training.half
        fuse = training.compile and on_gpu
        if fuse:
            torch.compiler.reset()  # after a few networks it would leave the next ones as they are
        frozen = config.norm == "frozen"
        self.learnings = [
            Learning(
                fabric,
                shared(lesson.network, fabric, self.share, n_own, frozen=frozen),
                lesson.objective,
                self.n_steps,
                half=half,
                capture=capture,
                fuse=fuse,
            )
            for lesson in lessons
        ]
        self.files = [Checkpoints(one.folder, one.fingerprint, training.remark) for one in lessons]
        self.step = Step(
            fabric,
            [learning.pupil for learning in self.learnings],
            teachers,
            config.clip,
            half=half,
            capture=capture,
            compile=fuse,
            remark=training.remark,
        )

    def go(self) -> list[Outcome]:
        """The epochs that are not done yet."""
        started = time.perf_counter()
        with ExitStack() as closing:
            for files in self.files:
                closing.callback(files.close)
            self._resume()
            for epoch in range(len(self.learnings[0].losses), self.n_epochs):
                losses = self._epoch(epoch)
                for learning, loss in zip(self.learnings, losses, strict=True):
                    learning.losses.append(loss)
                seconds = (time.perf_counter() - started) / len(self.learnings)
                self._save(seconds)
                if self.fabric.is_global_zero:
                    self.training.progress(Tick(epoch + 1, self.n_epochs, losses))
                if epoch + 1 < self.n_epochs and self.fabric.broadcast(self.training.stop()):
                    return self._outcomes(seconds, is_finished=False)
        for learning in self.learnings:
            learning.finish()
        seconds = (time.perf_counter() - started) / len(self.learnings)
        return self._outcomes(seconds, is_finished=True)

    def _outcomes(self, seconds: float, is_finished: bool) -> list[Outcome]:
        return [
            Outcome(learning.losses, learning.seconds + seconds, is_finished)
            for learning in self.learnings
        ]

    def _epoch(self, epoch: int) -> list[float]:
        config, seed = self.config, self.training.seed
        torch.manual_seed(epoch_seed(seed, epoch))  # for networks that drop something at random
        for learning in self.learnings:
            set_norms(learning.network, config.norm == "frozen")
        total = torch.zeros(len(self.learnings), device=self.fabric.device)
        for i, batch in enumerate(self.data.epoch(seed, epoch, config.batch, self.share)):
            share = (epoch + i / self.n_steps) / self.n_epochs
            # The rate of the middle of a step: it is never zero.
            middle = share + 0.5 / self.n_steps / self.n_epochs
            settings = [learning.pupil.objective.setting(share) for learning in self.learnings]
            total += self.step(batch, settings, rate_at(middle, config.warm_up, config.schedule))
            for learning in self.learnings:
                learning.average.update()
        losses = (self.fabric.all_reduce(total, reduce_op="mean") / self.n_steps).tolist()
        for learning, loss in zip(self.learnings, losses, strict=True):
            if not math.isfinite(loss):
                name = learning.pupil.objective.recipe.name
                raise FloatingPointError(
                    f"{name}, seed {seed}: the loss of epoch {epoch + 1} is {loss}; a lower "
                    "`learning_rate` or `clip` may help."
                )
        return losses

    # -- going on where it stopped ----------------------------------------------------------------

    def _resume(self) -> None:
        # One process reads: the others may be on machines without the folder.
        found = self.fabric.broadcast(self._newest() if self.fabric.is_global_zero else None)
        if found is not None:
            for learning, file in zip(self.learnings, found, strict=True):
                learning.load(file.tensors, file.state, self.n_steps)

    def _newest(self) -> list[TensorFile] | None:
        """A checkpoint of every network, all of one epoch."""
        saved = [{int(file.state["epoch"]): file for file in files.whole()} for files in self.files]
        of_all = set[int].intersection(*map(set[int], saved))
        return [own[max(of_all)] for own in saved] if of_all else None

    def _save(self, seconds: float) -> None:
        if not self.fabric.is_global_zero:
            return
        for learning, files in zip(self.learnings, self.files, strict=True):
            files.save(len(learning.losses), learning.tensors(), learning.state(seconds))
