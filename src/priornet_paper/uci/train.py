"""The paper's UCI protocol on a few folds: every setting of every fold trains in one stack.

For each method: train all settings on part of each training fold, choose one by the NLL of the
rest, train it on the whole training fold. Test targets are not used here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from priornet.distill import start_as_members, targets_for
from priornet.distributions import NormalWishart
from priornet.methods import COMPARED, STUDENTS
from priornet.metrics import ood_auroc
from priornet.nn import Network, Stack
from priornet.priors import semi_informative_prior, stack_priors
from priornet.training import Batches, Loss, StackedAdam, cosine, fit, objectives
from priornet_paper.uci.config import LIKELIHOOD, Paper, Setting
from priornet_paper.uci.folds import FoldRows, FoldStack, Part, Prepared, Task, members_of, seed_of

Trainer = Callable[[list[Task], Part], Stack]
"""``(tasks, part of each fold) -> stack``: trains one network per task."""


class Trainers:
    """The trainers of all methods on a few folds.

    Args:
        rows: Rows of the folds.
        tick: Called after every epoch of a stack.
    """

    def __init__(self, rows: FoldRows, tick: Callable[[], object]) -> None:
        self.rows, self.config, self.tick = rows, rows.config, tick

    def of(self, method: str, teachers: Mapping[Part, Stack]) -> Trainer:
        """Return the trainer of a method other than the single network and the ensemble.

        Args:
            method: Its name.
            teachers: For students: every fold's ensemble, by the rows it learnt from.
        """
        if COMPARED[method].needs_teacher:
            return self._student(method, teachers)
        return {"NWPN": self._prior_network, "DER": self._evidential}[method]

    def gaussian(self, tasks: list[Task], part: Part) -> Stack:
        """Train single networks, of which an ensemble has several."""
        return self._train("Single", objectives.likelihood, tasks, self.rows.plain(tasks, part))

    def _evidential(self, tasks: list[Task], part: Part) -> Stack:
        loss = objectives.evidential(self._column(tasks, "coefficient"))
        return self._train("DER", loss, tasks, self.rows.plain(tasks, part))

    def _prior_network(self, tasks: list[Task], part: Part) -> Stack:
        beta, gamma = self._column(tasks, "beta"), self._column(tasks, "gamma")
        loss = objectives.prior_network(self._priors(tasks, part), beta, gamma)
        return self._train("NWPN", loss, tasks, self.rows.with_outside(tasks, part))

    def _student(self, method: str, teachers: Mapping[Part, Stack]) -> Trainer:
        objective, config = COMPARED[method].objective, self.config
        assert objective is not None
        # By the grid, not by the stack: a fold must not depend on the other networks in it.
        annealed = any(p.get("temperature", 1.0) > 1 for p in config.points(method))
        tempering, n_members = config.tempering, config.n_members
        targets = targets_for(
            objective, 1, n_members, proxy=False, annealed=annealed, tempering=tempering
        )

        def train(tasks: list[Task], part: Part) -> Stack:
            starts = [task.setting.get("temperature", 1.0) for task in tasks]
            column = self.rows.stack.targets.new_tensor(starts).unsqueeze(-1)
            members = [task.place * n_members for task in tasks]

            def start(stack: Stack) -> None:
                if config.student_start == "member":
                    start_as_members(stack, teachers[part], members)

            asked = self.rows.asked(targets, tasks, part, teachers[part])
            return self._train(method, objectives.student(targets, column), tasks, asked, start)

        return train

    def _train(
        self,
        method: str,
        loss: Loss,
        tasks: list[Task],
        prepared: Prepared,
        start: Callable[[Stack], None] = lambda _: None,
    ) -> Stack:
        config, folds, (data, rows, extra, epoch_rows) = (
            self.config,
            self.rows.stack.folds,
            prepared,
        )
        seeds = [seed_of(config, folds[task.place], task.member) for task in tasks]
        stack = self._network(method, data.inputs.shape[1]).build(seeds, data.inputs)
        start(stack)
        size, extra_size = config.batch_size, 0 if extra is None else config.batch_size
        rates, decays = (
            [task.setting[name] for task in tasks] for name in ("learning_rate", "weight_decay")
        )
        fit(
            stack,
            loss,
            Batches(data, rows, seeds, size, extra, extra_size, epoch_rows),
            StackedAdam(stack.weights, rates, decays, config.clip),
            epochs=config.epochs,
            schedule=cosine if config.schedule == "cosine" else lambda _: 1.0,
            progress=lambda _: self.tick(),
        )
        return stack

    def _network(self, method: str, n_inputs: int) -> Network:
        head, widths = COMPARED[method].head, (self.config.hidden,)
        assert head is not None
        n_members = self.config.n_members if head == "mixture" else 1
        tied = self.config.tied_evidence and method in ("NWPN", *STUDENTS)
        return Network(n_inputs, widths, 1, head, n_members=n_members, tied_evidence=tied)

    def _priors(self, tasks: list[Task], part: Part) -> NormalWishart:
        """Make the prior of each network, batch shape ``(S, 1)``."""
        priors: list[NormalWishart] = []
        for task in tasks:
            targets = self.rows.stack.targets[self.rows.of(task.place, part)]
            belief, match = task.setting["prior_belief"], self.config.prior_match
            priors.append(semi_informative_prior(targets, belief, belief, match))
        return stack_priors(priors)

    def _column(self, tasks: list[Task], name: str) -> Tensor:
        return self.rows.stack.targets.new_tensor([[task.setting[name]] for task in tasks])


# -- search ----------------------------------------------------------------------------------------

Teachers = dict[Part, NDArray[np.float32]]
"""Weights of every fold's ensemble, in the order of the folds, by the rows they were fitted to."""

