"""The training loop of all methods, on one device or several; it resumes where it stopped.

Students of one ensemble can be trained together: their teachers answer once for all of them. Each
ends with the weights that it would have alone (on a CPU with the same bits, if it drops nothing at
random), and has checkpoints of its own.

All random numbers of an epoch follow from the seed and the number of the epoch. A training killed
in the middle of an epoch and started again ends, on a CPU, with the same bits. Processes that share
a batch (DDP) do what one process would do with the whole batch: sums are divided by the counts of
the whole batch, dropout is drawn for all of it, and batch norms use frozen statistics, or on GPUs
the statistics of all processes (``norm="batch"``).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from priornet.nn import DenseDepth, TensorFile
from priornet.training import Graphed, cosine, on_stream
from priornet_paper.depth.batches import TrainingSet, epoch_seed
from priornet_paper.depth.machine import Share, is_out_of_memory, shared
from priornet_paper.depth.methods import Batch
from priornet_paper.depth.trainee import Checkpoints, Compute, Trainee, precision_of


class Tick(NamedTuple):
    """Progress of a training after an epoch, with the loss of every network."""

    epoch: int
    n_epochs: int
    losses: list[float]


@dataclass(frozen=True)
class Training:
    """Seed, speed and callbacks of a training."""

    seed: int
    capture: bool = True
    """Replay a CUDA graph, where there is one GPU and one process."""
    compile: bool = False
    """Let torch.compile fuse the network, its loss and its teachers, on GPUs only."""
    half: bool | None = None
    """Compute networks in bfloat16; None for the precision of the settings, on a GPU."""
    progress: Callable[[Tick], object] = field(default=lambda _: None)
    """Called after every epoch, by the first of the processes that share a batch."""
    message: Callable[[str], object] = field(default=lambda _: None)
    """Called with one line, such as on a damaged checkpoint."""
    stop: Callable[[], bool] = field(default=lambda: False)
    """Called after every epoch; True ends the training there."""

    def compute(self, fabric: Any, precision: str) -> Compute:
        """Choose how to compute on a device."""
        on_gpu = fabric.device.type == "cuda"
        half = precision == "bf16" and on_gpu if self.half is None else self.half
        alone = on_gpu and fabric.world_size == 1
        return Compute(half, self.capture and alone, self.compile and on_gpu)


def train(
    fabric: Any,
    trainees: Sequence[Trainee],
    data: TrainingSet,
    training: Training,
    teachers: Sequence[nn.Module] = (),
) -> None:
    """Train networks, from the last checkpoints that they have of one epoch.

    Args:
        fabric: Lightning Fabric, launched.
        trainees: One network, or several that are to see the same images for as many epochs.
        data: Training images.
        training: Seed, speed and callbacks.
        teachers: For students, on the device, in evaluation mode; :class:`Step` may round them.
    """
    try:
        run = _Run(fabric, trainees, data, training, teachers)
        with run.step.on_stream(), ExitStack() as closing:
            for trainee in trainees:
                closing.callback(trainee.checkpoints.close)
            run.go()
    finally:
        for trainee in trainees:
            trainee.release()


class _Run:
    def __init__(
        self,
        fabric: Any,
        trainees: Sequence[Trainee],
        data: TrainingSet,
        training: Training,
        teachers: Sequence[nn.Module],
    ) -> None:
        self.fabric, self.trainees, self.data, self.training = fabric, trainees, data, training
        self.config = config = trainees[0].objective.config
        variants = [trainee.objective.variant for trainee in trainees]
        (self.n_epochs,) = {variant.config.epochs_of(variant.method) for variant in variants}
        self.n_steps = data.n_steps(config.batch)
        self.share = Share(fabric.global_rank, fabric.world_size)
        size = min(config.batch, len(data))
        if size % fabric.world_size:
            raise ValueError(
                f"a batch of {size} images cannot be shared equally by {fabric.world_size} "
                "processes."
            )
        how = training.compute(fabric, config.precision)
        if how.fuse:
            torch.compiler.reset()  # after a few networks it would leave the next ones as they are
        for trainee in trainees:
            n_own, is_frozen = size // fabric.world_size, config.norm == "frozen"
            trainee.network = shared(trainee.network, fabric, self.share, n_own, frozen=is_frozen)
            trainee.set_up(fabric, self.n_steps, how)
            trainee.checkpoints = Checkpoints(trainee.folder, trainee.fingerprint, training.message)
        self.step = Step(fabric, trainees, teachers, config.clip, how, training.message)

    def go(self) -> None:
        """Train the epochs that are not done yet."""
        self._resume()
        ended = time.perf_counter()
        for epoch in range(len(self.trainees[0].losses), self.n_epochs):
            losses = self._epoch(epoch)
            began, ended = ended, time.perf_counter()
            for trainee, loss in zip(self.trainees, losses, strict=True):
                trainee.losses.append(loss)
                trainee.seconds += (ended - began) / len(self.trainees)
                if self.fabric.is_global_zero:
                    trainee.save()
            if self.fabric.is_global_zero:
                self.training.progress(Tick(epoch + 1, self.n_epochs, losses))
            if epoch + 1 < self.n_epochs and self.fabric.broadcast(self.training.stop()):
                return
        for trainee in self.trainees:
            trainee.finish()

    def _resume(self) -> None:
        # One process reads: the others may be on machines without the folder.
        found = self.fabric.broadcast(self._newest() if self.fabric.is_global_zero else None)
        if found is not None:
            for trainee, file in zip(self.trainees, found, strict=True):
                trainee.load(file.tensors, file.state, self.n_steps)

    def _newest(self) -> list[TensorFile] | None:
        """Read a checkpoint of every network, all of one epoch."""
        saved = [
            {int(file.state["epoch"]): file for file in trainee.checkpoints.whole()}
            for trainee in self.trainees
        ]
        of_all = set[int].intersection(*map(set[int], saved))
        return [own[max(of_all)] for own in saved] if of_all else None

    def _epoch(self, epoch: int) -> list[float]:
        config, seed = self.config, self.training.seed
        torch.manual_seed(epoch_seed(seed, epoch))  # for networks that drop something at random
        for trainee in self.trainees:
            trainee.set_mode()
        total = torch.zeros(len(self.trainees), device=self.fabric.device)
        for i, batch in enumerate(self.data.epoch(seed, epoch, config.batch, self.share)):
            share = (epoch + i / self.n_steps) / self.n_epochs
            # The rate of the middle of a step: it is never zero.
            middle = share + 0.5 / self.n_steps / self.n_epochs
            total += self.step(batch, share, rate_at(middle, config.warm_up, config.schedule))
            for trainee in self.trainees:
                trainee.average.update()
        losses = (self.fabric.all_reduce(total, reduce_op="mean") / self.n_steps).tolist()
        for trainee, loss in zip(self.trainees, losses, strict=True):
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"{trainee.objective.variant.name}, seed {seed}: the loss of epoch {epoch + 1} "
                    f"is {loss}; a lower `learning_rate` or `clip` may help."
                )
        return losses


def rate_at(share: float, warm_up: float, schedule: str) -> float:
    """Compute the factor of the learning rates: up from zero, then constant or half a cosine.

    Example:
        >>> rate_at(0.05, 0.1, "cosine"), rate_at(1.0, 0.1, "cosine"), rate_at(1.0, 0.1, "constant")
        (0.5, 0.0, 1.0)
    """
    if share < warm_up:
        return share / warm_up
    return cosine((share - warm_up) / (1 - warm_up)) if schedule == "cosine" else 1.0


class Step:
    """Changes the weights by one batch: teachers, forward, backward, clipping, optimiser.

    On one GPU the whole step is a CUDA graph: one call starts hundreds of small kernels. Numbers
    that change from step to step lie in memory that the graph reads. Where teachers compute in
    bfloat16, the weights of their convolutions are rounded to it in place.
    """

    def __init__(
        self,
        fabric: Any,
        trainees: Sequence[Trainee],
        teachers: Sequence[nn.Module],
        clip: float,
        how: Compute,
        message: Callable[[str], object],
    ) -> None:
        self.fabric, self.trainees, self.teachers = fabric, trainees, teachers
        self.clip, self.how, self.message = clip, how, message
        self.settings = torch.zeros(len(trainees), device=fabric.device)
        self._stream = torch.cuda.Stream(fabric.device) if how.capture else None
        self._graphed = Graphed(self._on_static, self._stream, self._not_captured)
        self._static: Batch | None = None
        self._losses: Tensor | None = None
        # As a function of the network it is compiled once for all teachers.
        self._ask = torch.compile(_raw, dynamic=False) if how.fuse else _raw
        for teacher in teachers:
            if how.half and isinstance(teacher, DenseDepth):
                teacher.narrow()
        if how.capture:
            for group in self._groups():
                group["lr"] = torch.zeros((), device=fabric.device)

    def on_stream(self) -> AbstractContextManager[None]:
        """Train on a stream of its own, which a graph needs."""
        return on_stream(self._stream)

    def __call__(self, batch: Batch, share: float, factor: float) -> Tensor:
        """Return this process's share of the losses before the step, ``(n,)``.

        Args:
            batch: Images, depth, and teachers' answers.
            share: Share of the training that is done.
            factor: Factor of the learning rates.
        """
        for own, trainee in zip(self.settings, self.trainees, strict=True):
            own.fill_(trainee.objective.setting(share))
        for group in self._groups():
            rate = group["highest"] * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self._stream is None:
            return self._plain(batch)
        if self._static is None:
            self._static = Batch(*(None if p is None else p.clone() for p in batch))  # pyright: ignore[reportArgumentType] (None stays where it was)
        for static, new in zip(self._static, batch, strict=True):
            if static is not None and new is not None:
                static.copy_(new)
        self._graphed()
        assert self._losses is not None
        return self._losses.clone()

    def _groups(self) -> list[dict[str, Any]]:
        return [group for trainee in self.trainees for group in trainee.optimizer.param_groups]

    def _on_static(self) -> None:
        assert self._static is not None
        with warnings.catch_warnings():  # torch takes the steps before the capture for a mistake
            warnings.filterwarnings(
                "ignore", "This instance was constructed with capturable=True", UserWarning
            )
            self._losses = self._plain(self._static)

    def _not_captured(self, error: RuntimeError) -> None:
        if is_out_of_memory(error):
            raise error
        self.message(f"steps are not replayed from a CUDA graph: {str(error).splitlines()[0]}")

    def _plain(self, batch: Batch) -> Tensor:
        if self.teachers:
            batch = batch._replace(answers=self._asked(batch.images))
        pairs = zip(self.trainees, self.settings, strict=True)
        return torch.stack([self._learn(trainee, batch, setting) for trainee, setting in pairs])

    def _learn(self, trainee: Trainee, batch: Batch, setting: Tensor) -> Tensor:
        n_processes = self.fabric.world_size
        counts = trainee.objective.counts(batch)
        if n_processes > 1:  # of the whole batch; DDP will average the processes' gradients
            counts = self.fabric.all_reduce(counts, reduce_op="sum") / n_processes
        loss = trainee.module(batch, setting, counts)
        self.fabric.backward(loss)
        nn.utils.clip_grad_norm_(trainee.parameters, self.clip, foreach=True)
        trainee.optimizer.step()
        trainee.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    @torch.no_grad()
    def _asked(self, images: Tensor) -> Tensor:
        with precision_of(self.how.half, images.device):
            return torch.stack([self._ask(teacher, images) for teacher in self.teachers])


def _raw(network: Any, images: Tensor) -> Tensor:
    """Return a teacher's unconstrained outputs."""
    return network.raw(images)
