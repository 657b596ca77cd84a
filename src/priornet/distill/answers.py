"""A teacher's answers: checked in one place, and pooled for members that learnt from few rows.

A student, a measure or a report sees answers only through :func:`ask`: of the right shape, finite,
with proper covariances, and with a warning where nothing can be learnt about knowledge uncertainty.

A Normal-Wishart weighs members by their precision. From few rows a precision is learnt badly: a
member that is sure by chance moves the student's mean and makes it sure, where the ensemble's own
mixture still listens to the others. So each member takes a share of its covariance from all of
them, as if it had seen some rows more. Means and the average covariance stay: the ensemble's data,
knowledge and total variance are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from priornet.distill.teacher import Teacher, TeacherError
from priornet.distributions import GaussianEnsemble
from priornet.notices import warn_user
from priornet.special import triangular
from priornet.tables.raw import iterate_batches, num_rows

__all__ = [
    "AgreementWarning",
    "Answers",
    "ask",
    "ask_all",
    "checked",
    "join_ensembles",
    "pool_covariances",
    "pooled_share",
]

_MOST_FAILED = 0.01  # share of inputs without a finite answer beyond which distillation stops
_ASKED_AT_ONCE = 1 << 14
# Members agree where their means differ by less than this share of their standard deviation: in
# float32 answers nothing smaller can be told from rounding.
_AGREEMENT = 1e-6
# Settled on parts of 13 tables, 40 to 350 rows each, scored on the rows that were left.
_ROWS_OF_ALL = 12  # from which a member learns what the others say
_ENOUGH = 240  # rows of a member that need no help
_MOST = 0.5


class AgreementWarning(UserWarning):
    """The members agree everywhere: there is no knowledge uncertainty to distil."""


@dataclass(frozen=True)
class Answers:
    """Checked answers for some inputs."""

    ensemble: GaussianEnsemble
    """Of the inputs that have one, batch ``(n,)``; float64, on the CPU."""
    kept: Tensor
    """Which inputs those are, ``(N,)``."""


def ask(teacher: Teacher, X: Any, *, at_once: int = _ASKED_AT_ONCE) -> Iterator[Answers]:
    """Ask a teacher at every row of a table, in pieces, and check what comes.

    Rows without a finite answer are left out; beyond 1 % and one it is an error. Where all members
    agree at all rows there is a warning, after the last piece.

    Args:
        teacher: Whom to ask.
        X: The table.
        at_once: Rows per piece.
    """
    n_rows, n_failed, agree = num_rows(X), 0, True
    first: GaussianEnsemble | None = None
    for rows in iterate_batches(X, at_once):
        answers = _asked(teacher, rows)
        first = first or answers.ensemble
        _check_constant(first, answers.ensemble)
        n_failed += int((~answers.kept).sum())
        # One input is no reason to stop, however few there are, unless it is all of them.
        if n_failed == n_rows or n_failed > max(_MOST_FAILED * n_rows, 1):
            raise TeacherError(
                f"the teacher has no finite answer for {n_failed} or more of {n_rows} inputs; at "
                f"most {_MOST_FAILED:.0%} may be left out. Look at holes and at values far from "
                "its training data; in Python, `TransferSet(far_share=0)` asks at none of those."
            )
        agree = agree and _members_agree(answers.ensemble)
        yield answers
    if n_failed:
        warn_user(
            f"the teacher has no finite answer for {n_failed} of {n_rows} inputs; they were left "
            "out."
        )
    if agree and n_rows:
        warn_user(
            "the teacher's members agree at every input: knowledge uncertainty is zero, and the "
            "student's evidence stops at its upper bound.",
            AgreementWarning,
        )


def _check_constant(first: GaussianEnsemble, now: GaussianEnsemble) -> None:
    """Refuse members that come and go: a student learns from the same ones everywhere."""
    shapes = [(one.n_members, one.k_dim) for one in (first, now)]
    if shapes[0] != shapes[1]:
        (m, k), (n, j) = shapes
        raise TeacherError(
            f"the teacher answered with {m} member{'s' * (m > 1)} and {k} target{'s' * (k > 1)}, "
            f"then with {n} and {j}."
        )


def ask_all(teacher: Teacher, X: Any) -> Answers:
    """Ask a teacher at every row of a table, and join the answers."""
    pieces = list(ask(teacher, X))
    ensemble = join_ensembles([piece.ensemble for piece in pieces])
    return Answers(ensemble, torch.cat([piece.kept for piece in pieces]))


def join_ensembles(ensembles: Sequence[GaussianEnsemble]) -> GaussianEnsemble:
    """Join ensembles of the same members over the inputs of all."""
    if len(ensembles) == 1:
        return ensembles[0]
    return GaussianEnsemble.from_precision_tril(
        torch.cat([one.means for one in ensembles], 1),
        torch.cat([one.precision_tril for one in ensembles], 1),
        validate_args=False,
    )


def _asked(teacher: Teacher, rows: Any) -> Answers:
    try:
        answer = teacher.gaussians(rows)
    except TeacherError:
        raise
    except Exception as error:
        raise TeacherError(
            f"the teacher {type(teacher).__name__} failed: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(answer, tuple) or len(answer) != 2:
        kind = type(answer).__name__
        found = f"a tuple of {len(answer)}" if isinstance(answer, tuple) else kind
        raise TeacherError(f"a teacher must return two arrays, means and covariances; got {found}.")
    return checked(answer[0], answer[1], (num_rows(rows),))


def checked(means: Any, covariances: Any, batch: tuple[int, ...]) -> Answers:
    """Check the answers for inputs of a batch shape: rows ``(N,)``, pixels ``(N, H, W)``.

    Args:
        means: ``(M, *batch, K)``; ``(M, *batch)`` for one target.
        covariances: ``(M, *batch, K, K)`` or ``(M, *batch, K)``; ``(M, *batch)`` for one target.
        batch: Of the inputs.

    Returns:
        The answers of the inputs that have finite ones, as one batch dimension.
    """
    mean, covariance = _tensor("means", means), _tensor("covariances", covariances)
    mean, covariance = _shaped(mean, covariance, batch)
    n_members, k_dim = mean.shape[0], mean.shape[-1]
    mean = mean.reshape(n_members, -1, k_dim)  # (M, N, K)
    full = covariance.dim() == len(batch) + 3
    covariance = covariance.reshape(n_members, -1, *[k_dim] * (1 + full))
    finite = torch.isfinite(covariance).flatten(2).all(-1) & torch.isfinite(mean).all(-1)
    kept = finite.all(0)
    mean, covariance = mean[:, kept], covariance[:, kept]
    variances = covariance.diagonal(dim1=-2, dim2=-1) if full else covariance
    if not bool((variances > 0).all()):
        member, row, k = (int(i) for i in (variances <= 0).nonzero()[0])
        raise TeacherError(
            f"variances must be positive; that of member {member} is "
            f"{variances[member, row, k].item():g} for input {int(kept.nonzero()[row])}."
        )
    if full and k_dim > 1:
        _check_definite(covariance, kept)
    return Answers(GaussianEnsemble(mean, covariance, validate_args=False), kept.reshape(batch))


def _tensor(name: str, value: Any) -> Tensor:
    try:
        if torch.is_complex(value) if isinstance(value, Tensor) else np.iscomplexobj(value):
            raise TypeError("they are complex.")
        tensor = (
            value if isinstance(value, Tensor) else torch.from_numpy(np.array(value, np.float64))
        )
        return tensor.detach().to("cpu", torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TeacherError(f"the teacher's {name} are not an array of numbers: {error}") from error


def _shaped(mean: Tensor, covariance: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Means with their last dimension K, and covariances beside them."""
    wanted = ", ".join(("M", *(str(n) for n in batch)))
    if mean.dim() == len(batch) + 1:  # one target, said without its dimension
        mean = mean.unsqueeze(-1)
        if covariance.dim() == len(batch) + 1:
            covariance = covariance.unsqueeze(-1)
    if mean.dim() != len(batch) + 2 or tuple(mean.shape[1:-1]) != batch or mean.shape[-1] == 0:
        raise TeacherError(
            f"the teacher's means must have shape ({wanted}, K), M members; got "
            f"{tuple(mean.shape)}."
        )
    if mean.shape[0] == 0:
        raise TeacherError("the teacher has no members.")
    shape = tuple(mean.shape)
    if tuple(covariance.shape) not in (shape, (*shape, shape[-1])):
        raise TeacherError(
            f"the teacher's covariances must have shape {(*shape, shape[-1])}, or {shape} for "
            f"variances, to go with its means; got {tuple(covariance.shape)}."
        )
    return mean, covariance


