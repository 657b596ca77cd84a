"""How faithful a student is to its teacher: by how much it differs, and where."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet.distill.answers import Answers, ask_all, join_ensembles
from priornet.distill.problem import Model
from priornet.distill.teacher import Teacher, TeacherError, columns_by_name
from priornet.distill.transfer import Questions, TransferSet
from priornet.distributions import GaussianEnsemble
from priornet.metrics.ranking import spearman
from priornet.tables.raw import num_rows, read_table, take_rows
from priornet.tables.values import Numbers

__all__ = [
    "Agreement",
    "Faithfulness",
    "FaithfulnessWarning",
    "agreement",
    "compare",
    "problems",
    "rows_per_second",
    "worst_place",
]

# From here on a student counts as faithful.
_LEAST_R2, _LEAST_RANK, _MOST_NATS = 0.9, 0.6, 0.25
_N_DRAWS = 16  # of the teacher's predictive, at each input
_CONSTANT = 1e-6  # means that vary by less, relative to their noise, do not vary
_FLAT = 0.01  # uncertainty that varies by less, relative to itself, has no ranks worth keeping
_REPEATS = 7
_TIMED = 1000  # rows at least: of fewer, the time is that of the call
_BEYOND = TransferSet(far_share=0.0, generator_share=1.0)


class FaithfulnessWarning(UserWarning):
    """A student differs from its teacher by more than a little."""


@dataclass(frozen=True)
class Agreement:
    """Student and teacher on the same inputs."""

    n_rows: int
    r2: float
    """Of the student's mean as a prediction of the teacher's; of several targets the lowest."""
    rank_total: float | None
    """Spearman correlation of total uncertainty; None where the teacher's hardly varies."""
    rank_knowledge: float | None
    """Of knowledge uncertainty; None for a student or a teacher without."""
    nll: float
    """Of the student, on targets drawn from the teacher; nats."""
    nll_teacher: float
    """Of the teacher, on the same; what is between the two is the student's loss."""


