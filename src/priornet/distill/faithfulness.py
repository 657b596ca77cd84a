"""The faithfulness of a student: by how much it differs from its teacher, where, and its cost."""

from __future__ import annotations

import gc
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from priornet.distill.problem import Model
from priornet.distill.teacher import (
    Answers,
    Teacher,
    TeacherError,
    ask_all,
    columns_by_name,
    join_ensembles,
)
from priornet.distill.transfer import Questions, TransferSet
from priornet.distributions import GaussianEnsemble, TransformedBelief
from priornet.metrics.ranking import spearman
from priornet.tables.raw import num_rows, read_table, take_rows
from priornet.tables.values import Numbers

FloatArray = NDArray[np.float64]

# Limits of a faithful student.
_LEAST_R2, _LEAST_RANK, _MOST_NATS = 0.9, 0.6, 0.25
_N_DRAWS = 16  # of the teacher's predictive, at each input
_CONSTANT = 1e-6  # means that vary by less, relative to their noise, are constant
_FLAT = 0.01  # uncertainty that varies by less, relative to itself, has no ranks worth keeping
_REPEATS = 7
_TIMED = 1000  # rows at least: with fewer, the time is that of the call
_OOD = TransferSet(far_share=0.0, generator_share=1.0)


class FaithfulnessWarning(UserWarning):
    """A student differs from its teacher by more than a little."""


@dataclass(frozen=True)
class Agreement:
    """Student and teacher on the same inputs."""

    n_rows: int
    r2: float
    """R2 of the student's mean as a prediction of the teacher's; of several targets the lowest."""
    rank_total: float | None
    """Spearman correlation of total uncertainty; None if the teacher's hardly varies."""
    rank_knowledge: float | None
    """Spearman correlation of knowledge uncertainty; None if one of the two has none."""
    nll: float
    """NLL of the student on targets drawn from the teacher, in nats."""
    nll_teacher: float
    """NLL of the teacher on the same targets; the difference is the student's loss."""


@dataclass(frozen=True)
class Faithfulness:
    """A student beside its teacher: agreement, size, speed and problems."""

    inside: Agreement
    """Agreement at the given rows."""
    outside: Agreement | None
    """Agreement at out-of-domain rows, drawn by a widened factor analysis of the given rows."""
    everywhere: Agreement
    """Agreement at all these rows."""
    truth: dict[str, dict[str, float]] | None
    """RMSE and NLL of both against targets, if there are any."""
    bytes_student: int
    bytes_teacher: int | None
    rows_per_second_student: float
    rows_per_second_teacher: float
    n_dropped: int
    """Rows without an answer of the teacher."""
    problems: tuple[str, ...]
    """Each way in which the student is not faithful, by how much and where."""

    @property
    def is_faithful(self) -> bool:
        """Tell if there are no problems."""
        return not self.problems

    @property
    def times_smaller(self) -> float | None:
        """Divide the bytes of the teacher by those of the student."""
        return None if self.bytes_teacher is None else self.bytes_teacher / self.bytes_student

    @property
    def times_faster(self) -> float:
        """Divide the student's rows per second by those of the teacher."""
        return self.rows_per_second_student / self.rows_per_second_teacher

    def to_json(self) -> dict[str, Any]:
        """Convert to plain data."""
        derived = ("times_smaller", "times_faster", "is_faithful")
        state = {**asdict(self), "problems": list(self.problems)}
        return state | {name: getattr(self, name) for name in derived}


