"""The training loop: one for all methods, on one device or many, which goes on where it stopped.

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
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from priornet.experiments.depth.batches import Share, TrainingSet, epoch_seed
from priornet.experiments.depth.checkpoint import Checkpoints
from priornet.experiments.depth.methods import Objective
from priornet.experiments.depth.sharing import shared
from priornet.experiments.depth.step import (
    Learner,
    Step,
    parameter_groups,
    rate_at,
    set_norms,
)

__all__ = ["Outcome", "Tick", "Training", "fabric_options", "make_fabric", "train"]

_WAYS_TRIED = 3  # to convolve


class Tick(NamedTuple):
    """Where a training stands; handed to the ``progress`` callback after every epoch."""

    epoch: int
    n_epochs: int
    loss: float


@dataclass(frozen=True)
class Training:
    """What one call of :func:`train` needs beside networks and images."""

    seed: int
    folder: Path
    """Where its checkpoints lie."""
    fingerprint: str
    """Of all that it depends on: a checkpoint of another one is not used."""
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
    """What a training did. The network holds its weights, averaged if that was asked for."""

    losses: list[float]
    """Mean loss of every epoch."""
    seconds: float
    """Also those before an interruption."""
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
    raise ImportError("training needs Lightning Fabric: pip install priornet[depth]")


def _is_news(record: logging.LogRecord) -> bool:
    """Not that products could be less precise: networks compute in bfloat16, losses must not.

    Every process would say so, across the progress bars.
    """
    return "set_float32_matmul_precision" not in record.getMessage()


def train(
    fabric: Any,
    network: nn.Module,
    objective: Objective,
    data: TrainingSet,
    training: Training,
    teachers: Sequence[nn.Module] = (),
) -> Outcome:
    """Train a network, from its last checkpoint if there is one.

    Args:
        fabric: From :func:`make_fabric`, launched.
        network: With ``raw(images)``; with ``encoder`` and ``head`` if it has those.
        objective: What it learns.
        data: Training images.
        training: Seed, folder, callbacks.
        teachers: For students, in the ensemble's order; on the device, in evaluation mode. They are
            for this student only: see :class:`~priornet.experiments.depth.step.Step`.
    """
    run = _Run(fabric, network, objective, data, training, teachers)
    with _quickest_convolutions(), run.step.on_stream():
        return run.go()


@contextmanager
def _quickest_convolutions() -> Generator[None]:
    """Let the library try its ways to convolve once: shapes never change.

    Not all of them: with the usual ten for each convolution the first step takes most of a minute.
    """
    cudnn = torch.backends.cudnn
    if not cudnn.is_available():
        yield
        return
    before = cudnn.benchmark, cudnn.benchmark_limit
    cudnn.benchmark, cudnn.benchmark_limit = True, _WAYS_TRIED
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.benchmark_limit = before


class _Run:
    def __init__(
        self,
        fabric: Any,
        network: nn.Module,
        objective: Objective,
        data: TrainingSet,
        training: Training,
        teachers: Sequence[nn.Module],
    ) -> None:
        self.fabric, self.objective, self.data, self.training = fabric, objective, data, training
        self.config = config = objective.config
        self.n_epochs = config.epochs_of(objective.recipe.method)
        self.share = Share(fabric.global_rank, fabric.world_size)
        if min(config.batch, len(data)) % fabric.world_size:
            raise ValueError(
                f"a batch of {min(config.batch, len(data))} images cannot be shared equally by "
                f"{fabric.world_size} processes."
            )
        n_own = min(config.batch, len(data)) // fabric.world_size
        network = shared(network, fabric, self.share, n_own, frozen=config.norm == "frozen")
        self.network = network.to(fabric.device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue] (an overload that torch does not declare)
        self.average = _Average(self.network, config.average * data.n_steps(config.batch))
        on_gpu = fabric.device.type == "cuda"
        capture = training.capture and on_gpu and fabric.world_size == 1
        half = config.precision == "bf16" and on_gpu if training.half is None else training.half
        learner: nn.Module = Learner(self.network, objective, half)
        optimizer = torch.optim.AdamW(
            parameter_groups(
                self.network, config.learning_rate, config.encoder_rate, config.weight_decay
            ),
            fused=on_gpu,
            capturable=capture,
        )
        fuse = training.compile and on_gpu
        if fuse:
            torch.compiler.reset()  # after a few networks it would leave the next ones as they are
            learner = torch.compile(learner, dynamic=False)  # pyright: ignore[reportAssignmentType] (declared as a callable)
        self.plain_optimizer = optimizer
        learner, wrapped = fabric.setup(learner, optimizer)
        self.step = Step(
            fabric,
            learner,
            objective,
            wrapped,
            teachers,
            config.clip,
            half=half,
            capture=capture,
            compile=fuse,
            remark=training.remark,
        )

    def go(self) -> Outcome:
        """The epochs that are not done yet."""
        files = Checkpoints(self.training.folder, self.training.fingerprint, self.training.remark)
        started, losses, before = time.perf_counter(), list[float](), 0.0
        try:
            losses, before = self._resume(files)
            for epoch in range(len(losses), self.n_epochs):
                losses.append(self._epoch(epoch))
                seconds = before + time.perf_counter() - started
                self._save(files, losses, seconds)
                if self.fabric.is_global_zero:
                    self.training.progress(Tick(epoch + 1, self.n_epochs, losses[-1]))
                if epoch + 1 < self.n_epochs and self.fabric.broadcast(self.training.stop()):
                    return Outcome(losses, seconds, is_finished=False)
        finally:
            files.close()
        self.average.keep()
        self.network.eval()
        return Outcome(losses, before + time.perf_counter() - started, is_finished=True)

    def _epoch(self, epoch: int) -> float:
        config, seed = self.config, self.training.seed
        torch.manual_seed(epoch_seed(seed, epoch))  # for networks that drop something at random
        set_norms(self.network, config.norm == "frozen")
        n_steps = self.data.n_steps(config.batch)
        total = torch.zeros((), device=self.fabric.device)
        for i, batch in enumerate(self.data.epoch(seed, epoch, config.batch, self.share)):
            share = (epoch + i / n_steps) / self.n_epochs
            # The rate of the middle of a step: it is never zero.
            factor = rate_at(share + 0.5 / n_steps / self.n_epochs, config.warm_up, config.schedule)
            total += self.step(batch, self.objective.setting(share), factor)
            self.average.update()
        loss = float(self.fabric.all_reduce(total, reduce_op="mean")) / n_steps
        if not math.isfinite(loss):
            name = self.objective.recipe.name
            raise FloatingPointError(
                f"{name}, seed {seed}: the loss of epoch {epoch + 1} is {loss}; a lower "
                "`learning_rate` or `clip` may help."
            )
        return loss

    # -- going on where it stopped ----------------------------------------------------------------

    def _resume(self, files: Checkpoints) -> tuple[list[float], float]:
        """Losses of the epochs done, and the seconds they took."""
        # One process reads: the others may be on machines without the folder.
        found = self.fabric.broadcast(files.latest() if self.fabric.is_global_zero else None)
        if found is None:
            return [], 0.0
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}}
        for name, tensor in found.tensors.items():
            kind, _, key = name.partition("/")
            parts[kind][key] = tensor
        self.network.load_state_dict(parts["network"])
        losses = list(found.state["losses"])
        self.average.load(parts["average"], len(losses) * self.data.n_steps(self.config.batch))
        self._load_optimizer(parts["optimizer"])
        return losses, float(found.state["seconds"])

    def _save(self, files: Checkpoints, losses: list[float], seconds: float) -> None:
        if not self.fabric.is_global_zero:
            return
        tensors = {f"network/{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"average/{k}": v for k, v in self.average.tensors.items()}
        for number, state in self.plain_optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{key}": value for key, value in state.items()}
        files.save(len(losses), tensors, {"losses": losses, "seconds": seconds})

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Moments in the memory order of their weights: fused kernels walk them together."""
        optimizer = self.plain_optimizer
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for name, tensor in tensors.items():
            number, _, key = name.partition("/")
            parameter = parameters[int(number)]
            moment = tensor.shape == parameter.shape and key != "step"
            own = torch.empty_like(parameter).copy_(tensor) if moment else tensor
            on_device = moment or optimizer.param_groups[0]["fused"]
            optimizer.state[parameter][key] = own.to(parameter.device) if on_device else own


class _Average:
    """Weights averaged over the last steps; less noisy than the weights themselves."""

    def __init__(self, network: nn.Module, horizon: float) -> None:
        self.horizon, self.n_seen = horizon, 0
        whole = network.state_dict()  # of the tensors themselves: they change in place
        self.own = {k: v.detach() for k, v in whole.items() if v.is_floating_point()}
        self.tensors = {k: v.clone() for k, v in self.own.items()} if horizon > 0 else {}

    @torch.no_grad()
    def update(self) -> None:
        """Take in a step."""
        if not self.tensors:
            return
        self.n_seen += 1
        share = 1 / min(self.horizon, 1 + self.n_seen / 10)  # a young average forgets quickly
        averages, own = list(self.tensors.values()), list(self.own.values())
        torch._foreach_lerp_(averages, own, min(share, 1.0))  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage] (as torch's own averaging does)

    def load(self, tensors: dict[str, Tensor], n_seen: int) -> None:
        """Go on from a checkpoint."""
        self.n_seen = n_seen
        for name, tensor in tensors.items():
            self.tensors[name].copy_(tensor)

    @torch.no_grad()
    def keep(self) -> None:
        """Give the network its average for good."""
        for name, average in self.tensors.items():
            self.own[name].copy_(average)
