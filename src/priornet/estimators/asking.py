"""How a student asks: its own kind of ensemble in standardised units, others with raw rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from priornet.distill import (
    Answers,
    Drawn,
    Questions,
    Targets,
    Teacher,
    TeacherError,
    TransferSet,
    ask,
    start_as_average,
)
from priornet.distill.teacher import AnswerKind
from priornet.distributions import GaussianEnsemble
from priornet.distributions.factors import PrecisionFactor
from priornet.estimators.base import BaseRegressor
from priornet.nn import Stack
from priornet.tables.target_columns import LARGEST, SMALLEST, Scaling, clip_targets

__all__ = [
    "Asked",
    "MakeTargets",
    "OutsideTeacher",
    "OwnTeacher",
    "pack_answers",
    "teacher_scaling",
]

MakeTargets = Callable[[int, int], Targets]
"""``(number of targets, number of members) -> what is kept of answers``."""

_ASKED_AT_ONCE = 1 << 14  # inputs at which the teacher is asked in one go


class Asked(Protocol):
    """Someone to ask about inputs around a table."""

    has_weights: bool
    """Whether a student can start from its members."""
    kind: AnswerKind
    """How answers vary."""
    n_rows: int | None
    """Rows that each member learnt from, where that is known."""

    def around(
        self, inputs: Tensor, n: int, transfer: TransferSet, generator: Generator
    ) -> tuple[Drawn, Iterator[Answers]]:
        """Draw inputs around standardised rows, and answer in standardised units."""
        ...

    def start(self, student: Stack) -> None:
        """Give a student its first weights, where the teacher has some to give."""
        ...

    def record(self) -> dict[str, Any]:
        """What is kept of the teacher in a saved student."""
        ...


class OwnTeacher:
    """A fitted ensemble of this library, which shares its preprocessing with the student."""

    has_weights = True
    kind: AnswerKind = "smooth"

    def __init__(self, model: BaseRegressor) -> None:
        self._model = model
        n_rows = model.fitted_.training.get("n_rows")  # a file may say anything here
        self.n_rows = n_rows if isinstance(n_rows, int) and n_rows > 0 else None

    def around(
        self, inputs: Tensor, n: int, transfer: TransferSet, generator: Generator
    ) -> tuple[Drawn, Iterator[Answers]]:
        """Rows never leave their standardised form."""
        source = self._model.fitted_.preprocessor.source_
        drawn = transfer.draw(inputs, n, generator, [s.is_continuous for s in source])
        return drawn, self._answers(drawn.inputs)

    def _answers(self, inputs: Tensor) -> Iterator[Answers]:
        for x in inputs.split(_ASKED_AT_ONCE):
            ensemble = checked_ensemble(self._model, self._model.fitted_.standard_belief(x))
            yield Answers(ensemble, torch.ones(len(x), dtype=torch.bool))

    def start(self, student: Stack) -> None:
        """As the average of members, where they fit."""
        start_as_average(student, self._model.fitted_.stack)

    def record(self) -> dict[str, Any]:
        """The teacher's training."""
        return self._model.fitted_.training


def checked_ensemble(model: BaseRegressor, belief: Any) -> GaussianEnsemble:
    """A belief of several Gaussians, or an error about who has it."""
    if not isinstance(belief, GaussianEnsemble):
        raise TypeError(
            "`teacher` must be an ensemble of Gaussians, whose members can disagree; "
            f"{type(model).__name__} predicts one {type(belief).__name__}."
        )
    return belief


class OutsideTeacher:
    """Any other teacher: it gets raw rows, and answers in the units of the targets."""

    has_weights = False
    n_rows: int | None = None

    def __init__(self, teacher: Teacher, questions: Questions, scaling: Scaling) -> None:
        self._teacher, self._questions = teacher, questions
        self.kind: AnswerKind = teacher.kind
        shift, scale = (torch.from_numpy(part) for part in scaling)
        self._shift, self._scale = -shift / scale, 1 / scale
        self._n_members = 0

    def around(
        self, inputs: Tensor, n: int, transfer: TransferSet, generator: Generator
    ) -> tuple[Drawn, Iterator[Answers]]:
        """A teacher that only knows rows of its own is asked about those."""
        if self._teacher.is_stored:
            rows = torch.arange(len(inputs))
            return Drawn(inputs, rows, rows), self._answers(self._questions.table)
        drawn, raw = self._questions.draw(transfer, inputs, n, generator)
        return drawn, self._answers(raw)

    def _answers(self, raw: Any) -> Iterator[Answers]:
        for answers in ask(self._teacher, raw):
            self._n_members = answers.ensemble.n_members
            yield Answers(answers.ensemble.affine(self._shift, self._scale), answers.kept)

    def start(self, student: Stack) -> None:
        """It has no weights that a student could take over."""

    def record(self) -> dict[str, Any]:
        """Its kind."""
        return {"class": type(self._teacher).__name__, "n_members": self._n_members}


def teacher_scaling(answers: Answers) -> Scaling:
    """Mean and standard deviation of the targets that a teacher expects at a table's rows."""
    ensemble = answers.ensemble
    _check_magnitude(ensemble)
    every = np.arange(len(ensemble.means[0]))
    parts = (ensemble.means.mean(0), ensemble.total_covariance().diagonal(dim1=-2, dim2=-1))
    # A teacher may answer anything at a mistyped row.
    mean, total = (torch.from_numpy(clip_targets(part.numpy(), every)) for part in parts)
    variance = mean.var(0, unbiased=False)
    total = total.mean(0)
    return Scaling(mean.mean(0).numpy(), (variance + total).sqrt().numpy())


def _check_magnitude(ensemble: GaussianEnsemble) -> None:
    """Refuse answers whose squares are no numbers that a computer can hold."""
    if not ensemble.means.numel():
        return
    deviations = PrecisionFactor(ensemble.precision_tril).deviations()
    largest = max(float(ensemble.means.abs().max()), float(deviations.max()))
    if not largest <= LARGEST:
        raise TeacherError(
            f"the teacher's means or deviations are too large ({largest:.3g}; at most "
            f"{LARGEST:g}): let it answer in other units, divided by a power of ten."
        )
    smallest = float(deviations.min())
    if not smallest >= SMALLEST:
        raise TeacherError(
            f"the teacher's deviations are too small ({smallest:.3g}; at least {SMALLEST:g}): let "
            "it answer in other units, multiplied by a power of ten."
        )


def pack_answers(
    kinds: Sequence[MakeTargets], answers: Iterator[Answers], like: Tensor
) -> tuple[list[tuple[Targets, Tensor]], Tensor]:
    """Answers as columns for the loss, for each kind of targets; and which inputs have one."""
    made: list[Targets] = []
    pieces: list[list[Tensor]] = [[] for _ in kinds]
    kept: list[Tensor] = []
    for answer in answers:
        ensemble = answer.ensemble
        made = made or [make(ensemble.k_dim, ensemble.n_members) for make in kinds]
        for targets, own in zip(made, pieces, strict=True):
            own.append(targets.pack(ensemble).to(like))
        kept.append(answer.kept)
    return [(targets, torch.cat(own)) for targets, own in zip(made, pieces, strict=True)], (
        torch.cat(kept)
    )
