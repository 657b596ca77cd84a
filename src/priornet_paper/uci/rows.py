"""What networks of a stack learn from: a fold's rows, generated inputs, or a teacher's answers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from priornet.distill.targets import Targets
from priornet.distributions import GaussianEnsemble
from priornet.estimators.model import stack_belief
from priornet.nn import Stack
from priornet.tables.factor_analysis import FactorAnalysisGenerator
from priornet.training import Rows
from priornet_paper.uci.config import Paper
from priornet_paper.uci.folds import FoldStack
from priornet_paper.uci.tasks import Part, Task, members_of, seed_of

__all__ = ["FoldRows", "Prepared"]

_AT_ONCE = 1 << 16  # inputs at which a teacher answers at once


class Prepared(NamedTuple):
    """Rows for a stack, and which of them each task uses."""

    data: Rows
    rows: list[Tensor]
    extra: list[Tensor] | None = None
    epoch_rows: list[int] | None = None


class FoldRows:
    """Prepares the rows of a few folds for the tasks of a stack.

    Args:
        stack: The folds.
        config: Settings.
    """

    def __init__(self, stack: FoldStack, config: Paper) -> None:
        self.stack, self.config = stack, config
        self.places = range(len(stack.folds))
        self._drawn: dict[tuple[int, Part], Tensor] = {}

    def of(self, place: int, part: Part) -> Tensor:
        """Numbers of a fold's rows in the tensors of the stack."""
        return self.stack.rows(place, getattr(self.stack.folds[place], part))

    def plain(self, tasks: list[Task], part: Part) -> Prepared:
        """The folds' own rows."""
        by_place = [self.of(place, part) for place in self.places]
        inputs, targets = self.stack.inputs, self.stack.targets
        data = Rows(inputs, targets, torch.ones_like(targets[:, 0]))
        return Prepared(data, [by_place[task.place] for task in tasks])

    def with_outside(self, tasks: list[Task], part: Part) -> Prepared:
        """The folds' rows, and after them each fold's out-of-domain inputs, marked by a column."""
        inputs, targets = self.stack.inputs, self.stack.targets
        outside = torch.cat([self.outside(place, part) for place in self.places])
        n_in, n_out = len(inputs), self.config.n_out
        marked = torch.cat([targets, torch.ones_like(targets)], -1)
        data = Rows(
            torch.cat([inputs, outside]),
            torch.cat([marked, targets.new_zeros(len(outside), 2)]),
            targets.new_ones(n_in + len(outside)),
        )
        extra = [torch.arange(n_out) + n_in + place * n_out for place in self.places]
        plain = self.plain(tasks, part)
        return Prepared(data, plain.rows, [extra[task.place] for task in tasks])

    def outside(self, place: int, part: Part) -> Tensor:
        """Out-of-domain inputs of a fold; a factor analysis may take longer than training."""
        if (place, part) not in self._drawn:
            inputs = self.stack.inputs[self.of(place, part)]
            model = FactorAnalysisGenerator(spread=self.config.ood_spread)
            seed = seed_of(self.config, self.stack.folds[place], 1, "outside")
            source = Generator().manual_seed(seed)
            drawn = model.fit(inputs.cpu().numpy()).sample(self.config.n_out, source)
            self._drawn[place, part] = drawn.to(inputs)
        return self._drawn[place, part]

    def asked(self, targets: Targets, tasks: list[Task], part: Part, teachers: Stack) -> Prepared:
        """Noisy inputs with the teachers' answers; tasks of one fold and noise share them.

        Args:
            targets: Packs the answers.
            tasks: Students.
            part: Rows near which the teachers are asked.
            teachers: Every fold's ensemble, one fold after the other.
        """
        n_rows = [len(self.of(task.place, part)) for task in tasks]
        groups: dict[tuple[int, float], Tensor] = {}
        inputs: list[Tensor] = []
        answers: list[Tensor] = []
        start = 0
        for task in tasks:
            key = (task.place, task.setting["noise"])
            if key in groups:
                continue
            x = self._noisy(*key, part)
            teacher = members_of(teachers, task.place, self.config.n_members)
            inputs.append(x)
            ask = _belief_there if x.is_cuda else stack_belief
            answers += [targets.pack(ask(teacher, p)).to(x) for p in x.split(_AT_ONCE)]
            groups[key] = torch.arange(start, start + len(x))
            start += len(x)
        data = Rows(torch.cat(inputs), torch.cat(answers), inputs[0].new_ones(start))
        rows = [groups[task.place, task.setting["noise"]] for task in tasks]
        return Prepared(data, rows, epoch_rows=n_rows)

    def _noisy(self, place: int, noise: float, part: Part) -> Tensor:
        x = self.stack.inputs[self.of(place, part)]
        if noise == 0:
            return x
        copies = max(1, min(self.config.epochs, self.config.n_asked // len(x)))
        seed = seed_of(self.config, self.stack.folds[place], 0, "noise")
        source = Generator().manual_seed(seed)
        return torch.cat(
            [x + noise * torch.randn(x.shape, generator=source).to(x) for _ in range(copies)]
        )


@torch.no_grad()
def _belief_there(stack: Stack, x: Tensor) -> GaussianEnsemble:
    """As :func:`stack_belief`, on the device: there are millions of answers, and they stay."""
    members = stack.head.distribution(stack.raw(x.expand(stack.n_networks, *x.shape)).double())
    return GaussianEnsemble.from_precision_tril(
        members.loc, members.precision_tril, validate_args=False
    )
