"""Training of each method on folds: its loss, its rows, its head."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from priornet.distill import start_as_members, targets_for
from priornet.distributions import NormalWishart
from priornet.methods import METHODS
from priornet.nn import Network, Stack
from priornet.priors import semi_informative_prior, stack_priors
from priornet.training import Batches, Loss, StackedAdam, cosine, fit, objectives
from priornet_paper.uci.folds import FoldRows, Part, Prepared, Task, seed_of

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
        if METHODS[method].needs_teacher:
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
        tied, rows = self.config.tied_evidence, self.rows.with_outside(tasks, part)
        return self._train("NWPN", loss, tasks, rows, tied)

    def _student(self, method: str, teachers: Mapping[Part, Stack]) -> Trainer:
        objective = METHODS[method].objective
        assert objective is not None
        # By the grid, not by the stack: a fold must not depend on the other networks in it.
        annealed = any(p.get("temperature", 1.0) > 1 for p in self.config.points(method))
        targets = targets_for(
            objective,
            1,
            self.config.n_members,
            proxy=False,
            annealed=annealed,
            tempering=self.config.tempering,
        )

        def train(tasks: list[Task], part: Part) -> Stack:
            starts = [task.setting.get("temperature", 1.0) for task in tasks]
            column = self.rows.stack.targets.new_tensor(starts).unsqueeze(-1)
            members = [task.place * self.config.n_members for task in tasks]

            def start(stack: Stack) -> None:
                if self.config.student_start == "member":
                    start_as_members(stack, teachers[part], members)

            asked = self.rows.asked(targets, tasks, part, teachers[part])
            loss, tied = objectives.student(targets, column), self.config.tied_evidence
            return self._train(method, loss, tasks, asked, tied, start)

        return train

    def _train(
        self,
        method: str,
        loss: Loss,
        tasks: list[Task],
        prepared: Prepared,
        tied_evidence: bool = False,
        start: Callable[[Stack], None] = lambda _: None,
    ) -> Stack:
        config, (data, rows, extra, epoch_rows) = self.config, prepared
        folds = self.rows.stack.folds
        seeds = [seed_of(config, folds[task.place], task.member) for task in tasks]
        stack = self._network(method, data.inputs.shape[1], tied_evidence).build(seeds, data.inputs)
        start(stack)
        size, extra_size = config.batch_size, 0 if extra is None else config.batch_size
        optimizer = StackedAdam(
            stack.weights,
            [task.setting["learning_rate"] for task in tasks],
            [task.setting["weight_decay"] for task in tasks],
            config.clip,
        )
        fit(
            stack,
            loss,
            Batches(data, rows, seeds, size, extra, extra_size, epoch_rows),
            optimizer,
            epochs=config.epochs,
            schedule=cosine if config.schedule == "cosine" else lambda _: 1.0,
            progress=lambda _: self.tick(),
        )
        return stack

    def _network(self, method: str, n_inputs: int, tied_evidence: bool) -> Network:
        head = METHODS[method].head
        assert head is not None
        n_members = self.config.n_members if head == "mixture" else 1
        return Network(
            n_inputs,
            (self.config.hidden,),
            1,
            head,
            n_members=n_members,
            tied_evidence=tied_evidence,
        )

    def _priors(self, tasks: list[Task], part: Part) -> NormalWishart:
        """Make the prior of each network, batch shape ``(S, 1)``."""
        made = [
            semi_informative_prior(
                self.rows.stack.targets[self.rows.of(task.place, part)],
                task.setting["prior_belief"],
                task.setting["prior_belief"],
                self.config.prior_match,
            )
            for task in tasks
        ]
        return stack_priors(made)

    def _column(self, tasks: list[Task], name: str) -> Tensor:
        return self.rows.stack.targets.new_tensor([[task.setting[name]] for task in tasks])
