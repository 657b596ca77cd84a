"""The paper's UCI protocol on a few folds: every setting of every fold trains in one stack.

For each method: train all settings on part of each training fold, choose by the NLL of the rest,
train the chosen setting on the whole training fold. Nothing here sees test targets; see
:mod:`priornet.experiments.uci.scores` for what happens to the beliefs that come out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet import losses
from priornet.data.generators import FactorAnalysisGenerator
from priornet.distill.start import start_as_members
from priornet.distill.targets import Objective, Targets, targets_for
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.estimators.fitted import stack_belief
from priornet.estimators.network import HeadKind, Network
from priornet.experiments.uci.choice import tells_best, validation_nll
from priornet.experiments.uci.config import Paper, Setting
from priornet.experiments.uci.folds import FoldStack
from priornet.nn import Stack
from priornet.priors import semi_informative_prior, stack_priors
from priornet.training import Batch, Batches, Loss, Rows, StackedAdam, fit
from priornet.training.schedules import temperature

__all__ = ["STUDENTS", "Outcome", "Teachers", "n_epochs", "solve", "solve_gaussians"]

Part = Literal["inner", "train"]
"""Rows of a training fold: those that settings are tried on, or all."""

Teachers = dict[Part, NDArray[np.float32]]
"""Weights of every fold's ensemble, one fold after the other, by the rows they learnt from."""

STUDENTS: dict[str, tuple[Objective, HeadKind]] = {
    "EnD2": ("endd", "normal-wishart"),
    "EnD": ("end", "gaussian"),
    "MD-EnD": ("md-end", "mixture"),
}
"""What students learn, and what their networks end in."""

_DETECTORS = ("EnD2", "NWPN", "DER")  # methods with knowledge uncertainty of their own
_N_STRANGE = 2000


class Outcome(NamedTuple):
    """One method on every fold of a stack."""

    networks: list[Stack]
    """What was trained with the chosen setting, per fold: one network, or the ensemble."""
    chosen: list[Setting]
    seconds: float


class _Task(NamedTuple):
    """One network: which fold it learns, how, and which of several with the same settings it is."""

    place: int
    setting: Setting
    member: int = 0


class _Prepared(NamedTuple):
    """Rows for a stack, and which of them each task uses."""

    data: Rows
    rows: list[Tensor]
    extra: list[Tensor] | None = None
    epoch_rows: list[int] | None = None


Trainer = Callable[[list[_Task], Part], Stack]


