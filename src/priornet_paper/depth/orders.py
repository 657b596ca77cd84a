"""What the processes of an experiment are told to do, and what they tell of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from priornet_paper.depth.config import STUDENTS, Config
from priornet_paper.depth.presets import Recipe
from priornet_paper.depth.sources import Sources

__all__ = ["Event", "Order", "Task"]


@dataclass(frozen=True)
class Order:
    """All that the processes of a run must know."""

    config: Config
    sources: Sources
    folder: Path
    """Finished pieces and checkpoints."""
    device: str = "cpu"
    fabric: dict[str, Any] = field(default_factory=dict[str, Any])
    """More arguments of Fabric: ``devices``, ``num_nodes``, ``strategy``."""
    capture: bool = True
    compile: bool = False
    until: float = math.inf
    """Time of day (``time.time()``) after which to stop at the next epoch."""
    information_draws: int = 4
    """For the mutual information of ensembles, which has no closed form."""

    def __post_init__(self) -> None:
        """Refuse what would learn nothing, and not say so."""
        if self.sources.weights is None and self.config.norm == "frozen":
            raise ValueError(
                'norm="frozen" keeps the statistics of ImageNet weights, and there are none: give '
                'weights, or use norm="batch".'
            )
        if self.sources.weights == "imagenet" and self.config.encoder != "efficientnet_lite0":
            raise ValueError(
                f"no package brings the ImageNet weights of {self.config.encoder}: the weights "
                'must be a file with torchvision\'s names, or "none" for random ones.'
            )

    @property
    def is_late(self) -> bool:
        """Whether it is time to stop."""
        return time.time() >= self.until


class Task(NamedTuple):
    """One training, or the scoring of one model."""

    kind: Literal["train", "score"]
    recipe: Recipe
    seed: int
    member: int = 0
    beside: tuple[Recipe, ...] = ()
    """Other students of the same teachers, which are trained in the same steps."""

    @property
    def each(self) -> list[Task]:
        """The training of every one of them by itself."""
        return [self._replace(recipe=r, beside=()) for r in (self.recipe, *self.beside)]

    @property
    def key(self) -> str:
        """Its name, as in file names."""
        member = f".{self.member}" if self.kind == "train" and self.recipe.name == "Single" else ""
        return f"{self.recipe.name}.{self.seed}{member}"

    @property
    def needs(self) -> list[Task]:
        """Trainings that must be finished before."""
        method, members = self.recipe.method, list[Task]()
        if method == "ENSM" or method in STUDENTS:
            single = Recipe("Single", "Single", self.recipe.config)
            count = self.recipe.config.n_members
            members = [Task("train", single, self.seed, m) for m in range(count)]
        if self.kind == "score" and method != "ENSM":
            members = [Task("train", self.recipe, self.seed), *members]
        return members


class Event(NamedTuple):
    """How far a task is; a remark where something should be known."""

    key: str
    epoch: int = 0
    n_epochs: int = 0
    loss: float = math.nan
    remark: str = ""
