"""Finished pieces of an experiment on disk, and by what they are known again.

A piece carries a fingerprint of all that it depends on (settings, images, first weights, the
teachers of a student). One whose fingerprint fits is not made again; one that is damaged, or of
something else, is named and made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from priornet.evaluation.results import read_results
from priornet.nn.tensor_files import read_tensors
from priornet_paper.depth.methods import Scale, objective_for
from priornet_paper.depth.orders import Order, Task
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.recipe import Recipe
from priornet_paper.depth.sets import Sets

__all__ = ["Pieces"]


class Pieces:
    """What is in the folder of an order.

    Args:
        order: Folder and settings.
        sets: Images.
        remark: Told, in one line, of a piece that cannot be used.
    """

    def __init__(self, order: Order, sets: Sets, remark: Callable[[Task, str], object]) -> None:
        self.order, self.sets, self.remark = order, sets, remark

    def fingerprint(self, task: Task) -> str:
        """Of all that the outcome of a task depends on."""
        recipe = task.recipe
        own: list[Any] = [task.kind, recipe.config.settings_of(recipe.method), task.seed]
        if task.kind == "train":
            uses_foreign = objective_for(recipe, Scale(0.0, 1.0)).uses_foreign
            own += [task.member, self.sets.fingerprint(uses_foreign=uses_foreign)]
        else:
            config = recipe.config
            protocol = PROTOCOLS[config.dataset].record((config.height, config.width))
            strange = {name: self.sets.foreign_print(name) for name in self.strange_to(recipe)}
            own += [config.n_test, self.sets.test_print, strange, protocol]
            own.append(self.order.information_draws)
            # Pieces from before members were scored by themselves do not fit.
            own += ["members"] if recipe.method == "ENSM" else []
        own += [self.fingerprint(needed) for needed in task.needs]
        text = json.dumps(own, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def path(self, task: Task) -> Path:
        """File of a finished piece."""
        if task.kind == "train":
            return self.order.folder / "weights" / f"{task.key}.safetensors"
        return self.order.folder / f"{task.key}.json"

    def checkpoints(self, task: Task) -> Path:
        """Folder of what there is of an unfinished training."""
        return self.order.folder / "checkpoints" / task.key

    def forget(self, task: Task) -> None:
        """Drop a finished piece, or what there is of it, so that it is made again."""
        self.path(task).unlink(missing_ok=True)
        if task.kind == "train":
            shutil.rmtree(self.checkpoints(task), ignore_errors=True)

    def finished(self, task: Task) -> dict[str, Any] | None:
        """What is known of a piece that is on disk, or None where it has to be made."""
        path = self.path(task)
        try:
            state = read_tensors(path).state if task.kind == "train" else read_results(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.remark(task, f"{path}: not readable ({error}); it is made again.")
            return None
        if state.get("fingerprint") == self.fingerprint(task):
            return state
        self.remark(task, f"{path}: of other settings or other images; it is made again.")
        return None

    def strange_to(self, recipe: Recipe) -> list[str]:
        """Sets that a model has never seen: a prior network has seen the one it learnt as OOD."""
        other = self.order.sources.other(recipe.config) if recipe.method == "NWPN" else ""
        return [name for name in self.order.sources.foreign if name != other]
