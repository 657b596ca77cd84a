"""A student beside its teacher, at a table's rows and at rows drawn beyond them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Generator

from priornet.distill import Faithfulness, Questions, Teacher, TeacherError, TransferSet, ask_all
from priornet.distill.faithfulness import (
    agreement,
    join_ensembles,
    problems,
    rows_per_second,
    worst_place,
)
from priornet.distributions import GaussianEnsemble
from priornet.estimators.asking import checked_ensemble
from priornet.estimators.base import BaseRegressor
from priornet.tables.raw import num_rows, take_rows
from priornet.tables.target_columns import FloatArray

__all__ = ["Comparison"]

_TIMED = 1000  # rows at least: of fewer, the time is that of the call
_BEYOND = TransferSet(far_share=0.0, generator_share=1.0)


class Comparison:
    """Asks both.

    Args:
        student: A fitted estimator.
        teacher: A fitted ensemble, or a teacher from elsewhere.
        table: Raw rows, checked.
    """

    def __init__(
        self, student: BaseRegressor, teacher: BaseRegressor | Teacher, table: Any
    ) -> None:
        self._student, self._teacher, self._table = student, teacher, table

    def measure(self, targets: FloatArray | None, seed: int) -> Faithfulness:
        """Everything there is to say.

        Args:
            targets: ``(N, K)``, where they are known.
            seed: Of the rows beyond, and of targets drawn from the teacher.
        """
        theirs, kept = self._ask(self._table)
        rows = kept.nonzero().flatten().numpy()
        table = take_rows(self._table, rows)
        inside = agreement(self._student.predict_belief(table), theirs, seed=seed)
        outside, everywhere, n_dropped = None, inside, int((~kept).sum())
        silence: tuple[str, ...] = ()
        try:
            joined = self._beyond(table, len(rows), seed)
        except TeacherError as error:  # no reason to lose a student
            joined, silence = None, (f"beyond the rows nothing is known: {error}".rstrip("."),)
        if joined is not None:
            beyond, their_beyond, both, n_more = joined
            outside = agreement(beyond, their_beyond, seed=seed)
            everywhere = agreement(both, join_ensembles(theirs, their_beyond), seed=seed)
            n_dropped += n_more
        mean = self._student.predict_belief(table).predictive().mean
        scale = torch.from_numpy(self._student.fitted_.targets.scaling.scale)
        error = ((mean - theirs.means.mean(0)) / scale).square().mean(-1).numpy()
        found = problems(inside, outside, everywhere, worst_place(table, error))
        ours_per_second, theirs_per_second = self._speeds()
        return Faithfulness(
            inside,
            outside,
            everywhere,
            None if targets is None else self._truth(table, theirs, targets[rows]),
            _weights_bytes(self._student),
            self._teacher_bytes(),
            ours_per_second,
            theirs_per_second,
            n_dropped,
            (*found, *silence),
        )

    def _ask(self, table: Any) -> tuple[GaussianEnsemble, Any]:
        """The teacher's answers in target units, and which rows have one."""
        if isinstance(self._teacher, Teacher):
            answers = ask_all(self._teacher, table)
            return answers.ensemble, answers.kept
        belief = checked_ensemble(self._teacher, self._teacher.predict_belief(table))
        return belief, torch.ones(num_rows(table), dtype=torch.bool)

    def _beyond(
        self, table: Any, n: int, seed: int
    ) -> tuple[Any, GaussianEnsemble, Any, int] | None:
        """Beliefs beyond the table, and the student's about both; None for a stored teacher."""
        labels = ()
        if isinstance(self._teacher, Teacher):
            if self._teacher.is_stored:
                return None
            labels = self._teacher.label_columns
        questions = Questions(table, self._student.fitted_.preprocessor, labels)
        inputs = torch.from_numpy(questions.inputs)
        _, raw = questions.draw(_BEYOND, inputs, n, Generator().manual_seed(seed))
        ensemble, kept = self._ask(raw)
        raw = take_rows(raw, kept.nonzero().flatten().numpy())
        student = self._student
        prep = student.fitted_.preprocessor
        both = torch.from_numpy(np.concatenate([prep.transform(part) for part in (table, raw)]))
        return (
            student.predict_belief(raw),
            ensemble,
            student.fitted_.belief(both),
            int((~kept).sum()),
        )

    def _truth(
        self, table: Any, theirs: GaussianEnsemble, targets: FloatArray
    ) -> dict[str, dict[str, float]]:
        y = torch.from_numpy(targets)
        beliefs = {"student": self._student.predict_belief(table), "teacher": theirs}
        found: dict[str, dict[str, float]] = {}
        for name, belief in beliefs.items():
            predictive = belief.predictive()
            rmse = float((predictive.mean - y).square().mean().sqrt())
            found[name] = {"rmse": rmse, "nll": float(-predictive.log_prob(y).mean())}
        return found

    def _speeds(self) -> tuple[float, float]:
        """Rows per second of both, from raw rows to Gaussians."""
        n_rows = max(num_rows(self._table), _TIMED)
        table = take_rows(self._table, np.resize(np.arange(num_rows(self._table)), n_rows))
        teacher = self._teacher
        ask = teacher.gaussians if isinstance(teacher, Teacher) else teacher.predict_belief
        return (
            rows_per_second(lambda: self._student.predict_belief(table), n_rows),
            rows_per_second(lambda: ask(table), n_rows),
        )

    def _teacher_bytes(self) -> int | None:
        if isinstance(self._teacher, Teacher):
            return self._teacher.n_bytes()
        return _weights_bytes(self._teacher)


def _weights_bytes(model: BaseRegressor) -> int:
    weights = model.fitted_.stack.weights
    return weights.numel() * weights.element_size()
