"""The work of one process: train networks, score models, keep both on disk.

Finished work has a fingerprint of everything that it depends on (settings, images, first weights,
the teachers of a student), and is not done again while its fingerprint stays the same.
"""

from __future__ import annotations

import atexit
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
from priornet.evaluation import provenance, provenance_of
from priornet.nn import DenseDepth, TensorFile, read_tensors, write_tensors
from priornet_paper.depth.config import STUDENTS, Variant
from priornet_paper.depth.data import Sets
from priornet_paper.depth.machine import (
    NotEnoughMemory,
    fitting_batch,
    free_memory,
    getting_the_gpu,
    is_out_of_memory,
    make_fabric,
)
from priornet_paper.depth.methods import Objective, Scale, build, objective_for
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.score import Predict, Scoring
from priornet_paper.depth.tasks import Event, Plan, Task
from priornet_paper.depth.train import Tick, Training, train
from priornet_paper.depth.trainee import Checkpoints, Trainee
from priornet_paper.runs.store import Store, fingerprint

_MAPS = ("ENSM", "EnD2")  # methods whose maps are kept for figures

_Found = TypeVar("_Found")
Part = dict[str, Any]
"""Plain data of a finished task."""


class Parts:
    """Trained weights and scores in the folder of a plan.

    Args:
        plan: Folder and settings.
        sets: Images.
        message: Called with one line about each part that cannot be used.
    """

    def __init__(self, plan: Plan, sets: Sets, message: Callable[[str], object]) -> None:
        self.plan, self.sets = plan, sets
        self.store = Store(plan.folder, message)

    def fingerprint(self, task: Task) -> str:
        """Return the fingerprint of everything that the outcome of a task depends on."""
        variant, config = task.variant, task.variant.config
        own: list[Any] = [task.kind, config.settings_of(variant.method), task.seed]
        if task.kind == "train":
            uses_ood = objective_for(variant, Scale(0.0, 1.0)).uses_ood
            own += [task.member, self.sets.fingerprint(uses_ood=uses_ood)]
        else:
            protocol = PROTOCOLS[config.dataset].record((config.height, config.width))
            ood = {name: self.sets.set_digest(name) for name in self.ood_sets_of(variant)}
            own += [config.n_test, self.sets.set_digest("test"), ood, protocol]
            own.append(self.plan.information_draws)
            # Older scores of ensembles lack those of the members.
            own += ["members"] if variant.method == "ENSM" else []
        return fingerprint(own + [self.fingerprint(needed) for needed in task.needs])

    def path(self, task: Task) -> Path:
        """Return the file of a finished task."""
        return self.store.path(_file_of(task))

    def finished(self, task: Task) -> Part | None:
        """Read a finished task, or return None if it has to be done."""
        return self.store.read(_file_of(task), lambda: self.fingerprint(task))

    def write(self, task: Task, part: Part, tensors: dict[str, Tensor] | None = None) -> Part:
        """Keep a finished task."""
        return self.store.write(_file_of(task), self.fingerprint(task), part, tensors)

    def checkpoints(self, task: Task) -> Path:
        """Return the folder of an unfinished training."""
        return self.plan.folder / "checkpoints" / task.key

    def forget(self, task: Task) -> None:
        """Remove a task's files, finished or not."""
        self.path(task).unlink(missing_ok=True)
        if task.kind == "train":
            shutil.rmtree(self.checkpoints(task), ignore_errors=True)

    def ood_sets_of(self, variant: Variant) -> list[str]:
        """List the out-of-domain sets of a model: a prior network has learnt one of them."""
        other = self.plan.sources.other(variant.config) if variant.method == "NWPN" else ""
        return [name for name in self.plan.sources.ood if name != other]


def _file_of(task: Task) -> str:
    return f"weights/{task.key}.safetensors" if task.kind == "train" else f"{task.key}.json"


