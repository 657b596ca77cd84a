"""How each method learns: its loss, its rows, what its networks end in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from priornet import losses
from priornet.distill.initialisation import start_as_members
from priornet.distill.targets import OBJECTIVES, targets_for
from priornet.distributions import NormalWishart
from priornet.estimators.student import HEADS
from priornet.nn import Stack
from priornet.nn.architecture import HeadKind, Network
from priornet.priors import semi_informative_prior, stack_priors
from priornet.training import Batch, Batches, Loss, StackedAdam, fit
from priornet.training.schedules import cosine, temperature
from priornet_paper.uci.rows import FoldRows, Prepared
from priornet_paper.uci.tasks import Part, Task, seed_of

__all__ = ["Trainer", "Trainers"]

Trainer = Callable[[list[Task], Part], Stack]
"""Trains one network per task, all as one stack."""


class Trainers:
    """The trainers of all methods on a few folds.

    Args:
        rows: Of the folds.
        tick: Called after every epoch of a stack.
    """

    def __init__(self, rows: FoldRows, tick: Callable[[], object]) -> None:
        self.rows, self.config, self.tick = rows, rows.config, tick

    def of(self, method: str, teachers: Mapping[Part, Stack]) -> Trainer:
        """The trainer of a method other than the single network and the ensemble.

        Args:
            method: Its name.
            teachers: Of students: every fold's ensemble, by the rows it learnt from.
        """
        if method in OBJECTIVES:
            return self._student(method, teachers)
        return {"NWPN": self._prior_network, "DER": self._evidential}[method]

    def gaussian(self, tasks: list[Task], part: Part) -> Stack:
        """Single networks, of which an ensemble has several."""

        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            return losses.gaussian_nll(prediction, batch.targets)

        return self._train("gaussian", loss, tasks, self.rows.plain(tasks, part))

    def _evidential(self, tasks: list[Task], part: Part) -> Stack:
        coefficient = self._column(tasks, "coefficient")

        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            return losses.evidential(prediction, batch.targets, coefficient)

        return self._train("normal-wishart", loss, tasks, self.rows.plain(tasks, part))

    def _prior_network(self, tasks: list[Task], part: Part) -> Stack:
        prior = self._priors(tasks, part)
        beta, gamma = self._column(tasks, "beta"), self._column(tasks, "gamma")

        def loss(prediction: Any, batch: Batch, _: float) -> Tensor:
            y, has_target = batch.targets.split([1, 1], -1)
            has_target = has_target.squeeze(-1)
            per_row = losses.reverse_kl(prediction, y, prior, beta * has_target)
            # Over beta: Adam does not mind, and gradients are then of the likelihood's size.
            return per_row * (has_target + gamma * (1 - has_target)) / beta

        tied, rows = self.config.tied_evidence, self.rows.with_outside(tasks, part)
        return self._train("normal-wishart", loss, tasks, rows, tied)

    def _student(self, method: str, teachers: Mapping[Part, Stack]) -> Trainer:
        objective = OBJECTIVES[method]
        # By the grid, not by who is in the stack: a fold must not depend on its company.
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

            def loss(prediction: Any, batch: Batch, share: Any) -> Tensor:
                is_over = isinstance(share, float) and temperature(share, max(starts)) == 1
                t = 1.0 if is_over else temperature(share, column)
                return targets.loss(prediction, batch.targets, t)

            members = [task.place * self.config.n_members for task in tasks]

            def start(stack: Stack) -> None:
                if self.config.student_start == "member":
                    start_as_members(stack, teachers[part], members)

            asked = self.rows.asked(targets, tasks, part, teachers[part])
            return self._train(
                HEADS[objective], loss, tasks, asked, self.config.tied_evidence, start
            )

        return train

    def _train(
        self,
        head: HeadKind,
        loss: Loss,
        tasks: list[Task],
        prepared: Prepared,
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
        folds = self.rows.stack.folds
        seeds = [seed_of(config, folds[task.place], task.member) for task in tasks]
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
            schedule=cosine if config.schedule == "cosine" else lambda _: 1.0,
            progress=lambda _: self.tick(),
        )
        return stack

    def _priors(self, tasks: list[Task], part: Part) -> NormalWishart:
        """The prior of each network, batch shape ``(S, 1)``."""
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
