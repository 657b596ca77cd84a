"""What one process does for an experiment: train a network, score a model, keep both on disk."""

from __future__ import annotations

import atexit
import gc
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from priornet.depth import depth_record
from priornet.distill import start_as_member
from priornet.evaluation.results import provenance, provenance_of, write_results
from priornet.nn import DenseDepth
from priornet.nn.tensor_files import TensorFile, read_tensors, write_tensors
from priornet_paper.depth.checkpoint import Checkpoints
from priornet_paper.depth.config import STUDENTS
from priornet_paper.depth.devices import getting_the_gpu
from priornet_paper.depth.evaluation import Predict
from priornet_paper.depth.memory import NotEnoughMemory, fitting_batch, is_out_of_memory
from priornet_paper.depth.methods import Scale, objective_for
from priornet_paper.depth.networks import build
from priornet_paper.depth.orders import Event, Order, Task
from priornet_paper.depth.pieces import Pieces
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.recipe import Recipe
from priornet_paper.depth.scoring import Scoring
from priornet_paper.depth.sets import Sets
from priornet_paper.depth.train import (
    Lesson,
    Outcome,
    Tick,
    Training,
    make_fabric,
    train,
)

__all__ = ["Workshop"]

_MAPS = ("ENSM", "EnD2")  # whose maps are kept for figures

_Found = TypeVar("_Found")