@dataclass(frozen=True)
class Faithfulness:
    """What a student kept, what it costs, and what to beware of."""

    inside: Agreement
    """At the rows given."""
    outside: Agreement | None
    """At rows that a widened factor analysis of them draws."""
    everywhere: Agreement
    """At both."""
    truth: dict[str, dict[str, float]] | None
    """RMSE and NLL of both against targets, where there are some."""
    bytes_student: int
    bytes_teacher: int | None
    rows_per_second_student: float
    rows_per_second_teacher: float
    n_dropped: int
    """Rows without an answer of the teacher."""
    problems: tuple[str, ...]
    """What is not faithful, by how much and where; empty for a faithful student."""

    @property
    def is_faithful(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def times_smaller(self) -> float | None:
        """Bytes of the teacher over those of the student."""
        return None if self.bytes_teacher is None else self.bytes_teacher / self.bytes_student

    @property
    def times_faster(self) -> float:
        """Rows per second of the student over those of the teacher."""
        return self.rows_per_second_student / self.rows_per_second_teacher

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        state = asdict(self)
        state["problems"] = list(self.problems)
        state |= {"times_smaller": self.times_smaller, "times_faster": self.times_faster}
        return {**state, "is_faithful": self.is_faithful}


def compare(
    student: Model,
    teacher: Model | Teacher,
    table: Any,
    targets: NDArray[np.float64] | None = None,
    *,
    seed: int = 0,
) -> Faithfulness:
    """Compare a student with its teacher at a table's rows and at rows drawn beyond them.

    Args:
        student: A fitted model.
        teacher: A model that predicts an ensemble, or a teacher.
        table: Raw rows, checked.
        targets: ``(N, K)``, where they are known.
        seed: Of the rows beyond, and of targets drawn from the teacher.
    """
    answers = _ask(teacher, table)
    rows = answers.kept.nonzero().flatten().numpy()
    whole, table = table, take_rows(table, rows)
    belief, theirs = _belief(student, table), answers.ensemble
    inside = agreement(belief, theirs, seed=seed)
    outside, everywhere, n_dropped = None, inside, int((~answers.kept).sum())
    silence: tuple[str, ...] = ()
    try:
        drawn = _rows_beyond(student, teacher, table, seed)
        beyond = None if drawn is None else _ask(teacher, drawn)
    except TeacherError as error:  # no reason to lose a student
        drawn = beyond = None
        silence = (f"beyond the rows nothing is known: {error}".rstrip("."),)
    if beyond is not None:
        drawn = take_rows(drawn, beyond.kept.nonzero().flatten().numpy())
        outside = agreement(_belief(student, drawn), beyond.ensemble, seed=seed)
        both = _belief(student, table, drawn)
        everywhere = agreement(both, join_ensembles([theirs, beyond.ensemble]), seed=seed)
        n_dropped += int((~beyond.kept).sum())
    scale = torch.from_numpy(student.targets.scaling.scale)
    error = ((belief.predictive().mean - theirs.means.mean(0)) / scale).square().mean(-1).numpy()
    found = problems(inside, outside, everywhere, worst_place(table, error))
    speeds = _speeds(student, teacher, whole)
    return Faithfulness(
        inside,
        outside,
        everywhere,
        None if targets is None else _truth(belief, theirs, targets[rows]),
        _weights_bytes(student),
        teacher.n_bytes() if isinstance(teacher, Teacher) else _weights_bytes(teacher),
        *speeds,
        n_dropped,
        (*found, *silence),
    )


def _belief(model: Model, *tables: Any) -> Any:
    """Belief about the rows of tables, in units of the targets."""
    prep = model.preprocessor
    names = None if prep.feature_names_in_ is None else tuple(prep.feature_names_in_)
    inputs = [prep.transform(columns_by_name(table, names)) for table in tables]
    shift, scale = (torch.from_numpy(part) for part in model.targets.scaling)
    with torch.no_grad():
        return model.standard_belief(torch.from_numpy(np.concatenate(inputs))).affine(shift, scale)


def _ask(teacher: Model | Teacher, table: Any) -> Answers:
    """The teacher's answers in target units, and which rows have one."""
    if isinstance(teacher, Teacher):
        return ask_all(teacher, table)
    return Answers(_belief(teacher, table), torch.ones(num_rows(table), dtype=torch.bool))


def _rows_beyond(student: Model, teacher: Model | Teacher, table: Any, seed: int) -> Any:
    """As many rows beyond the table; None for a stored teacher."""
    labels: tuple[str | int, ...] = ()
    if isinstance(teacher, Teacher):
        if teacher.is_stored:
            return None
        labels = teacher.label_columns
    questions = Questions(table, student.preprocessor, labels)
    inputs = torch.from_numpy(questions.inputs)
    return questions.draw(_BEYOND, inputs, len(inputs), Generator().manual_seed(seed))[1]


def _truth(
    student: Any, teacher: GaussianEnsemble, targets: NDArray[np.float64]
) -> dict[str, dict[str, float]]:
    y = torch.from_numpy(targets)
    found: dict[str, dict[str, float]] = {}
    for name, belief in (("student", student), ("teacher", teacher)):
        predictive = belief.predictive()
        rmse = float((predictive.mean - y).square().mean().sqrt())
        found[name] = {"rmse": rmse, "nll": float(-predictive.log_prob(y).mean())}
    return found


def _speeds(student: Model, teacher: Model | Teacher, table: Any) -> tuple[float, float]:
    """Rows per second of both, from raw rows to Gaussians."""
    n_rows = max(num_rows(table), _TIMED)
    rows = take_rows(table, np.resize(np.arange(num_rows(table)), n_rows))

    def ask_teacher() -> object:
        return teacher.gaussians(rows) if isinstance(teacher, Teacher) else _belief(teacher, rows)

    return (
        rows_per_second(lambda: _belief(student, rows), n_rows),
        rows_per_second(ask_teacher, n_rows),
    )


def _weights_bytes(model: Model) -> int:
    weights = model.stack.weights
    return weights.numel() * weights.element_size()


@torch.no_grad()
def agreement(student: Any, teacher: GaussianEnsemble, *, seed: int = 0) -> Agreement:
    """Compare two beliefs about the same inputs.

    Args:
        student: Any belief, batch ``(N,)``.
        teacher: The ensemble, in the same units.
        seed: Of the targets drawn from the teacher.
    """
    mean = teacher.means.mean(0)
    spread = (mean - mean.mean(0)).square().sum(0)
    error = (student.predictive().mean - mean).square().sum(0)
    noise = teacher.data_covariance().diagonal(dim1=-2, dim2=-1).mean(0)
    total_noise = len(mean) * noise
    # A teacher that says the same everywhere has no spread: its noise is the measure then.
    r2 = (1 - error / torch.where(spread > _CONSTANT * total_noise, spread, total_noise)).min()
    unit = mean.var(0, unbiased=False) + noise
    y = teacher.predictive().sample((_N_DRAWS,), generator=Generator().manual_seed(seed))
    nll = [float(-belief.predictive().log_prob(y).mean()) for belief in (student, teacher)]
    return Agreement(
        n_rows=len(mean),
        r2=float(r2),
        rank_total=_rank(student.total_covariance(), teacher.total_covariance(), unit),
        rank_knowledge=_rank(student.knowledge_covariance(), teacher.knowledge_covariance(), unit),
        nll=nll[0],
        nll_teacher=nll[1],
    )


def _rank(student: Tensor, teacher: Tensor, unit: Tensor) -> float | None:
    """Rank correlation of variances summed over targets, each in its own unit."""
    ours, theirs = ((c.diagonal(dim1=-2, dim2=-1) / unit).sum(-1) for c in (student, teacher))
    if len(ours) < 3 or float(theirs.std()) <= _FLAT * float(theirs.mean()):
        return None
    found = float(spearman(ours, theirs))
    return None if np.isnan(found) else found


def problems(
    inside: Agreement, outside: Agreement | None, everywhere: Agreement, place: str | None
) -> tuple[str, ...]:
    """What is not faithful.

    Args:
        inside: At the user's rows.
        outside: At rows beyond, if any.
        everywhere: At both.
        place: Where the means differ most.
    """
    found: list[str] = []
    where = "" if place is None else f"; {place}"
    if not inside.r2 >= _LEAST_R2:
        found.append(f"R2 of the mean is {inside.r2:.2f} (at least {_LEAST_R2:g} is good){where}")
    gap = inside.nll - inside.nll_teacher
    if not gap <= _MOST_NATS:
        found.append(
            f"targets drawn from the teacher cost {gap:.2f} nats more than the teacher itself "
            f"takes (at most {_MOST_NATS:g} is good){where}"
        )
    for what in ("total", "knowledge"):
        rank, *parts = (
            None if part is None else getattr(part, f"rank_{what}")
            for part in (everywhere, inside, outside)
        )
        if rank is not None and rank < _LEAST_RANK:
            found.append(
                f"the rank correlation of {what} uncertainty is {rank:.2f} (at least "
                f"{_LEAST_RANK:g} is good){_by_part(*parts) if outside else ''}"
            )
    return tuple(found)


def _by_part(inside: float | None, outside: float | None) -> str:
    """A rank correlation on the rows, and beyond them."""
    within, beyond = ("none" if rank is None else f"{rank:.2f}" for rank in (inside, outside))
    return f": {within} on the rows, {beyond} beyond them"


def worst_place(X: Any, error: NDArray[np.float64]) -> str | None:
    """The part of a column in which the error is largest, in words; None where all are alike.

    Args:
        X: The table.
        error: Squared error of each row.
    """
    table = read_table(X)
    least = max(10, len(error) // 20)
    worst, place = 1.5, None  # times the average error; less is no place worth naming
    average = float(error.mean())
    if not average > 0:
        return None
    for j in range(table.n_columns):
        for text, rows in _parts(table.column(j)):
            if rows.sum() < least:
                continue
            ratio = float(error[rows].mean()) / average
            if ratio > worst:
                worst = ratio
                name = table.label(j)
                shown = f'"{name}"' if isinstance(name, str) else f"column {name}"
                place = f"worst where {shown} is {text} ({ratio:.1f} times the average error)"
    return place


def _parts(column: Any) -> list[tuple[str, NDArray[np.bool_]]]:
    """Quarters of numbers, labels, holes: a description and the rows of each."""
    if not isinstance(column, Numbers):
        labels = [(f'"{label}"', column.codes == i) for i, label in enumerate(column.labels)]
        return [*labels, ("missing", column.codes < 0)]
    values = column.values
    if np.isnan(values).all():
        return []
    edges = np.nanquantile(values, [0.25, 0.5, 0.75])
    low, middle, high = edges
    return [
        (f"below {low:.4g}", values <= low),
        (f"between {low:.4g} and {middle:.4g}", (values > low) & (values <= middle)),
        (f"between {middle:.4g} and {high:.4g}", (values > middle) & (values <= high)),
        (f"above {high:.4g}", values > high),
        ("missing", np.isnan(values)),
    ]


def rows_per_second(answer: Callable[[], object], n_rows: int) -> float:
    """Rows per second of a call, the best of a few."""
    best = np.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        answer()
        best = min(best, time.perf_counter() - start)
    return n_rows / max(best, 1e-9)
