"""The tasks of an experiment in their order, the plan that all processes know, and events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from priornet_paper.depth.config import STUDENTS, Config, Variant
from priornet_paper.depth.data import Sources


@dataclass(frozen=True)
class Plan:
    """All that the processes of a run must know."""

    config: Config
    sources: Sources
    folder: Path
    """Folder of finished parts and checkpoints."""
    device: str = "cpu"
    fabric: dict[str, Any] = field(default_factory=dict[str, Any])
    """More arguments of Fabric: ``devices``, ``num_nodes``, ``strategy``."""
    capture: bool = True
    compile: bool = False
    until: float = math.inf
    """Time of day (``time.time()``) after which to stop at the next epoch."""
    information_draws: int = 4
    """Draws for the mutual information of ensembles, which has no closed form."""

    def __post_init__(self) -> None:
        """Refuse weights that would learn nothing, without a sign of it."""
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
        """True once it is time to stop."""
        return time.time() >= self.until


class Task(NamedTuple):
    """One training, or the scoring of one model."""

    kind: Literal["train", "score"]
    variant: Variant
    seed: int
    member: int = 0
    beside: tuple[Variant, ...] = ()
    """Other students of the same teachers, which are trained in the same steps."""

    @property
    def each(self) -> list[Task]:
        """List the trainings of all its networks, each by itself."""
        return [self._replace(variant=v, beside=()) for v in (self.variant, *self.beside)]

    @property
    def key(self) -> str:
        """Return the name of the task, as in file names."""
        member = f".{self.member}" if self.kind == "train" and self.variant.name == "Single" else ""
        return f"{self.variant.name}.{self.seed}{member}"

    @property
    def needs(self) -> list[Task]:
        """List the trainings that must be finished before."""
        method, config = self.variant.method, self.variant.config
        own = [Task("train", self.variant, self.seed)]
        needed = own if self.kind == "score" and method != "ENSM" else []
        if method == "ENSM" or method in STUDENTS:
            single = Variant("Single", "Single", config)
            needed = needed + [Task("train", single, self.seed, m) for m in range(config.n_members)]
        return needed


class Event(NamedTuple):
    """Progress of a task, or a message to the user."""

    key: str
    epoch: int = 0
    n_epochs: int = 0
    loss: float = math.nan
    message: str = ""


def scores_of(variants: Sequence[Variant]) -> list[Task]:
    """List the scores of the results, seed by seed: an unfinished run then has whole seeds."""
    seeds = dict.fromkeys(seed for variant in variants for seed in variant.config.seeds)
    return [Task("score", v, seed) for seed in seeds for v in variants if seed in v.config.seeds]


def with_needs(scores: Sequence[Task]) -> list[Task]:
    """List every task that some scores need, each once and after the tasks that it needs."""
    found: dict[tuple[str, str], Task] = {}
    for score in scores:
        for task in (*(n for need in score.needs for n in (*need.needs, need)), score):
            found.setdefault((task.kind, task.key), task)
    return list(found.values())


def together(tasks: Sequence[Task], n_groups: int = 1) -> list[Task]:
    """Join the trainings of students of one ensemble to so many groups that share its answers."""
    by_teachers: dict[str, list[Task]] = {}
    for task in tasks:
        if task.kind == "train" and task.variant.method in STUDENTS:
            key = [task.seed, task.variant.config.settings_shared_by_students(task.variant.method)]
            by_teachers.setdefault(json.dumps(key, sort_keys=True), []).append(task)
    groups = [found[i::n_groups] for found in by_teachers.values() for i in range(n_groups)]
    beside = {first: tuple(task.variant for task in more) for first, *more in filter(None, groups)}
    joined = {task for _, *more in filter(None, groups) for task in more}
    return [task._replace(beside=beside.get(task, ())) for task in tasks if task not in joined]
