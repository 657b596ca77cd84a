"""The problem of distillation: a teacher, the inputs around which to ask it, and their units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Generator, Tensor

from priornet.distill.teacher import AnswerKind, Answers, Teacher, TeacherError, ask
from priornet.distill.transfer import Drawn, Questions, TransferSet
from priornet.distributions import GaussianEnsemble
from priornet.distributions.factors import Factor
from priornet.nn import Stack
from priornet.tables.learning import (
    LARGEST,
    SMALLEST,
    Scaling,
    TargetColumns,
    clip_targets,
)
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import join_tables, unmasked

_ASKED_AT_ONCE = 1 << 14  # inputs at which a model is asked in one go


class Model(Protocol):
    """A fitted stack of networks, with its preprocessing and the units of its targets."""

    preprocessor: TablePreprocessor
    targets: TargetColumns
    stack: Stack
    training: dict[str, Any]

    def standard_belief(self, inputs: Tensor) -> Any:
        """Return the belief about standardised targets at preprocessed inputs."""
        ...

    def belief(self, inputs: Tensor) -> Any:
        """Return the belief about the targets in their own units."""
        ...


class DistillationProblem:
    """A teacher, the inputs around which a student asks it, and the units that they share.

    Args:
        teacher: A model that predicts an ensemble of Gaussians, or a teacher.
        preprocessor: Turns raw rows into inputs; that of the model.
        scaling: Mean and standard deviation of the targets; those of the model.
        inputs: Standardised training rows, ``(N, D)``.
        weight: Their weights, ``(N,)``.
        table: The same rows, raw; a model needs none.
        unlabelled: More rows around which to ask.
    """

    centres: Tensor
    """Inputs around which to ask: training rows, then unlabelled rows."""
    weight: Tensor
    """Weights of the centres; 1 for unlabelled rows."""
    kind: AnswerKind = "smooth"
    """Kind of answers, see :class:`Teacher`."""
    members: Stack | None = None
    """Networks from which a student can start; None with a teacher."""
    n_member_rows: int | None = None
    """Rows from which each member learnt; None if unknown."""

    def __init__(
        self,
        teacher: Model | Teacher,
        preprocessor: TablePreprocessor,
        scaling: Scaling,
        inputs: Tensor,
        weight: Tensor,
        table: Any = None,
        unlabelled: Any = None,
    ) -> None:
        self.teacher, self.preprocessor, self.scaling = teacher, preprocessor, scaling
        self.centres = inputs
        if isinstance(teacher, Teacher):
            self.kind = teacher.kind
            if unlabelled is not None:
                table = join_tables(table, unmasked(unlabelled), ("X", "unlabelled"))
            self._questions = Questions(table, preprocessor, teacher.label_columns)
            self.centres = torch.as_tensor(self._questions.inputs).to(inputs)
        else:
            self.members = teacher.stack
            n_rows = teacher.training.get("n_rows")  # a file may say anything here
            self.n_member_rows = n_rows if isinstance(n_rows, int) and n_rows > 0 else None
            if unlabelled is not None:
                more = torch.as_tensor(preprocessor.transform(unlabelled))
                self.centres = torch.cat([inputs, more.to(inputs)])
        self.weight = weight.new_ones(len(self.centres))
        self.weight[: len(weight)] = weight

    def ask(self, transfer: TransferSet, n: int, seed: int) -> tuple[Drawn, Iterator[Answers]]:
        """Draw ``n`` inputs, and ask the teacher there; a stored teacher only at its own rows.

        Returns:
            The inputs, and the members' Gaussians in standardised units, in pieces.
        """
        generator = Generator().manual_seed(seed)
        if not isinstance(self.teacher, Teacher):
            continuous = [source.is_continuous for source in self.preprocessor.source_]
            drawn = transfer.draw(self.centres, n, generator, continuous)
            return drawn, _answers(self.teacher, drawn.inputs)
        if self.teacher.is_stored:
            rows = torch.arange(len(self.centres))
            drawn, raw = Drawn(self.centres, rows, rows), self._questions.table
        else:
            drawn, raw = self._questions.draw(transfer, self.centres, n, generator)
        shift, scale = map(torch.from_numpy, self.scaling)
        pieces = ask(self.teacher, raw)
        return drawn, (
            Answers(piece.ensemble.affine(-shift / scale, 1 / scale), piece.kept)
            for piece in pieces
        )

    def teacher_record(self, n_members: int) -> dict[str, Any]:
        """Describe the teacher, for the file of a student."""
        if isinstance(self.teacher, Teacher):
            return {"class": type(self.teacher).__name__, "n_members": n_members}
        return self.teacher.training


def _answers(model: Model, inputs: Tensor) -> Iterator[Answers]:
    for x in inputs.split(_ASKED_AT_ONCE):
        yield Answers(model.standard_belief(x), torch.ones(len(x), dtype=torch.bool))


def teacher_scaling(answers: Answers) -> Scaling:
    """Compute mean and standard deviation of the targets that a teacher expects."""
    ensemble = answers.ensemble
    if ensemble.means.numel():
        _check_magnitude(ensemble)
    every = np.arange(len(ensemble.means[0]))
    parts = (ensemble.means.mean(0), ensemble.total_covariance().diagonal(dim1=-2, dim2=-1))
    # A teacher may answer anything at a mistyped row.
    mean, total = (torch.from_numpy(clip_targets(part.numpy(), every)) for part in parts)
    scale = (mean.var(0, unbiased=False) + total.mean(0)).sqrt()
    return Scaling(mean.mean(0).numpy(), scale.numpy())


def _check_magnitude(ensemble: GaussianEnsemble) -> None:
    """Refuse answers whose squares overflow or vanish."""
    deviations = Factor(ensemble.precision_tril, of_precision=True).deviations()
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