# Methods whose single networks have knowledge uncertainty.
_DETECTORS = tuple(key for key, one in COMPARED.items() if one.head == "normal-wishart")
_N_OOD = 2000


class Outcome(NamedTuple):
    """One method on every fold of a stack."""

    networks: list[Stack]
    """For each fold the network, or the ensemble, that was trained with the chosen setting."""
    chosen: list[Setting]
    seconds: float


def n_epochs(config: Paper, methods: Sequence[str]) -> int:
    """Count the epochs of stacks that :func:`solve` runs, for a progress bar."""
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
    """Search, choose and train methods on the folds of a stack.

    Args:
        stack: The folds.
        config: Settings.
        methods: Names of the methods.
        tick: Called after every epoch of a stack.
        teachers: From :func:`solve_gaussians`; students train their own teachers if None.
    """
    search = _Search(stack, config, tick)
    found: dict[str, Outcome] = {}
    if teachers is not None:
        search.load(teachers)
    elif set(methods) & {*LIKELIHOOD, *STUDENTS}:
        found |= search.gaussians(methods)
    return found | {m: search.method(m) for m in methods if m not in LIKELIHOOD}


def solve_gaussians(
    stack: FoldStack,
    config: Paper,
    methods: Sequence[str],
    tick: Callable[[], object] = lambda: None,
) -> tuple[dict[str, Outcome], Teachers]:
    """Do the first part of :func:`solve`: single network, ensemble, teachers of the students."""
    search = _Search(stack, config, tick)
    return search.gaussians(methods), search.weights()