def compare(
    student: Model,
    teacher: Model | Teacher,
    table: Any,
    targets: FloatArray | None = None,
    *,
    seed: int = 0,
) -> Faithfulness:
    """Compare a student with its teacher at a table's rows, and at as many out-of-domain rows.

    Args:
        student: A fitted model.
        teacher: A model that predicts an ensemble, or a teacher.
        table: Raw rows, checked.
        targets: Shape ``(N, K)``, if they are known.
        seed: Of the out-of-domain rows, and of targets drawn from the teacher.
    """
    answers = _ask(teacher, table)
    rows = answers.kept.nonzero().flatten().numpy()
    whole, table = table, take_rows(table, rows)
    belief, ensemble = _belief(student, table), answers.ensemble
    inside = everywhere = agreement(belief, ensemble, seed=seed)
    outside, n_dropped, unknown = None, 0, ()
    if not (isinstance(teacher, Teacher) and teacher.is_stored):
        try:
            outside, everywhere, n_dropped = _compare_ood(student, teacher, table, ensemble, seed)
        except TeacherError as error:  # no reason to lose a student
            unknown = (f"nothing is known of out-of-domain rows: {error}".rstrip("."),)
    place = worst_place(table, _squared_error(student, belief, ensemble))
    return Faithfulness(
        inside,
        outside,
        everywhere,
        None if targets is None else _truth(belief, ensemble, targets[rows]),
        _weight_bytes(student),
        teacher.n_bytes() if isinstance(teacher, Teacher) else _weight_bytes(teacher),
        *_speeds(student, teacher, whole),
        n_dropped + int((~answers.kept).sum()),
        (*problems(inside, outside, everywhere, place), *unknown),
    )


def _compare_ood(
    student: Model, teacher: Model | Teacher, table: Any, ensemble: GaussianEnsemble, seed: int
) -> tuple[Agreement, Agreement, int]:
    """Compare at as many out-of-domain rows, and at all rows; count the rows without an answer."""
    labels = teacher.label_columns if isinstance(teacher, Teacher) else ()
    questions = Questions(table, student.preprocessor, labels)
    inputs = torch.from_numpy(questions.inputs)
    _, drawn = questions.draw(_OOD, inputs, len(inputs), Generator().manual_seed(seed))
    answers = _ask(teacher, drawn)
    drawn = take_rows(drawn, answers.kept.nonzero().flatten().numpy())
    outside = agreement(_belief(student, drawn), answers.ensemble, seed=seed)
    both = join_ensembles([ensemble, answers.ensemble])
    everywhere = agreement(_belief(student, table, drawn), both, seed=seed)
    return outside, everywhere, int((~answers.kept).sum())


@torch.no_grad()
def _belief(model: Model, *tables: Any) -> Any:
    """Compute the belief about the rows of tables; of mapped targets, before the map."""
    prep = model.preprocessor
    inputs = [prep.transform(columns_by_name(one, prep.feature_names_in_)) for one in tables]
    belief = model.belief(torch.from_numpy(np.concatenate(inputs)))
    return belief.base if isinstance(belief, TransformedBelief) else belief


def _ask(teacher: Model | Teacher, table: Any) -> Answers:
    """Ask in units of the targets."""
    if isinstance(teacher, Teacher):
        return ask_all(teacher, table)
    return Answers(_belief(teacher, table), torch.ones(num_rows(table), dtype=torch.bool))


def _squared_error(student: Model, belief: Any, ensemble: GaussianEnsemble) -> FloatArray:
    scale = torch.from_numpy(student.targets.scaling.scale)
    error = (belief.predictive().mean - ensemble.means.mean(0)) / scale
    return error.square().mean(-1).numpy()


def _truth(
    student: Any, teacher: GaussianEnsemble, targets: FloatArray
) -> dict[str, dict[str, float]]:
    """Score both against targets."""
    y = torch.from_numpy(targets)
    found: dict[str, dict[str, float]] = {}
    for name, belief in (("student", student), ("teacher", teacher)):
        predictive = belief.predictive()
        rmse = float((predictive.mean - y).square().mean().sqrt())
        found[name] = {"rmse": rmse, "nll": float(-predictive.log_prob(y).mean())}
    return found


def _speeds(student: Model, teacher: Model | Teacher, table: Any) -> tuple[float, float]:
    """Measure rows per second of student and teacher, from raw rows to Gaussians."""
    n_rows = max(num_rows(table), _TIMED)
    rows = take_rows(table, np.resize(np.arange(num_rows(table)), n_rows))

    def ask_teacher() -> object:
        return teacher.gaussians(rows) if isinstance(teacher, Teacher) else _belief(teacher, rows)

    own = rows_per_second(lambda: _belief(student, rows), n_rows)
    return own, rows_per_second(ask_teacher, n_rows)