def n_epochs(config: Paper, methods: Sequence[str]) -> int:
    """Epochs of stacks that :func:`solve` runs, for a progress bar."""
    others = sum(method not in ("Single", "ENSM") for method in methods)
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
    elif set(methods) & {"Single", "ENSM", *STUDENTS}:
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
        self.stack, self.config, self.tick = stack, config, tick
        self.places = range(len(stack.folds))
        self.teachers: dict[Part, Stack] = {}
        self._drawn: dict[tuple[int, Part], Tensor] = {}

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
        found: dict[str, Outcome] = {}
        for method in methods:
            if method == "NWPN":
                found[method] = self._searched(method, self._train_prior_network)
            elif method == "DER":
                found[method] = self._searched(method, self._train_evidential)
            elif method in STUDENTS:
                found[method] = self._searched(method, self._student_trainer(method))
        return found

    # -- search and choice ------------------------------------------------------------------------

    def _searched(self, method: str, train: Trainer) -> Outcome:
        started = time.perf_counter()
        chosen = self._choose(method, train)
        final = train([_Task(place, chosen[place]) for place in self.places], "train")
        networks = [final.select([place]) for place in self.places]
        return Outcome(networks, chosen, time.perf_counter() - started)

    def _choose(self, method: str, train: Trainer) -> list[Setting]:
        points = self.config.points(method)
        tasks = [_Task(place, point) for place in self.places for point in points]
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
                strange = self._outside(place, "inner")[:_N_STRANGE]
                best = tells_best(networks, nll, known, strange, n_each)
            chosen.append(points[best])
        return chosen

    def gaussians(self, methods: Sequence[str]) -> dict[str, Outcome]:
        """The single network and the ensemble: one search, each judged for itself."""
        config, found = self.config, dict[str, Outcome]()
        has_students = any(method in STUDENTS for method in methods)
        started = time.perf_counter()
        has_ensemble = has_students or "ENSM" in methods
        points, n_each = config.points("Single"), config.n_tried if has_ensemble else 1
        tried = self._train_gaussian(
            [_Task(p, point, m) for p in self.places for point in points for m in range(n_each)],
            "inner",
        )
        searched = time.perf_counter() - started
        if "Single" in methods:
            chosen = self._best("Single", tried.select(range(0, tried.n_networks, n_each)))
            began = time.perf_counter()
            final = self._train_gaussian([_Task(p, chosen[p]) for p in self.places], "train")
            seconds = searched / n_each + time.perf_counter() - began
            found["Single"] = Outcome([final.select([p]) for p in self.places], chosen, seconds)
        if has_ensemble:
            chosen = self._best("ENSM", tried, n_each)
            began = time.perf_counter()
            tasks = [_Task(p, chosen[p], m) for p in self.places for m in range(config.n_members)]
            final = self.teachers["train"] = self._train_gaussian(tasks, "train")
            seconds = searched + time.perf_counter() - began
            ensembles = [self._members(final, place) for place in self.places]
            if has_students:  # what a search sees must not have seen the validation rows either
                self.teachers["inner"] = self._train_gaussian(tasks, "inner")
            if "ENSM" in methods:
                found["ENSM"] = Outcome(ensembles, chosen, seconds)
        return found

    def _members(self, stack: Stack, place: int) -> Stack:
        m = self.config.n_members
        return stack.select(range(place * m, (place + 1) * m))

    # -- methods ----------------------------------------------------------------------------------

    def _train_gaussian(self, tasks: list[_Task], part: Part) -> Stack:
        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            return losses.gaussian_nll(prediction, batch.targets)

        return self._train("gaussian", loss, tasks, self._plain(tasks, part))

    def _train_evidential(self, tasks: list[_Task], part: Part) -> Stack:
        coefficient = self._column(tasks, "coefficient")

        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            return losses.evidential(prediction, batch.targets, coefficient)

        return self._train("normal-wishart", loss, tasks, self._plain(tasks, part))

    def _train_prior_network(self, tasks: list[_Task], part: Part) -> Stack:
        prior = self._priors(tasks, part)
        beta, gamma = self._column(tasks, "beta"), self._column(tasks, "gamma")

        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            y, has_target = batch.targets.split([1, 1], -1)
            has_target = has_target.squeeze(-1)
            per_row = losses.reverse_kl(prediction, y, prior, beta * has_target)
            # Over beta: Adam does not mind, and gradients are then of the likelihood's size.
            return per_row * (has_target + gamma * (1 - has_target)) / beta

        tied = self.config.tied_evidence
        return self._train("normal-wishart", loss, tasks, self._with_outside(tasks, part), tied)

    def _student_trainer(self, method: str) -> Trainer:
        objective, head = STUDENTS[method]
        # By the grid, not by who is in the stack: a fold must not depend on its company.
        annealed = any(p.get("temperature", 1.0) > 1 for p in self.config.points(method))

        def train(tasks: list[_Task], part: Part) -> Stack:
            starts = [task.setting.get("temperature", 1.0) for task in tasks]
            column = self.stack.targets.new_tensor(starts).unsqueeze(-1)
            targets = targets_for(
                objective,
                1,
                self.config.n_members,
                proxy=False,
                annealed=annealed,
                tempering=self.config.tempering,
            )

            def loss(prediction: Any, batch: Batch, share: Any) -> Tensor:
                is_over = isinstance(share, float) and temperature(share, max(starts)) == 1
                t = 1.0 if is_over else temperature(share, column)
                return targets.loss(prediction, batch.targets, t)

            members = [task.place * self.config.n_members for task in tasks]

            def start(stack: Stack) -> None:
                if self.config.student_start == "member":
                    start_as_members(stack, self.teachers[part], members)

            asked, tied = self._asked(targets, tasks, part), self.config.tied_evidence
            return self._train(head, loss, tasks, asked, tied, start)

        return train

    # -- rows -------------------------------------------------------------------------------------

    def _rows(self, place: int, part: Part) -> Tensor:
        return self.stack.rows(place, getattr(self.stack.folds[place], part))

    def _plain(self, tasks: list[_Task], part: Part) -> _Prepared:
        by_place = [self._rows(place, part) for place in self.places]
        inputs, targets = self.stack.inputs, self.stack.targets
        data = Rows(inputs, targets, torch.ones_like(targets[:, 0]))
        return _Prepared(data, [by_place[task.place] for task in tasks])

    def _with_outside(self, tasks: list[_Task], part: Part) -> _Prepared:
        """The folds' rows, and after them each fold's out-of-domain inputs, marked by a column."""
        inputs, targets = self.stack.inputs, self.stack.targets
        outside = torch.cat([self._outside(place, part) for place in self.places])
        n_in, n_out = len(inputs), self.config.n_out
        marked = torch.cat([targets, torch.ones_like(targets)], -1)
        data = Rows(
            torch.cat([inputs, outside]),
            torch.cat([marked, targets.new_zeros(len(outside), 2)]),
            targets.new_ones(n_in + len(outside)),
        )
        extra = [torch.arange(n_out) + n_in + place * n_out for place in self.places]
        plain = self._plain(tasks, part)
        return _Prepared(data, plain.rows, [extra[task.place] for task in tasks])

    def _outside(self, place: int, part: Part) -> Tensor:
        """Out-of-domain inputs of a fold; a factor analysis may take longer than training."""
        if (place, part) not in self._drawn:
            inputs = self.stack.inputs[self._rows(place, part)]
            model = FactorAnalysisGenerator(spread=self.config.ood_spread)
            source = Generator().manual_seed(self._seed(place, 1, "outside"))
            drawn = model.fit(inputs.cpu().numpy()).sample(self.config.n_out, source)
            self._drawn[place, part] = drawn.to(inputs)
        return self._drawn[place, part]

    def _asked(self, targets: Targets, tasks: list[_Task], part: Part) -> _Prepared:
        """Noisy inputs with the teacher's answers; tasks of one fold and noise share them."""
        n_rows = [len(self._rows(task.place, part)) for task in tasks]
        groups: dict[tuple[int, float], Tensor] = {}
        inputs: list[Tensor] = []
        answers: list[Tensor] = []
        start = 0
        for task in tasks:
            key = (task.place, task.setting["noise"])
            if key in groups:
                continue
            x = self._noisy(*key, part)
            teacher = self._members(self.teachers[part], task.place)
            inputs.append(x)
            ask = _belief_there if x.is_cuda else stack_belief
            answers += [targets.pack(ask(teacher, p)).to(x) for p in x.split(_AT_ONCE)]
            groups[key] = torch.arange(start, start + len(x))
            start += len(x)
        data = Rows(torch.cat(inputs), torch.cat(answers), inputs[0].new_ones(start))
        rows = [groups[task.place, task.setting["noise"]] for task in tasks]
        return _Prepared(data, rows, epoch_rows=n_rows)

    def _noisy(self, place: int, noise: float, part: Part) -> Tensor:
        x = self.stack.inputs[self._rows(place, part)]
        if noise == 0:
            return x
        copies = max(1, min(self.config.epochs, self.config.n_asked // len(x)))
        source = Generator().manual_seed(self._seed(place, 0, "noise"))
        return torch.cat(
            [x + noise * torch.randn(x.shape, generator=source).to(x) for _ in range(copies)]
        )

    # -- training ---------------------------------------------------------------------------------

    def _train(
        self,
        head: HeadKind,
        loss: Loss,
        tasks: list[_Task],
        prepared: _Prepared,
        tied_evidence: bool = False,
        start: Callable[[Stack], None] = lambda _: None,
    ) -> Stack:
        config, data = self.config, prepared.data
        n_members = config.n_members if head == "mixture" else 1
        network = Network(
            data.inputs.shape[1],
            (config.hidden,),
            1,
            head,
            n_members=n_members,
            tied_evidence=tied_evidence,
        )
        seeds = [self._seed(task.place, task.member) for task in tasks]
        stack = network.build(seeds, data.inputs)
        start(stack)
        extra_size = 0 if prepared.extra is None else config.batch_size
        fit(
            stack,
            loss,
            Batches(
                data,
                prepared.rows,
                seeds,
                config.batch_size,
                prepared.extra,
                extra_size,
                prepared.epoch_rows,
            ),
            StackedAdam(
                stack.weights,
                [task.setting["learning_rate"] for task in tasks],
                [task.setting["weight_decay"] for task in tasks],
                config.clip,
            ),
            epochs=config.epochs,
            schedule=lambda _: 1.0,
            progress=lambda _: self.tick(),
        )
        return stack

    def _priors(self, tasks: list[_Task], part: Part) -> NormalWishart:
        """The prior of each network, batch shape ``(S, 1)``."""
        made = [
            semi_informative_prior(
                self.stack.targets[self._rows(task.place, part)],
                task.setting["prior_belief"],
                task.setting["prior_belief"],
                self.config.prior_match,
            )
            for task in tasks
        ]
        return stack_priors(made)

    def _column(self, tasks: list[_Task], name: str) -> Tensor:
        return self.stack.targets.new_tensor([[task.setting[name]] for task in tasks])

    def _seed(self, place: int, member: int, what: str = "network") -> int:
        """A seed per fold and member; settings of one fold share theirs, for a fair comparison."""
        numbers = [self.config.seed, self.stack.folds[place].number, member, len(what)]
        return int(np.random.SeedSequence(numbers).generate_state(1)[0])


_AT_ONCE = 1 << 16  # inputs at which a teacher answers at once


@torch.no_grad()
def _belief_there(stack: Stack, x: Tensor) -> GaussianEnsemble:
    """As :func:`stack_belief`, on the device: there are millions of answers, and they stay."""
    members = stack.head.distribution(stack.raw(x.expand(stack.n_networks, *x.shape)).double())
    return GaussianEnsemble.from_precision_tril(
        members.loc, members.precision_tril, validate_args=False
    )
