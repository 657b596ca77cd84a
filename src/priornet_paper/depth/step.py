"""One step of training: teachers, forward, backward, clipping and the optimiser.

Several networks may learn from the same batch, such as the students of one ensemble: their teachers
are asked once for all of them, and apart from that each learns as it would alone.

On one GPU the whole step is a CUDA graph: hundreds of small kernels are started by one call. What
changes from step to step lies in memory that the graph reads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from priornet.nn import DenseDepth
from priornet.training.streams import on_stream
from priornet_paper.depth.memory import is_out_of_memory
from priornet_paper.depth.methods import Batch, Objective

__all__ = ["Learner", "Pupil", "Step", "parameter_groups", "precision_of", "rate_at", "set_norms"]

_WARM_UP = 3  # plain steps before the capture: libraries set themselves up in the first ones


class Learner(nn.Module):
    """A network and what it learns as one module: DDP and the compiler see a single forward.

    Args:
        network: With ``raw(images)``.
        objective: What it learns.
        half: Whether the network computes in bfloat16; the loss is float32 always.
    """

    def __init__(self, network: nn.Module, objective: Objective, half: bool = False) -> None:
        super().__init__()
        self.network, self.objective, self.is_half = network, objective, half

    def forward(self, batch: Batch, setting: Tensor, counts: Tensor) -> Tensor:
        """The loss, given over how many things its terms are averaged."""
        with precision_of(self.is_half, batch.images.device):
            outputs = self._outputs(batch)
        head = getattr(self.network, "head", None)
        sums = self.objective.sums(head, outputs, batch, setting)
        return (sums / counts.clamp(min=1) * self.objective.weights(setting)).sum()

    def _outputs(self, batch: Batch) -> Tensor:
        """For the images, and behind them for the foreign ones."""
        network: Any = self.network
        if batch.foreign is None:
            return network.raw(batch.images)
        if _norms_in_training(network):
            return torch.cat([network.raw(batch.images), self._as_if_trained(batch.foreign)])
        return network.raw(torch.cat([batch.images, batch.foreign]))

    def _as_if_trained(self, images: Tensor) -> Tensor:
        """Outputs with the statistics gathered so far, which strange images must not change."""
        norms = _norms_in_training(self.network)
        for norm in norms:
            norm.training = False
        outputs = self.network.raw(images)  # pyright: ignore[reportCallIssue] (no plain module)
        for norm in norms:
            norm.training = True
        return outputs


def precision_of(half: bool, device: torch.device) -> torch.autocast:
    """Matrix products in bfloat16, or everything as it is."""
    return torch.autocast(device.type, torch.bfloat16, enabled=half)


def _norms_in_training(network: nn.Module) -> list[nn.Module]:
    kind = nn.modules.batchnorm._BatchNorm  # pyright: ignore[reportPrivateUsage] (all of its kinds)
    return [m for m in network.modules() if isinstance(m, kind) and m.training]


def set_norms(network: nn.Module, frozen: bool) -> None:
    """Put a network in training mode, its batch norms perhaps not."""
    network.train()
    if frozen:
        for norm in _norms_in_training(network):
            norm.eval()


def parameter_groups(
    network: nn.Module, rate: float, encoder_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Parameters for the optimiser: the encoder at its own rate, no decay of biases and norms."""
    encoder = getattr(network, "encoder", None)
    inside = set(map(id, encoder.parameters())) if isinstance(encoder, nn.Module) else set[int]()
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in network.parameters():
        if parameter.requires_grad:
            own = rate * (encoder_rate if id(parameter) in inside else 1.0)
            decay = weight_decay if parameter.dim() > 1 else 0.0
            groups.setdefault((own, decay), []).append(parameter)
    return [
        {"params": members, "lr": own, "highest": own, "weight_decay": decay}
        for (own, decay), members in groups.items()
    ]


def rate_at(share: float, warm_up: float, schedule: str) -> float:
    """Factor of the learning rates: up from zero, then constant or along half a cosine.

    Example:
        >>> rate_at(0.05, 0.1, "cosine"), rate_at(1.0, 0.1, "cosine"), rate_at(1.0, 0.1, "constant")
        (0.5, 0.0, 1.0)
    """
    from priornet.training.schedules import cosine

    if share < warm_up:
        return share / warm_up
    return cosine((share - warm_up) / (1 - warm_up)) if schedule == "cosine" else 1.0


class Pupil(NamedTuple):
    """A network that learns."""

    learner: nn.Module
    """As Fabric set it up."""
    objective: Objective
    """What it learns."""
    optimizer: Any
    """As Fabric set it up, its groups with their highest rate as ``"highest"``."""

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the optimiser changes."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]


