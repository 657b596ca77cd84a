"""The paper's UCI protocol on a few folds: every setting of every fold trains in one stack.

For each method: train all settings on part of each training fold, choose by the NLL of the rest,
train the chosen setting on the whole training fold. Nothing here sees test targets; see
:mod:`priornet_paper.uci.score` for what happens to the beliefs that come out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from priornet.methods import TABULAR
from priornet.nn import Stack
from priornet.nn.architecture import Network
from priornet_paper.uci.choice import tells_best, validation_nll
from priornet_paper.uci.config import LIKELIHOOD, STUDENTS, Paper, Setting
from priornet_paper.uci.folds import FoldStack
from priornet_paper.uci.rows import FoldRows
from priornet_paper.uci.tasks import Part, Task, members_of
from priornet_paper.uci.train import Trainer, Trainers

__all__ = ["Outcome", "Teachers", "n_epochs", "solve", "solve_gaussians"]

Teachers = dict[Part, NDArray[np.float32]]
"""Weights of every fold's ensemble, one fold after the other, by the rows they learnt from."""

# Methods whose networks know by themselves what they do not know.
_DETECTORS = tuple(method.key for method in TABULAR if method.head == "normal-wishart")
_N_STRANGE = 2000


class Outcome(NamedTuple):
    """One method on every fold of a stack."""

    networks: list[Stack]
    """What was trained with the chosen setting, per fold: one network, or the ensemble."""
    chosen: list[Setting]
    seconds: float


def n_epochs(config: Paper, methods: Sequence[str]) -> int:
    """Epochs of stacks that :func:`solve` runs, for a progress bar."""
    others = sum(method not in LIKELIHOOD for method in methods)
    has_student = any(method in STUDENTS for method in methods)
    has_ensemble = has_student or "ENSM" in methods
    gaussian = ("Single" in methods) + has_ensemble + has_student
    return config.epochs * (2 * others + gaussian + (gaussian > 0))


def solve(
    stack: FoldStack,
    config: Paper,
    methods: Sequence[str],
    tick: Callable[[], object] = lambda: None,
    teachers: Teachers | None = None,
) -> dict[str, Outcome]:
    """Search, choose and train every method on the folds of a stack.

    Args:
        stack: The folds.
        config: Settings.
        methods: Which ones.
        tick: Called after every epoch of a stack.
        teachers: Of the students, from :func:`solve_gaussians`; trained here if None.
    """
    block = _Block(stack, config, tick)
    found: dict[str, Outcome] = {}
    if teachers is not None:
        block.teach(teachers)
    elif set(methods) & {*LIKELIHOOD, *STUDENTS}:
        found |= block.gaussians(methods)
    return found | block.others(methods)


def solve_gaussians(
    stack: FoldStack,
    config: Paper,
    methods: Sequence[str],
    tick: Callable[[], object] = lambda: None,
) -> tuple[dict[str, Outcome], Teachers]:
    """The first part of :func:`solve`: the single network, the ensemble, and students' teachers.

    Args:
        stack: The folds.
        config: Settings.
        methods: All that are wanted; students among them want teachers.
        tick: Called after every epoch of a stack.
    """
    block = _Block(stack, config, tick)
    return block.gaussians(methods), block.taught()


class _Block:
    def __init__(self, stack: FoldStack, config: Paper, tick: Callable[[], object]) -> None:
        self.stack, self.config = stack, config
        self.rows = FoldRows(stack, config)
        self.trainers = Trainers(self.rows, tick)
        self.places = self.rows.places
        self.teachers: dict[Part, Stack] = {}

    def teach(self, teachers: Teachers) -> None:
        """Take teachers that were trained elsewhere."""
        n_inputs, n_networks = self.stack.inputs.shape[1], len(self.places) * self.config.n_members
        network = Network(n_inputs, (self.config.hidden,), 1)
        for part, weights in teachers.items():
            self.teachers[part] = network.build([0] * n_networks, self.stack.inputs)
            with torch.no_grad():
                self.teachers[part].weights.copy_(torch.from_numpy(weights))

    def taught(self) -> Teachers:
        """What :meth:`teach` takes."""
        return {part: stack.weights.detach().cpu().numpy() for part, stack in self.teachers.items()}

    def others(self, methods: Sequence[str]) -> dict[str, Outcome]:
        """All but the single network and the ensemble."""
        return {
            method: self._searched(method, self.trainers.of(method, self.teachers))
            for method in methods
            if method not in LIKELIHOOD
        }

    def gaussians(self, methods: Sequence[str]) -> dict[str, Outcome]:
        """The single network and the ensemble: one search, each judged for itself."""
        config, train, found = self.config, self.trainers.gaussian, dict[str, Outcome]()
        has_students = any(method in STUDENTS for method in methods)
        started = time.perf_counter()
        has_ensemble = has_students or "ENSM" in methods
        points, n_each = config.points("Single"), config.n_tried if has_ensemble else 1
        tried = train(
            [Task(p, point, m) for p in self.places for point in points for m in range(n_each)],
            "inner",
        )
        searched = time.perf_counter() - started
        if "Single" in methods:
            chosen = self._best("Single", tried.select(range(0, tried.n_networks, n_each)))
            began = time.perf_counter()
            final = train([Task(p, chosen[p]) for p in self.places], "train")
            seconds = searched / n_each + time.perf_counter() - began
            found["Single"] = Outcome([final.select([p]) for p in self.places], chosen, seconds)
        if has_ensemble:
            chosen = self._best("ENSM", tried, n_each)
            began = time.perf_counter()
            tasks = [Task(p, chosen[p], m) for p in self.places for m in range(config.n_members)]
            final = self.teachers["train"] = train(tasks, "train")
            seconds = searched + time.perf_counter() - began
            ensembles = [members_of(final, place, config.n_members) for place in self.places]
            if has_students:  # what a search sees must not have seen the validation rows either
                self.teachers["inner"] = train(tasks, "inner")
            if "ENSM" in methods:
                found["ENSM"] = Outcome(ensembles, chosen, seconds)
        return found

    def _searched(self, method: str, train: Trainer) -> Outcome:
        started = time.perf_counter()
        chosen = self._choose(method, train)
        final = train([Task(place, chosen[place]) for place in self.places], "train")
        networks = [final.select([place]) for place in self.places]
        return Outcome(networks, chosen, time.perf_counter() - started)

    def _choose(self, method: str, train: Trainer) -> list[Setting]:
        points = self.config.points(method)
        tasks = [Task(place, point) for place in self.places for point in points]
        return self._best(method, train(tasks, "inner"))

    def _best(self, method: str, tried: Stack, n_each: int = 1) -> list[Setting]:
        """The setting of lowest validation NLL, per fold; see :attr:`Paper.selection`.

        Args:
            method: Whose settings.
            tried: For every fold and setting ``n_each`` networks, one after the other.
            n_each: Networks that are judged together, as an ensemble.
        """
        points = self.config.points(method)
        by_knowledge = method in _DETECTORS and self.config.selection == "one-se"
        n = len(points) * n_each
        chosen: list[Setting] = []
        for place in self.places:
            networks = tried.select(range(place * n, (place + 1) * n))
            held = self.stack.rows(place, self.stack.folds[place].validation)
            known, targets = self.stack.inputs[held], self.stack.targets[held]
            nll = validation_nll(networks, known, targets, n_each)
            best = int(nll.mean(-1).argmin())
            if by_knowledge:
                strange = self.rows.outside(place, "inner")[:_N_STRANGE]
                best = tells_best(networks, nll, known, strange, n_each)
            chosen.append(points[best])
        return chosen