def rows_per_second(answer: Callable[[], object], n_rows: int) -> float:
    """Measure the rows per second of a call, the best of a few."""
    seconds = timeit.repeat(answer, gc.enable, number=1, repeat=_REPEATS)  # timeit turns it off
    return n_rows / max(min(seconds), 1e-9)


def _weight_bytes(model: Model) -> int:
    weights = model.stack.weights
    return weights.numel() * weights.element_size()


@torch.no_grad()
def agreement(student: Any, teacher: GaussianEnsemble, *, seed: int = 0) -> Agreement:
    """Compare two beliefs about the same N inputs; ``seed`` draws targets from the teacher."""
    mean = teacher.means.mean(0)
    spread = (mean - mean.mean(0)).square().sum(0)
    error = (student.predictive().mean - mean).square().sum(0)
    noise = teacher.data_covariance().diagonal(dim1=-2, dim2=-1).mean(0)
    total_noise = len(mean) * noise
    # A constant mean has no spread: the error is then measured in units of the noise.
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
    """Compare the ranks of variances, summed over targets, each in its own unit."""
    own, other = ((c.diagonal(dim1=-2, dim2=-1) / unit).sum(-1) for c in (student, teacher))
    if len(own) < 3 or float(other.std()) <= _FLAT * float(other.mean()):
        return None
    found = float(spearman(own, other))
    return None if np.isnan(found) else found


def problems(
    inside: Agreement, outside: Agreement | None, everywhere: Agreement, place: str | None
) -> tuple[str, ...]:
    """List the ways in which a student is not faithful, with the place of the largest errors."""
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
    for kind in ("total", "knowledge"):
        rank, *parts = (
            None if part is None else getattr(part, f"rank_{kind}")
            for part in (everywhere, inside, outside)
        )
        if rank is not None and rank < _LEAST_RANK:
            own, ood = ("none" if part is None else f"{part:.2f}" for part in parts)
            by_part = f": {own} on the rows, {ood} on out-of-domain rows" if outside else ""
            found.append(
                f"the rank correlation of {kind} uncertainty is {rank:.2f} (at least "
                f"{_LEAST_RANK:g} is good){by_part}"
            )
    return tuple(found)


def worst_place(X: Any, error: FloatArray) -> str | None:
    """Describe the part of a column with the largest squared error; None if all are alike."""
    table, least = read_table(X), max(10, len(error) // 20)
    found = [
        (float(error[rows].mean()), j, text)
        for j in range(table.n_columns)
        for text, rows in _parts(table.column(j))
        if rows.sum() >= least
    ]
    average = float(error.mean())
    largest, j, text = max(found, key=lambda part: part[0], default=(0.0, 0, ""))
    if not largest > 1.5 * average:  # less is no place worth naming
        return None
    name = table.label(j)
    shown = f'"{name}"' if isinstance(name, str) else f"column {name}"
    return f"worst where {shown} is {text} ({largest / average:.1f} times the average error)"


def _parts(column: Any) -> list[tuple[str, NDArray[np.bool_]]]:
    """Split a column into quarters of numbers or labels, and missing values."""
    if not isinstance(column, Numbers):
        labels = [(f'"{label}"', column.codes == i) for i, label in enumerate(column.labels)]
        return [*labels, ("missing", column.codes < 0)]
    values = column.values
    if np.isnan(values).all():
        return []
    low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75])
    return [
        (f"below {low:.4g}", values <= low),
        (f"between {low:.4g} and {middle:.4g}", (values > low) & (values <= middle)),
        (f"between {middle:.4g} and {high:.4g}", (values > middle) & (values <= high)),
        (f"above {high:.4g}", values > high),
        ("missing", np.isnan(values)),
    ]