class Step:
    """Changes the weights by one batch.

    Args:
        fabric: Lightning Fabric.
        pupils: Networks that learn from it, each by itself.
        teachers: Networks that students ask; where ``half``, the weights of their convolutions
            are rounded to bfloat16 in place.
        clip: Longest gradient.
        half: Whether teachers compute in bfloat16.
        capture: Replay a CUDA graph; only for one process on a GPU.
        remark: Told, in one line, where that is not possible.
        compile: Let torch.compile fuse the teachers; the learners may be compiled already.
    """

    def __init__(
        self,
        fabric: Any,
        pupils: Sequence[Pupil],
        teachers: Sequence[nn.Module],
        clip: float,
        *,
        half: bool = False,
        capture: bool = False,
        remark: Callable[[str], object] = lambda _: None,
        compile: bool = False,
    ) -> None:
        self.fabric, self.pupils, self.teachers = fabric, list(pupils), teachers
        self.clip, self.half = clip, half
        self.settings = torch.zeros(len(self.pupils), device=fabric.device)
        self.capture, self.remark, self._n_plain = capture, remark, 0
        self._stream = torch.cuda.Stream(fabric.device) if capture else None
        # As a function of the network it is compiled once for all teachers.
        self._ask = torch.compile(_raw, dynamic=False) if compile else _raw
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch | None = None
        self._losses: Tensor | None = None
        for teacher in teachers:
            if half and isinstance(teacher, DenseDepth):
                teacher.narrow()
        if capture:
            for group in self._groups():
                group["lr"] = torch.zeros((), device=fabric.device)

    def on_stream(self) -> AbstractContextManager[None]:
        """Training goes on a stream of its own."""
        return on_stream(self._stream)

    def __call__(self, batch: Batch, settings: Sequence[float], factor: float) -> Tensor:
        """The losses before the step, ``(n,)``; our share of them where processes share.

        Args:
            batch: Images, and what is known of them.
            settings: Of every pupil's objective.
            factor: Of the learning rates.
        """
        self._set(settings, factor)
        if self.capture and self._graph is None and self._n_plain >= _WARM_UP:
            self._record(batch)
        if self._graph is None or self._batch is None or self._losses is None:
            self._n_plain += 1
            return self._warmed(batch) if self.capture else self._plain(batch)
        for static, new in zip(self._batch, batch, strict=True):
            if static is not None and new is not None:
                static.copy_(new)
        self._graph.replay()
        return self._losses.clone()

    def _groups(self) -> list[dict[str, Any]]:
        return [group for pupil in self.pupils for group in pupil.optimizer.param_groups]

    def _set(self, settings: Sequence[float], factor: float) -> None:
        for own, setting in zip(self.settings, settings, strict=True):
            own.fill_(setting)
        for group in self._groups():
            rate = group["highest"] * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _record(self, batch: Batch) -> None:
        static = self._batch = Batch(*(None if p is None else p.clone() for p in batch))  # pyright: ignore[reportArgumentType] (None stays where it was)
        for pupil in self.pupils:
            pupil.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads write checkpoints: only this one must not wait for the device.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._losses = self._plain(static)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            self.capture, self._losses = False, None
            self.remark(f"steps are not replayed from a CUDA graph: {str(error).splitlines()[0]}")
        else:
            self._graph = graph

    def _warmed(self, batch: Batch) -> Tensor:
        """A step before the capture, which torch takes for a mistake."""
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "This instance was constructed with capturable=True", UserWarning
            )
            return self._plain(batch)

    def _plain(self, batch: Batch) -> Tensor:
        if self.teachers:
            batch = batch._replace(answers=self._asked(batch.images))
        pairs = zip(self.pupils, self.settings, strict=True)
        return torch.stack([self._learn(pupil, batch, setting) for pupil, setting in pairs])

    def _learn(self, pupil: Pupil, batch: Batch, setting: Tensor) -> Tensor:
        n_processes = self.fabric.world_size
        counts = pupil.objective.counts(batch)
        if n_processes > 1:  # of the whole batch; DDP will average the processes' gradients
            counts = self.fabric.all_reduce(counts, reduce_op="sum") / n_processes
        pupil.optimizer.zero_grad(set_to_none=True)
        loss = pupil.learner(batch, setting, counts)
        self.fabric.backward(loss)
        nn.utils.clip_grad_norm_(pupil.parameters, self.clip, foreach=True)
        pupil.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def _asked(self, images: Tensor) -> Tensor:
        with precision_of(self.half, images.device):
            return torch.stack([self._ask(teacher, images) for teacher in self.teachers])


def _raw(network: Any, images: Tensor) -> Tensor:
    """What a teacher says."""
    return network.raw(images)
