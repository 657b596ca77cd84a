"""One network in training: its objective, optimiser, weight average and checkpoints.

A checkpoint file holds the tensors (weights, their averages, the optimiser's moments) and all other
state of one epoch. A process may be killed at any moment; a file damaged later is reported, and the
one before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from priornet.nn import TensorFile, read_tensors, write_tensors
from priornet.training import WeightAverage
from priornet_paper.depth.config import Config
from priornet_paper.depth.methods import Batch, Objective


class Compute(NamedTuple):
    """Precision and speed of the steps of a training."""

    half: bool
    """Networks in bfloat16; losses are float32 always."""
    capture: bool
    """Replay a CUDA graph."""
    fuse: bool
    """Compile the networks, their losses and their teachers."""


@dataclass
class Trainee:
    """A network in training, with all that changes there."""

    network: nn.Module
    """Has ``raw(images)``; ``encoder`` and ``head`` if it has those."""
    objective: Objective
    folder: Path
    """Folder of its checkpoints."""
    fingerprint: str
    """Fingerprint of all that its weights depend on; other checkpoints are not used."""
    losses: list[float] = field(default_factory=list[float])
    """Mean loss of every epoch done."""
    seconds: float = 0.0
    """Training time, also before an interruption; of networks trained together an equal share."""
    is_finished: bool = False
    """Training is over, and the network holds its final weights."""
    module: nn.Module = field(init=False)
    """The network with its loss, as Fabric set it up."""
    optimizer: Any = field(init=False)
    """AdamW as Fabric set it up; its groups name their highest rate ``"highest"``."""
    average: WeightAverage = field(init=False)
    checkpoints: Checkpoints = field(init=False)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Return the weights that the optimiser changes."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def set_up(self, fabric: Any, n_steps: int, how: Compute) -> None:
        """Move the network to its device, and make its optimiser and its average."""
        config = self.objective.config
        self.network = self.network.to(fabric.device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue] (an overload that torch does not declare)
        whole = self.network.state_dict()  # of the tensors themselves: they change in place
        floats = {name: own for name, own in whole.items() if own.is_floating_point()}
        self.average = WeightAverage(floats, config.average * n_steps)
        module: nn.Module = _WithLoss(self.network, self.objective, how.half)
        optimizer = torch.optim.AdamW(
            _parameter_groups(self.network, config),
            fused=fabric.device.type == "cuda",
            capturable=how.capture,
        )
        if how.fuse:
            module = torch.compile(module, dynamic=False)  # pyright: ignore[reportAssignmentType] (declared as a callable)
        self.module, self.optimizer = fabric.setup(module, optimizer)

    def set_mode(self) -> None:
        """Put the network in training mode, its batch norms only if they follow the batches."""
        self.network.train()
        if self.objective.config.norm == "frozen":
            for norm in _norms_in_training(self.network):
                norm.eval()

    def finish(self) -> None:
        """Give the network its averaged weights, for good."""
        self.average.keep()
        self.network.eval()
        self.is_finished = True

    def release(self) -> None:
        """Free the memory that only training needs."""
        for name in ("module", "optimizer", "average"):
            self.__dict__.pop(name, None)

    # -- checkpoints ------------------------------------------------------------------------------

    def save(self) -> None:
        """Keep a checkpoint of the last epoch."""
        tensors = {f"network/{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"average/{k}": v for k, v in self.average.tensors.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{key}": value for key, value in state.items()}
        state = {"losses": list(self.losses), "seconds": self.seconds}
        self.checkpoints.save(len(self.losses), tensors, state)

    def load(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any], n_steps: int) -> None:
        """Restore a checkpoint, with so many steps in an epoch."""
        self.losses, self.seconds = list(state["losses"]), float(state["seconds"])
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            kind, _, key = name.partition("/")
            parts[kind][key] = tensor
        self.network.load_state_dict(parts["network"])
        self.average.load(parts["average"], len(self.losses) * n_steps)
        self._load_optimizer(parts["optimizer"])

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Load moments in the memory order of their weights: fused kernels walk them together."""
        optimizer, parameters = self.optimizer, self.parameters
        for name, tensor in tensors.items():
            number, _, key = name.partition("/")
            parameter = parameters[int(number)]
            is_moment = tensor.shape == parameter.shape and key != "step"
            own = torch.empty_like(parameter).copy_(tensor) if is_moment else tensor
            on_device = is_moment or optimizer.param_groups[0]["fused"]
            optimizer.state[parameter][key] = own.to(parameter.device) if on_device else own


class _WithLoss(nn.Module):
    """A network and its loss as one module: DDP and the compiler see a single forward."""

    def __init__(self, network: nn.Module, objective: Objective, half: bool) -> None:
        super().__init__()
        self.network, self.objective, self.is_half = network, objective, half

    def forward(self, batch: Batch, setting: Tensor, counts: Tensor) -> Tensor:
        """Compute the loss in float32, given over how many things its terms are averaged."""
        with precision_of(self.is_half, batch.images.device):
            outputs = self._outputs(batch)
        head = getattr(self.network, "head", None)
        sums = self.objective.sums(head, outputs, batch, setting)
        return (sums / counts.clamp(min=1) * self.objective.weights(setting)).sum()

    def _outputs(self, batch: Batch) -> Tensor:
        """Compute outputs for the images, and behind them for the out-of-domain ones."""
        network: Any = self.network
        if batch.ood is None:
            return network.raw(batch.images)
        norms = _norms_in_training(network)
        if not norms:
            return network.raw(torch.cat([batch.images, batch.ood]))
        inside = network.raw(batch.images)
        for norm in norms:  # out-of-domain images must not change the statistics
            norm.training = False
        outside = network.raw(batch.ood)
        for norm in norms:
            norm.training = True
        return torch.cat([inside, outside])


def precision_of(half: bool, device: torch.device) -> torch.autocast:
    """Return a context with matrix products in bfloat16, or everything as it is."""
    return torch.autocast(device.type, torch.bfloat16, enabled=half)


def _norms_in_training(network: nn.Module) -> list[nn.Module]:
    kind = nn.modules.batchnorm._BatchNorm  # pyright: ignore[reportPrivateUsage] (all of its kinds)
    return [m for m in network.modules() if isinstance(m, kind) and m.training]


def _parameter_groups(network: nn.Module, config: Config) -> list[dict[str, Any]]:
    """Group parameters: the encoder at its own rate, no decay of biases and norms."""
    encoder = getattr(network, "encoder", None)
    inside = set(map(id, encoder.parameters())) if isinstance(encoder, nn.Module) else set[int]()
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in network.parameters():
        if parameter.requires_grad:
            rate = config.learning_rate * (config.encoder_rate if id(parameter) in inside else 1.0)
            decay = config.weight_decay if parameter.dim() > 1 else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": members, "lr": rate, "highest": rate, "weight_decay": decay}
        for (rate, decay), members in groups.items()
    ]


_KEPT = 2  # the newest, and one to fall back on


class Checkpoints:
    """The checkpoints of one training; ``message`` is called for each that cannot be used."""

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