class _Search:
    def __init__(self, stack: FoldStack, config: Paper, tick: Callable[[], object]) -> None:
        self.stack, self.config = stack, config
        self.rows = FoldRows(stack, config)
        self.trainers = Trainers(self.rows, tick)
        self.places = self.rows.places
        self.teachers: dict[Part, Stack] = {}

    def load(self, teachers: Teachers) -> None:
        """Build the teachers from their weights."""
        n_inputs, n_networks = self.stack.inputs.shape[1], len(self.places) * self.config.n_members
        network = Network(n_inputs, (self.config.hidden,), 1)
        for part, weights in teachers.items():
            self.teachers[part] = network.build([0] * n_networks, self.stack.inputs)
            with torch.no_grad():
                self.teachers[part].weights.copy_(torch.from_numpy(weights))

    def weights(self) -> Teachers:
        """Return the teachers' weights, as :meth:`load` takes them."""
        return {part: stack.weights.detach().cpu().numpy() for part, stack in self.teachers.items()}

    def gaussians(self, methods: Sequence[str]) -> dict[str, Outcome]:
        """Train the single network and the ensemble: one search, two choices."""
        config, train, found = self.config, self.trainers.gaussian, dict[str, Outcome]()
        has_students = any(method in STUDENTS for method in methods)
        has_ensemble = has_students or "ENSM" in methods
        started = time.perf_counter()
        points, n_each = config.points("Single"), config.n_tried if has_ensemble else 1
        tried = train(
            [Task(p, point, m) for p in self.places for point in points for m in range(n_each)],
            "inner",
        )
        searched = time.perf_counter() - started
        if "Single" in methods:
            first = tried.select(range(0, tried.n_networks, n_each))
            single = self._final("Single", train, self._best("Single", first))
            found["Single"] = single._replace(seconds=searched / n_each + single.seconds)
        if has_ensemble:
            chosen = self._best("ENSM", tried, n_each)
            began = time.perf_counter()
            tasks = [Task(p, chosen[p], m) for p in self.places for m in range(config.n_members)]
            final = self.teachers["train"] = train(tasks, "train")
            seconds = searched + time.perf_counter() - began
            ensembles = [members_of(final, place, config.n_members) for place in self.places]
            if has_students:  # the teachers of a search must not have seen its validation rows
                self.teachers["inner"] = train(tasks, "inner")
            if "ENSM" in methods:
                found["ENSM"] = Outcome(ensembles, chosen, seconds)
        return found

    def method(self, method: str) -> Outcome:
        """Search, choose and train any other method."""
        started = time.perf_counter()
        train = self.trainers.of(method, self.teachers)
        points = self.config.points(method)
        tried = train([Task(place, point) for place in self.places for point in points], "inner")
        outcome = self._final(method, train, self._best(method, tried))
        return outcome._replace(seconds=time.perf_counter() - started)

    def _final(self, method: str, train: Trainer, chosen: list[Setting]) -> Outcome:
        began = time.perf_counter()
        final = train([Task(place, chosen[place]) for place in self.places], "train")
        networks = [final.select([place]) for place in self.places]
        return Outcome(networks, chosen, time.perf_counter() - began)

    def _best(self, method: str, tried: Stack, n_each: int = 1) -> list[Setting]:
        """Choose a setting per fold by the validation rows; see :attr:`Paper.selection`.

        Args:
            method: The method whose settings were tried.
            tried: ``n_each`` networks for every fold and setting, in this order.
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
                ood = self.rows.outside(place, "inner")[:_N_OOD]
                best = detects_best(networks, nll, known, ood, n_each)
            chosen.append(points[best])
        return chosen


@torch.no_grad()
def validation_nll(networks: Stack, inputs: Tensor, targets: Tensor, n_each: int) -> Tensor:
    """Compute the NLL of every setting and row; ``n_each`` networks of a setting are a mixture."""
    y = targets.expand(networks.n_networks, -1, 1)
    log_prob = networks.together(inputs).predictive().log_prob(y)
    of_all = log_prob.unflatten(0, (-1, n_each)).logsumexp(1) - math.log(n_each)
    return -torch.nan_to_num(of_all, nan=-torch.inf)


@torch.no_grad()
def detects_best(networks: Stack, nll: Tensor, known: Tensor, ood: Tensor, n_each: int) -> int:
    """Choose the best detector among the settings within one standard error of the best NLL.

    Args:
        networks: ``n_each`` networks for every setting.
        nll: From :func:`validation_nll`.
        known: Validation rows.
        ood: Generated out-of-domain rows.
        n_each: Networks per setting.
    """
    gap = nll - nll[nll.mean(-1).argmin()]
    good = gap.mean(-1) <= gap.std(-1) / math.sqrt(gap.shape[-1])
    inside, outside = (_variance_of_mean(networks, x, n_each) for x in (known, ood))
    areas: list[float] = [
        float(ood_auroc(inside[i], outside[i])) if good[i] else -1.0 for i in range(len(good))
    ]
    return max(range(len(areas)), key=areas.__getitem__)


def _variance_of_mean(networks: Stack, x: Tensor, n_each: int) -> Tensor:
    """Compute knowledge uncertainty at inputs ``(B, D)``, of networks or of ensembles of them."""
    belief = networks.together(x)
    if n_each == 1:
        return belief.knowledge_covariance()[..., 0, 0]
    return belief.loc[..., 0].unflatten(0, (-1, n_each)).var(1, correction=0)