class Worker:
    """Trains networks and scores models, one task after the other; images are read once.

    Args:
        plan: Settings, images, folder, device.
        report: Called with every epoch and every message.
    """

    def __init__(self, plan: Plan, report: Callable[[Event], object] = lambda _: None) -> None:
        self.plan, self.report = plan, report
        self.sets = Sets(plan.config, plan.sources)
        self.parts = Parts(plan, self.sets, self.message)

    @cached_property
    def fabric(self) -> Any:
        """Launch Fabric."""
        with getting_the_gpu():
            fabric = make_fabric(self.plan.device, **self.plan.fabric)
            fabric.launch()
            torch.empty(1, device=fabric.device)  # a GPU that others hold says so now
        if fabric.world_size > 1:
            atexit.register(_leave_group)
        return fabric

    def agreed(self, find: Callable[[], _Found]) -> _Found:
        """Return what the first of the processes that share a batch finds on disk.

        All of these processes must call it: the others may be on machines without the folder.
        """
        if not self.plan.fabric:
            return find()
        return self.fabric.broadcast(find() if self.fabric.is_global_zero else None)

    def do(self, task: Task) -> Part | None:
        """Do a task unless it is finished; return its part, or None if the time was up first.

        Of processes that share a batch only the first one scores; the others return nothing.
        """
        if task.kind == "score":
            if self.plan.fabric and not self.fabric.is_global_zero:
                return {}
            return self.parts.finished(task) or self._score(task)
        found = self.agreed(lambda: [self.parts.finished(one) for one in task.each])
        missing = [one for one, part in zip(task.each, found, strict=True) if part is None]
        return self._train(missing) if missing else found[0]

    def message(self, text: str) -> None:
        """Report a message."""
        self.report(Event("", message=text))

    # -- training ---------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[Task]) -> Part | None:
        """Train networks; return the first one's part, or None if the time was up first."""
        made: dict[Task, Part] = {}
        for group in self._groups(tasks):
            now = self._train_together(group) if len(group) == 1 else self._train_group(group)
            if now is None:
                return None
            made |= now
        return made[tasks[0]]

    def _groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Group the trainings that have a checkpoint of the same epoch: these go on together."""
        if len(tasks) == 1:
            return [list(tasks)]
        saved = self.agreed(lambda: {task: self._epochs_saved(task) for task in tasks})
        groups: list[list[Task]] = []
        while saved:
            behind = min(epochs[0] for epochs in saved.values())
            groups.append([task for task, epochs in saved.items() if behind in epochs])
            saved = {task: epochs for task, epochs in saved.items() if behind not in epochs}
        return groups

    def _epochs_saved(self, task: Task) -> list[int]:
        folder, fingerprint = self.parts.checkpoints(task), self.parts.fingerprint(task)
        with closing(Checkpoints(folder, fingerprint, lambda _: None)) as files:
            return files.epochs()

    def _train_group(self, tasks: Sequence[Task]) -> dict[Task, Part] | None:
        """Train students together, or one by one if they do not fit or one of them fails."""
        try:
            return self._train_together(tasks)
        except (_TooManyTogether, FloatingPointError) as error:
            self.message(f"{error} {len(tasks)} students go on one by one.")
        # Outside the handler: the error would hold on to all of their memory.
        made, failed = dict[Task, Part](), None
        for task in tasks:
            free_memory()
            if self.fabric.broadcast(self.plan.is_late):
                return None
            try:
                now = self._train_together([task])
            except FloatingPointError as error:  # the other students are trained all the same
                failed = failed or error
                continue
            if now is None:
                return None
            made |= now
        if failed is not None:
            raise failed
        return made

    def _train_together(self, tasks: Sequence[Task]) -> dict[Task, Part] | None:
        """Train one network, or students of one ensemble."""
        first, device = tasks[0], self.fabric.device  # before images are decoded: it may be taken
        seed = _training_seed(first.seed, first.member)
        objectives = [objective_for(task.variant, self.sets.scale) for task in tasks]
        data = self.sets.training(first.variant, objectives[0].uses_ood, device)
        teachers = [
            self._load(needed, self.agreed(partial(read_tensors, self.parts.path(needed))))
            for needed in first.needs
        ]
        networks = [self._built(objective, seed, teachers) for objective in objectives]
        for teacher in teachers:  # not before: the students have taken weights by their names
            teacher.encoder.fold_norms()
        trainees = [
            Trainee(network, objective, self.parts.checkpoints(task), self.parts.fingerprint(task))
            for task, network, objective in zip(tasks, networks, objectives, strict=True)
        ]

        def progress(tick: Tick) -> None:
            for task, loss in zip(tasks, tick.losses, strict=True):
                self.report(Event(task.key, tick.epoch, tick.n_epochs, loss))

        training = Training(
            seed,
            self.plan.capture,
            self.plan.compile,
            progress=progress,
            message=self.message,
            stop=lambda: self.plan.is_late,
        )
        self._with_room(tasks, partial(train, self.fabric, trainees, data, training, teachers))
        if not trainees[0].is_finished:
            return None
        made = {
            task: self._keep(task, trainee) for task, trainee in zip(tasks, trainees, strict=True)
        }
        self.fabric.barrier()
        return made

    def _built(self, objective: Objective, seed: int, teachers: Sequence[DenseDepth]) -> DenseDepth:
        """Build a network with its first weights, which a student may take from a teacher."""
        torch.manual_seed(seed)
        network = build(objective, self.plan.sources.weights)
        if teachers and objective.config.student_start == "member":
            start_as_member(network, teachers[0])
        return network

    def _keep(self, task: Task, trainee: Trainee) -> Part:
        """Write a trained network with its record."""
        # Units for `priornet export`; those of DD are the network's own.
        scale = Scale(0.0, 1.0) if task.variant.method == "DD" else self.sets.scale
        size = (task.variant.config.height, task.variant.config.width)
        record = {
            "losses": trainee.losses,
            "seconds": round(trainee.seconds, 2),
            **depth_record(trainee.network, size, scale.mean, scale.std),
            **provenance(),
        }
        if not self.fabric.is_global_zero:
            return {"fingerprint": trainee.fingerprint, **record}
        record = self.parts.write(task, record, trainee.network.state_dict())
        shutil.rmtree(trainee.folder, ignore_errors=True)
        return record

    def _with_room(self, tasks: Sequence[Task], run: Callable[[], None]) -> None:
        """Run a training; where memory does not suffice for one network, name a batch that fits."""
        try:
            run()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        else:
            return
        # Outside the handler: the error would hold on to the memory of the step that failed.
        free_memory()
        task, config = tasks[0], tasks[0].variant.config
        if len(tasks) > 1 and self.fabric.world_size == 1:  # others would wait for this process
            raise _TooManyTogether("Memory does not suffice.")

        def probe(smaller: int) -> None:
            self._one_step(replace(task.variant, config=replace(config, batch=smaller)))

        fits = fitting_batch(probe, config.batch)
        raise NotEnoughMemory(task.key, config.batch, fits, torch.cuda.get_device_name())

    def _one_step(self, variant: Variant) -> None:
        """Do one training step that leaves no trace, to see if it fits in memory."""
        objective = objective_for(variant, self.sets.scale)
        data = self.sets.training(variant, objective.uses_ood, self.fabric.device)
        first = slice(variant.config.batch)
        data.images, data.depth = data.images[first], data.depth[first]
        network, teachers = build(objective, None), list[DenseDepth]()
        if objective.uses_teachers:
            single = objective_for(Variant("Single", "Single", variant.config), self.sets.scale)
            count = variant.config.n_members
            teachers = [self._placed(build(single, None)) for _ in range(count)]
        with TemporaryDirectory() as nowhere:
            once = Training(0, capture=False, stop=lambda: True)
            trainee = Trainee(network, objective, Path(nowhere), "probe")
            train(self.fabric, [trainee], data, once, teachers)

    def network(self, task: Task) -> DenseDepth:
        """Load a trained network."""
        return self._load(task, read_tensors(self.parts.path(task)))

    def _load(self, task: Task, found: TensorFile) -> DenseDepth:
        network = build(objective_for(task.variant, self.sets.scale), None)
        network.load_state_dict(found.tensors)
        return self._placed(network)

    def _placed(self, network: DenseDepth) -> DenseDepth:
        """Put a trained network on the device."""
        network = network.to(self.fabric.device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue] (an overload that torch does not declare)
        return network.eval().requires_grad_(False)

    # -- scoring ----------------------------------------------------------------------------------

    def _score(self, task: Task) -> Part:
        """Score a trained model, and keep the scores with their record."""
        started = time.perf_counter()
        result = self._scores(task)
        trained = [read_tensors(self.parts.path(one)).state for one in _networks_of(task)]
        is_gpu = self.plan.device == "cuda"
        record = {
            "result": result,
            "training": [
                {name: state[name] for name in ("losses", "seconds")} for state in trained
            ],
            "seconds": round(time.perf_counter() - started, 2),
            "device": torch.cuda.get_device_name() if is_gpu else self.plan.device,
            **provenance_of([provenance(), *trained]),
        }
        return self.parts.write(task, record)

    def _scores(self, task: Task) -> dict[str, Any]:
        """Compute the scores of a model, and write its maps if figures show them."""
        variant, config = task.variant, task.variant.config
        scoring = Scoring(
            self.sets,
            PROTOCOLS[config.dataset],
            self.parts.ood_sets_of(variant),
            self.fabric.device,
            self.plan.information_draws,
            lambda text: self.message(f"{task.key}: {text}"),
        )
        networks, teacher = self._networks(task), None
        predict = self._model(variant, networks)
        if variant.method in STUDENTS:
            ensemble = Variant("ENSM", "ENSM", config)
            teacher = self._model(ensemble, self._networks(task._replace(variant=ensemble)))
        result = scoring.result(predict, has_belief=variant.method != "DD", teacher=teacher)
        if variant.method == "ENSM":
            members = [self._model(variant, [network]) for network in networks]
            result["members"] = scoring.members(members)
        if variant.name in _MAPS and task.seed == config.seeds[0]:
            maps = scoring.maps(predict, config.dataset)
            write_tensors(self.parts.path(task).with_suffix(".maps.safetensors"), maps, {})
        return result

    def _networks(self, score: Task) -> list[DenseDepth]:
        return [self.network(task) for task in _networks_of(score)]

    def _model(self, variant: Variant, networks: Sequence[nn.Module]) -> Predict:
        """Return a trained model: images in [0, 1] to its belief in metres."""
        objective = objective_for(variant, self.sets.scale)

        def predict(images: Tensor) -> Any:
            return objective.belief(networks, images.to(memory_format=torch.channels_last))

        return predict


def _networks_of(score: Task) -> list[Task]:
    """List the trainings of a model's own networks; a student's teachers are not its own."""
    return score.needs if score.variant.method == "ENSM" else score.needs[:1]


def _leave_group() -> None:
    """Leave the other processes before this one ends.

    Fabric does so on GPUs only; on a CPU a process whose threads still listen may abort instead.
    """
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


class _TooManyTogether(Exception):
    """Memory does not suffice for several networks."""


def _training_seed(seed: int, member: int) -> int:
    """Return the seed of a member; whatever the method, the first one sees the same batches."""
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])