class Workshop:
    """Trains and scores, one task after the other, with images that are read once.

    Args:
        order: What to do it with.
        report: Told of every epoch, and of remarks.
    """

    def __init__(self, order: Order, report: Callable[[Event], object] = lambda _: None) -> None:
        self.order, self.report = order, report
        self.sets = Sets(order.config, order.sources)
        self.pieces = Pieces(order, self.sets, self._remark)

    @cached_property
    def fabric(self) -> Any:
        """Fabric, launched."""
        with getting_the_gpu():
            fabric = make_fabric(self.order.device, **self.order.fabric)
            fabric.launch()
            torch.empty(1, device=fabric.device)  # a GPU that others hold says so now
        if fabric.world_size > 1:
            atexit.register(_leave_group)
        return fabric

    @property
    def _device_name(self) -> str:
        """For the record."""
        device = self.order.device
        return torch.cuda.get_device_name() if device == "cuda" else device

    def agreed(self, find: Callable[[], _Found]) -> _Found:
        """What the first of the processes that share a batch finds on disk.

        The others may be on machines without the folder; all of them have to ask.
        """
        if not self.order.fabric:
            return find()
        return self.fabric.broadcast(find() if self.fabric.is_global_zero else None)

    def do(self, task: Task) -> dict[str, Any] | None:
        """A finished piece, or None where the time was up; the first process alone scores."""
        if task.kind == "score":
            return self.pieces.finished(task) or self._score(task)
        found = self.agreed(lambda: [self.pieces.finished(one) for one in task.each])
        missing = [one for one, piece in zip(task.each, found, strict=True) if piece is None]
        if not missing:
            return found[0]
        return self._train(missing)

    def _remark(self, task: Task, text: str) -> None:
        self.report(Event(task.key, remark=text))

    # -- training ---------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[Task]) -> dict[str, Any] | None:
        """Train all that are missing; what is known of the first, or None where time was up."""
        made: dict[Task, dict[str, Any]] = {}
        for some in self._classes(tasks):
            now = self._train_together(some) if len(some) == 1 else self._train_class(some)
            if now is None:
                return None
            made |= now
        return made[tasks[0]]

    def _classes(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Trainings that can go on together: those that have a checkpoint of the same epoch."""
        if len(tasks) == 1:
            return [list(tasks)]
        saved = self.agreed(lambda: {task: self._epochs_saved(task) for task in tasks})
        classes: list[list[Task]] = []
        while saved:
            behind = min(epochs[0] for epochs in saved.values())
            classes.append([task for task, epochs in saved.items() if behind in epochs])
            saved = {task: epochs for task, epochs in saved.items() if behind not in epochs}
        return classes

    def _epochs_saved(self, task: Task) -> list[int]:
        folder, fingerprint = self.pieces.checkpoints(task), self.pieces.fingerprint(task)
        with closing(Checkpoints(folder, fingerprint, lambda _: None)) as files:
            return files.epochs()

    def _train_class(self, tasks: Sequence[Task]) -> dict[Task, dict[str, Any]] | None:
        """Students together, or one by one where they do not fit or one of them fails."""
        try:
            return self._train_together(tasks)
        except (_TooManyTogether, FloatingPointError) as error:
            self._remark(tasks[0], f"{error} {len(tasks)} students go on one by one.")
        # Outside the handler: the error would hold on to all of their memory.
        made, failed = dict[Task, dict[str, Any]](), None
        for task in tasks:
            _free_memory()
            if self.fabric.broadcast(self.order.is_late):
                return None
            try:
                now = self._train_together([task])
            except FloatingPointError as error:  # the others shall be there all the same
                failed = failed or error
                continue
            if now is None:
                return None
            made |= now
        if failed is not None:
            raise failed
        return made

    def _train_together(self, tasks: Sequence[Task]) -> dict[Task, dict[str, Any]] | None:
        """One network, or students of one ensemble."""
        first, device = tasks[0], self.fabric.device  # before images are decoded: it may be taken
        seed = _training_seed(first.seed, first.member)
        objectives = [objective_for(task.recipe, self.sets.scale) for task in tasks]
        data = self.sets.training(first.recipe, objectives[0].uses_foreign, device)
        teachers = [
            self._load(needed, self.agreed(partial(read_tensors, self.pieces.path(needed))))
            for needed in first.needs
        ]
        networks: list[DenseDepth] = []
        for objective in objectives:
            torch.manual_seed(seed)
            networks.append(build(objective, self.order.sources.weights))
            if teachers and first.recipe.config.student_start == "member":
                start_as_member(networks[-1], teachers[0])
        for teacher in teachers:  # not before: the students have taken weights by their names
            teacher.encoder.fold_norms()
        lessons = [
            Lesson(network, objective, self.pieces.checkpoints(task), self.pieces.fingerprint(task))
            for task, network, objective in zip(tasks, networks, objectives, strict=True)
        ]
        training = Training(
            seed,
            self.order.capture,
            self.order.compile,
            progress=lambda tick: self._tick(tasks, tick),
            remark=lambda text: self._remark(first, text),
            stop=lambda: self.order.is_late,
        )

        def run() -> list[Outcome]:
            return train(self.fabric, lessons, data, training, teachers)

        made: dict[Task, dict[str, Any]] = {}
        for task, lesson, outcome in zip(tasks, lessons, self._with_room(tasks, run), strict=True):
            if not outcome.is_finished:
                return None
            made[task] = self._keep(task, lesson, outcome)
        self.fabric.barrier()
        return made

    def _keep(self, task: Task, lesson: Lesson, outcome: Outcome) -> dict[str, Any]:
        """Write a finished network; what is known of it."""
        state = {
            "fingerprint": lesson.fingerprint,
            "losses": outcome.losses,
            "seconds": round(outcome.seconds, 2),
            **self._described(lesson.network, task.recipe),
            **provenance(),
        }
        if self.fabric.is_global_zero:
            write_tensors(self.pieces.path(task), lesson.network.state_dict(), state)
            shutil.rmtree(lesson.folder, ignore_errors=True)
        return state

    def _described(self, network: nn.Module, recipe: Recipe) -> dict[str, Any]:
        """What ``priornet export`` must know of the weights; DD has units of its own."""
        scale = Scale(0.0, 1.0) if recipe.method == "DD" else self.sets.scale
        size = (recipe.config.height, recipe.config.width)
        return depth_record(network, size, scale.mean, scale.std)

    def _with_room(self, tasks: Sequence[Task], run: Callable[[], list[Outcome]]) -> list[Outcome]:
        """Run, and where memory does not suffice for one network say which batch would fit."""
        try:
            return run()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        # Outside the handler: the error would hold on to the memory of the step that failed.
        _free_memory()
        task, config = tasks[0], tasks[0].recipe.config
        if len(tasks) > 1 and self.fabric.world_size == 1:  # others would wait for this process
            raise _TooManyTogether("Memory does not suffice.")

        def probe(smaller: int) -> None:
            self._one_step(replace(task.recipe, config=replace(config, batch=smaller)))

        fits = fitting_batch(probe, config.batch)
        raise NotEnoughMemory(task.key, config.batch, fits, torch.cuda.get_device_name())

    def _one_step(self, recipe: Recipe) -> None:
        """A step without a trace, to see whether it fits."""
        objective = objective_for(recipe, self.sets.scale)
        data = self.sets.training(recipe, objective.uses_foreign, self.fabric.device)
        first = slice(recipe.config.batch)
        data.images, data.depth = data.images[first], data.depth[first]
        network, teachers = build(objective, None), list[DenseDepth]()
        if objective.uses_teachers:
            single = objective_for(Recipe("Single", "Single", recipe.config), self.sets.scale)
            count = recipe.config.n_members
            teachers = [self._placed(build(single, None)) for _ in range(count)]
        with TemporaryDirectory() as nowhere:
            once = Training(0, capture=False, stop=lambda: True)
            lesson = Lesson(network, objective, Path(nowhere), "probe")
            train(self.fabric, [lesson], data, once, teachers)

    def _tick(self, tasks: Sequence[Task], tick: Tick) -> None:
        for task, loss in zip(tasks, tick.losses, strict=True):
            self.report(Event(task.key, tick.epoch, tick.n_epochs, loss))

    def network(self, task: Task) -> DenseDepth:
        """A trained network, ready to answer."""
        return self._load(task, read_tensors(self.pieces.path(task)))

    def _load(self, task: Task, found: TensorFile) -> DenseDepth:
        network = build(objective_for(task.recipe, self.sets.scale), None)
        network.load_state_dict(found.tensors)
        return self._placed(network)

    def _placed(self, network: DenseDepth) -> DenseDepth:
        """On the device, to be asked and not to be changed."""
        network = network.to(self.fabric.device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue] (an overload that torch does not declare)
        return network.eval().requires_grad_(False)

    # -- scoring ----------------------------------------------------------------------------------

    def _networks(self, recipe: Recipe, seed: int) -> list[DenseDepth]:
        """All that a trained model consists of."""
        return [self.network(task) for task in self._own_trainings(Task("score", recipe, seed))]

    def _model(self, recipe: Recipe, networks: Sequence[nn.Module]) -> Predict:
        """A trained model: images in [0, 1] to its belief in metres."""
        objective = objective_for(recipe, self.sets.scale)

        def predict(images: Tensor) -> Any:
            return objective.belief(networks, images.to(memory_format=torch.channels_last))

        return predict

    def _score(self, task: Task) -> dict[str, Any]:
        started = time.perf_counter()
        recipe, seed = task.recipe, task.seed
        networks, teacher = self._networks(recipe, seed), None
        predict = self._model(recipe, networks)
        if recipe.method in STUDENTS:
            ensemble = Recipe("ENSM", "ENSM", recipe.config)
            teacher = self._model(ensemble, self._networks(ensemble, seed))
        scoring = Scoring(
            self.sets,
            PROTOCOLS[recipe.config.dataset],
            self.pieces.strange_to(recipe),
            self.fabric.device,
            self.order.information_draws,
            lambda text: self._remark(task, f"{task.key}: {text}"),
        )
        result = scoring.result(predict, has_belief=recipe.method != "DD", teacher=teacher)
        if recipe.method == "ENSM":
            members = [self._model(recipe, [network]) for network in networks]
            result["members"] = scoring.members(members)
        if recipe.name in _MAPS and seed == recipe.config.seeds[0]:
            maps = scoring.maps(predict, recipe.config.dataset)
            write_tensors(self.pieces.path(task).with_suffix(".maps.safetensors"), maps, {})
        paths = [self.pieces.path(needed) for needed in self._own_trainings(task)]
        trained = [read_tensors(path).state for path in paths]
        piece = {
            "fingerprint": self.pieces.fingerprint(task),
            "result": result,
            "training": [
                {name: state[name] for name in ("losses", "seconds")} for state in trained
            ],
            "seconds": round(time.perf_counter() - started, 2),
            "device": self._device_name,
            **provenance_of([provenance(), *trained]),
        }
        write_results(self.pieces.path(task), piece)
        return piece

    def _own_trainings(self, task: Task) -> list[Task]:
        return task.needs if task.recipe.method == "ENSM" else task.needs[:1]


def _leave_group() -> None:
    """Part from the other processes before this one ends.

    Fabric does so on GPUs only; on a CPU a process whose threads still listen may abort instead.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class _TooManyTogether(Exception):
    """Memory does not suffice for several networks."""


def _free_memory() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def _training_seed(seed: int, member: int) -> int:
    """Of a member of the ensemble; whatever the method, the first sees the same batches."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])
