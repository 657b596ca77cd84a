"""One network on its way: its weights and their average, its optimiser, what a checkpoint keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from priornet.training.averaging import WeightAverage
from priornet_paper.depth.methods import Objective
from priornet_paper.depth.step import Learner, Pupil, parameter_groups

__all__ = ["Learning"]


class Learning:
    """A network, and all that changes while it learns.

    Args:
        fabric: From ``make_fabric``, launched.
        network: With ``raw(images)``; with ``encoder`` and ``head`` if it has those.
        objective: What it learns.
        n_steps: In an epoch.
        half: Whether the network computes in bfloat16.
        capture: Whether steps are to be captured in a CUDA graph.
        fuse: Whether to compile it.
    """

    def __init__(
        self,
        fabric: Any,
        network: nn.Module,
        objective: Objective,
        n_steps: int,
        *,
        half: bool,
        capture: bool,
        fuse: bool,
    ) -> None:
        config = objective.config
        self.losses: list[float] = []  # of the epochs done
        self.seconds = 0.0  # that they took before an interruption
        self.network = network.to(fabric.device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue] (an overload that torch does not declare)
        whole = self.network.state_dict()  # of the tensors themselves: they change in place
        floats = {name: own for name, own in whole.items() if own.is_floating_point()}
        self.average = WeightAverage(floats, config.average * n_steps)
        learner: nn.Module = Learner(self.network, objective, half)
        self.optimizer = torch.optim.AdamW(
            parameter_groups(
                self.network, config.learning_rate, config.encoder_rate, config.weight_decay
            ),
            fused=fabric.device.type == "cuda",
            capturable=capture,
        )
        if fuse:
            learner = torch.compile(learner, dynamic=False)  # pyright: ignore[reportAssignmentType] (declared as a callable)
        learner, wrapped = fabric.setup(learner, self.optimizer)
        self.pupil = Pupil(learner, objective, wrapped)

    def finish(self) -> None:
        """Give the network its averaged weights, for good."""
        self.average.keep()
        self.network.eval()

    # -- checkpoints ------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint must keep."""
        tensors = {f"network/{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"average/{k}": v for k, v in self.average.tensors.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{number}/{key}": value for key, value in state.items()}
        return tensors

    def state(self, seconds: float) -> dict[str, Any]:
        """What is no tensor; so many seconds after the last interruption."""
        return {"losses": list(self.losses), "seconds": self.seconds + seconds}

    def load(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any], n_steps: int) -> None:
        """Go on from a checkpoint, with so many steps in an epoch."""
        self.losses, self.seconds = list(state["losses"]), float(state["seconds"])
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            kind, _, key = name.partition("/")
            parts[kind][key] = tensor
        self.network.load_state_dict(parts["network"])
        self.average.load(parts["average"], len(self.losses) * n_steps)
        self._load_optimizer(parts["optimizer"])

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Moments in the memory order of their weights: fused kernels walk them together."""
        optimizer, parameters = self.optimizer, self.pupil.parameters
        for name, tensor in tensors.items():
            number, _, key = name.partition("/")
            parameter = parameters[int(number)]
            moment = tensor.shape == parameter.shape and key != "step"
            own = torch.empty_like(parameter).copy_(tensor) if moment else tensor
            on_device = moment or optimizer.param_groups[0]["fused"]
            optimizer.state[parameter][key] = own.to(parameter.device) if on_device else own