def _check_definite(covariance: Tensor, kept: Tensor) -> None:
    scale = covariance.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None]
    wrong = ((covariance - covariance.mT).abs() > 1e-3 * scale).flatten(2).any(-1)
    problem = "symmetric"
    if not bool(wrong.any()):
        wrong, problem = torch.linalg.cholesky_ex(covariance).info > 0, "positive definite"
    if bool(wrong.any()):
        member, row = (int(i) for i in wrong.nonzero()[0])
        raise TeacherError(
            f"covariances must be {problem}; that of member {member} for input "
            f"{int(kept.nonzero()[row])} is not."
        )


def _members_agree(ensemble: GaussianEnsemble) -> bool:
    if ensemble.n_members == 1 or ensemble.means.numel() == 0:
        return True
    spread = ensemble.means.amax(0) - ensemble.means.amin(0)
    data = ensemble.data_covariance().diagonal(dim1=-2, dim2=-1).sqrt()
    return bool((spread <= _AGREEMENT * data).all())


def pooled_share(n_rows: int) -> float:
    """Share of a member's covariance that is taken from all: ``12 / n_rows - 1 / 20``, 0 to 1/2.

    Args:
        n_rows: Rows that each member learnt from.
    """
    return min(max(_ROWS_OF_ALL / n_rows - _ROWS_OF_ALL / _ENOUGH, 0.0), _MOST)


@torch.no_grad()
def pool_covariances(ensemble: GaussianEnsemble, share: float) -> GaussianEnsemble:
    r"""Members with covariances :math:`(1 - s)\Sigma_m + s\bar\Sigma`; their means stay.

    Args:
        ensemble: M Gaussians per input.
        share: :math:`s`, between 0 (as they are) and 1 (all alike).
    """
    if share == 0:
        return ensemble
    tril = ensemble.precision_tril  # C of the precision C C^T
    roots = triangular.inverse(tril)
    # All covariances seen from each member, C_m^T Sigma_j C_m: sums of squares, so that lopsided
    # covariances of several targets keep their digits.
    seen = torch.zeros_like(tril)
    for root in roots:
        relative = root @ tril
        seen += relative.mT @ relative
    own = torch.eye(ensemble.k_dim, dtype=tril.dtype, device=tril.device)
    factor = triangular.precision_cholesky(torch.lerp(own, seen / len(roots), share))
    # Where they differ beyond the range of numbers, far outside, members stay as they are.
    good = torch.isfinite(seen + factor).all(-1).all(-1).all(0)[..., None, None]
    pooled = torch.where(good, tril @ factor, tril)
    return GaussianEnsemble.from_precision_tril(ensemble.means, pooled, validate_args=False)
