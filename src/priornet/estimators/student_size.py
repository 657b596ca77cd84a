"""How large a student is, how much it asks, what it learns, how fast and how long, by default.

All of it depends on how the teacher's answers vary and on the rows of the table. Settled on rows
held out of the training parts of several tables, see benchmarks/README.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from priornet.distill.teacher import AnswerKind

__all__ = ["StudentSize", "learning_rates", "prefers_likelihood", "student_size", "usual_rate"]

_LEAST_STEPS = 12_000  # however small the table is
_MOST_STEPS: dict[AnswerKind, int] = {"rows": 36_000}
_USUAL_STEPS = 24_000  # at most
_LEAST_ASKED = 20_000
_MOST_ASKED: dict[AnswerKind, int] = {"rows": 400_000}
_USUALLY_ASKED = 200_000  # at most
_PIECES: dict[AnswerKind, int] = {"steps": 16}
# To follow rows: up to so many of them, how many times the teacher's width, least width, pieces.
# Larger students are not five times faster than a forest, and on few rows hardly better.
_FOLLOWING = ((2000, 1.5, 0, 8), (20_000, 2.0, 256, 16), (math.inf, 2.0, 384, 16))
# Adam's first learning rate. Twice as much for the likelihood ranks the errors of one table better
# and costs nothing measurable elsewhere; four times as much brings nothing more.
_USUAL_RATE, _LIKELIHOOD_RATE = 2e-3, 4e-3
# Times the learning rate: of the Gaussian that a student begins as, and of the student.
_SMOOTH_RATES, _OTHER_RATES = (5.0, 2.0), (2.0, 1.0)
_RATES_UP_TO = 256  # units of a layer; wider ones want smaller steps
# Rows with six steps each and more; with five, the likelihood was worse than the proxy on two
# tables of three.
_LIKELIHOOD_UP_TO = 2000


@dataclass(frozen=True)
class StudentSize:
    """What a student gets unless its user chose otherwise."""

    hidden: tuple[int, ...]
    """Width of the hidden layers."""
    n_pieces: int
    """Ramps per number, see :mod:`priornet.nn.ramps`; 0 for none."""
    n_asked: int
    """Inputs at which the teacher is asked."""
    n_steps: int


def student_size(n_rows: int, hidden: tuple[int, ...], kind: AnswerKind) -> StudentSize:
    """More of everything for larger tables, which have more to say.

    Args:
        n_rows: Of the table around which the teacher is asked.
        hidden: Width of the hidden layers of a teacher that is trained here.
        kind: How the teacher's answers vary.
    """
    n_steps = min(max(5 * n_rows, _LEAST_STEPS), _MOST_STEPS.get(kind, _USUAL_STEPS))
    most = _MOST_ASKED.get(kind, _USUALLY_ASKED)
    n_asked = max(min(max(64 * n_rows, _LEAST_ASKED), most), n_rows)
    times, least, n_pieces = 4.0 if kind == "fine" else 2.0, 0, _PIECES.get(kind, 0)
    if kind == "rows":
        _, times, least, n_pieces = next(size for size in _FOLLOWING if n_rows <= size[0])
    wide = tuple(max(round(times * width), least) for width in hidden)
    return StudentSize(wide, n_pieces, n_asked, n_steps)


def learning_rates(rate: float, kind: AnswerKind, width: int) -> tuple[float, float]:
    """Of the Gaussian that a student without a member's weights begins as, and of the student.

    Args:
        rate: Of a student that starts as an ensemble's average, which has less far to go.
        kind: How the teacher's answers vary.
        width: Of the widest layer.
    """
    first, then = _SMOOTH_RATES if kind == "smooth" else _OTHER_RATES
    share = 1.0 if kind == "smooth" else min(_RATES_UP_TO / width, 1.0)
    return rate * share * first, rate * share * then


def prefers_likelihood(n_rows: int, has_weights: bool) -> bool:
    """Whether EnD2 learns the members' likelihood rather than the Normal-Wishart that fits them.

    Args:
        n_rows: Of the table around which the teacher is asked.
        has_weights: Whether the student starts from members.
    """
    return has_weights and n_rows <= _LIKELIHOOD_UP_TO


def usual_rate(by_likelihood: bool, has_weights: bool) -> float:
    """Adam's first learning rate of a student, before :func:`learning_rates`.

    Args:
        by_likelihood: Whether it learns the members' likelihood, as EnD2.
        has_weights: Whether it starts from members.
    """
    return _LIKELIHOOD_RATE if by_likelihood and has_weights else _USUAL_RATE
