"""Folds of a table, and the rows from which the networks of a stack learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet.distill import Targets
from priornet.distributions import GaussianEnsemble
from priornet.nn import Stack, stack_belief
from priornet.tables import FactorAnalysisGenerator
from priornet.training import Rows
from priornet_paper.uci.config import Paper, Setting

Ints = NDArray[np.int64]
Part = Literal["inner", "train"]
"""Rows of a training fold: those on which settings are tried, or all of them."""

_CHUNK = 1 << 16  # inputs in one call of a teacher


class Fold(NamedTuple):
    """Row numbers of one split."""

    number: int
    test: Ints
    train: Ints
    """All other rows."""
    inner: Ints
    """Rows of ``train`` on which settings are tried."""
    validation: Ints
    """The rest of ``train``, on which settings are compared."""


def k_folds(n_rows: int, n_folds: int, seed: int) -> list[Ints]:
    """Shuffle a table and cut it into test sets whose sizes differ by one row at most."""
    order = np.random.RandomState(seed).permutation(n_rows)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def make_fold(
    number: int, test: Ints, n_rows: int, validation_share: float = 0.0, seed: int = 0
) -> Fold:
    """Add the training rows to a test set, and draw validation rows among them."""
    train = np.setdiff1d(np.arange(n_rows), test)
    order = np.random.RandomState([seed, number]).permutation(len(train))
    n_held = round(validation_share * len(train))
    return Fold(number, test, train, np.sort(train[order[n_held:]]), np.sort(train[order[:n_held]]))


@dataclass(frozen=True)
class FoldStack:
    """The whole table once per fold, standardised by the fold's training rows, end to end."""

    folds: list[Fold]
    inputs: Tensor
    """``(F N, D)``."""
    targets: Tensor
    """``(F N, 1)``."""
    shift: list[float]
    """Mean of the targets in each fold's training rows."""
    scale: list[float]
    """Their standard deviation."""

    @classmethod
    def of(
        cls,
        inputs: NDArray[np.float64],
        targets: NDArray[np.float64],
        folds: Sequence[Fold],
        device: str,
    ) -> FoldStack:
        """Standardise a table, inputs ``(N, D)`` and targets ``(N,)``, for every fold."""
        x, y = [], []
        shift, scale = [], []
        for fold in folds:
            mean, spread = inputs[fold.train].mean(0), inputs[fold.train].std(0)
            x.append((inputs - mean) / np.where(spread > 0, spread, 1.0))
            shift.append(float(targets[fold.train].mean()))
            scale.append(float(targets[fold.train].std()))
            y.append((targets - shift[-1]) / scale[-1])

        def tensor(parts: list[NDArray[np.float64]]) -> Tensor:
            return torch.as_tensor(np.concatenate(parts), dtype=torch.float32, device=device)

        return cls(list(folds), tensor(x), tensor(y).unsqueeze(-1), shift, scale)

    @property
    def n_rows(self) -> int:
        """Return the number of rows of the table, N."""
        return len(self.inputs) // len(self.folds)

    def rows(self, place: int, which: Ints) -> Tensor:
        """Return the places of a fold's rows in the tensors; ``place`` counts the stack's folds."""
        return torch.from_numpy(which) + place * self.n_rows


# -- networks of a stack --------------------------------------------------------------------------


class Task(NamedTuple):
    """One network of a stack: the fold that it learns, its settings, its number among equals."""

    place: int
    setting: Setting
    member: int = 0


def members_of(stack: Stack, place: int, n_members: int) -> Stack:
    """Select one fold's ensemble from a stack that holds the folds' ensembles in a row."""
    return stack.select(range(place * n_members, (place + 1) * n_members))


Draw = Literal["network", "outside", "noise"]
# The committed results were made with these numbers. Out-of-domain inputs share the seed of the
# second network, but draw other values from it, so that nothing depends on it.
_NUMBERS: dict[Draw, int] = {"network": 7, "outside": 7, "noise": 5}


def seed_of(config: Paper, fold: Fold, member: int, draw: Draw = "network") -> int:
    """Return a seed per fold and member; settings of a fold share it, for a fair comparison."""
    numbers = [config.seed, fold.number, member, _NUMBERS[draw]]
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


class Prepared(NamedTuple):
    """Rows for a stack, and the places of those that each task uses."""

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
        """Return the places of a fold's rows in the tensors of the stack."""
        return self.stack.rows(place, getattr(self.stack.folds[place], part))

    def plain(self, tasks: list[Task], part: Part) -> Prepared:
        """Prepare the folds' own rows."""
        by_place = [self.of(place, part) for place in self.places]
        inputs, targets = self.stack.inputs, self.stack.targets
        data = Rows(inputs, targets, torch.ones_like(targets[:, 0]))
        return Prepared(data, [by_place[task.place] for task in tasks])

    def with_outside(self, tasks: list[Task], part: Part) -> Prepared:
        """Prepare the folds' rows, then out-of-domain inputs, told apart by a column."""
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
        """Return a fold's out-of-domain inputs, drawn once: it may take longer than training."""
        if (place, part) not in self._drawn:
            inputs = self.stack.inputs[self.of(place, part)]
            model = FactorAnalysisGenerator(spread=self.config.ood_spread)
            seed = seed_of(self.config, self.stack.folds[place], 1, "outside")
            source = Generator().manual_seed(seed)
            drawn = model.fit(inputs.cpu().numpy()).sample(self.config.n_out, source)
            self._drawn[place, part] = drawn.to(inputs)
        return self._drawn[place, part]

    def asked(self, targets: Targets, tasks: list[Task], part: Part, teachers: Stack) -> Prepared:
        """Prepare noisy inputs with the teachers' answers; tasks of one fold and noise share them.

        Args:
            targets: Packs the answers.
            tasks: Students.
            part: Rows to which the noise is added.
            teachers: Every fold's ensemble, in the order of the folds.
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
            ask = _belief_on_device if x.is_cuda else stack_belief
            answers += [targets.pack(ask(teacher, p)).to(x) for p in x.split(_CHUNK)]
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
def _belief_on_device(stack: Stack, x: Tensor) -> GaussianEnsemble:
    """Compute what :func:`stack_belief` does, and leave the millions of answers on the device."""
    members = stack.head.distribution(stack.raw(x.expand(stack.n_networks, *x.shape)).double())
    return GaussianEnsemble.from_precision_tril(
        members.loc, members.precision_tril, validate_args=False
    )
