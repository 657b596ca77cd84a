"""The teacher: anything that answers M Gaussians for inputs; and its answers, checked.

:func:`ask` returns answers of the right shape, finite and with proper covariances. It warns if they
hold no knowledge uncertainty to learn.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from priornet.distributions import GaussianEnsemble
from priornet.messages import warn_user
from priornet.tables.raw import column_names, copy_table, iterate_batches, num_rows, pick_columns

AnswerKind = Literal["smooth", "fine", "steps", "rows"]


class TeacherError(ValueError):
    """A teacher failed, or its answers cannot be used; the message says why."""


class Teacher(ABC):
    """Anything that answers M Gaussians for inputs; subclass it, or wrap a function.

    Attributes:
        label_columns: Columns, by name or number, that it reads as labels although they hold
            numbers: a transfer set exchanges their values but never changes them.
        is_stored: True if it only knows answers for its own rows.
        kind: The way in which its answers vary, which decides on the size of a student:
            ``"smooth"`` as networks do, ``"fine"`` with more bends (Gaussian processes),
            ``"steps"`` in single columns (boosted trees), ``"rows"`` following single rows too
            (forests).
    """

    label_columns: tuple[str | int, ...] = ()
    is_stored: bool = False
    kind: AnswerKind = "smooth"

    @abstractmethod
    def gaussians(self, X: Any) -> tuple[Any, Any]:
        """Answer for a table of N rows, of the kind that it learnt from.

        Returns:
            Means ``(M, N, K)``, and covariances ``(M, N, K, K)`` or variances ``(M, N, K)``; for
            one target also ``(M, N)`` both. Arrays or tensors, on any device. Rows without an
            answer are nan.
        """

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns that it reads; None if it knows no names."""
        return None

    def n_bytes(self) -> int | None:
        """Measure its size, by default pickled; None if that is not possible."""
        sizes: list[int] = []
        counter: Any = SimpleNamespace(write=lambda data: sizes.append(memoryview(data).nbytes))
        try:
            pickle.dump(self, counter)  # which only counts: a teacher may fill the memory
        except (pickle.PicklingError, TypeError, AttributeError):
            return None
        return sum(sizes)


class FunctionTeacher(Teacher):
    """A function from a table to means and covariances.

    Args:
        function: Takes a table of N rows, and returns what :meth:`Teacher.gaussians` returns.
        label_columns: See :class:`Teacher`.

    Example:
        >>> import numpy as np
        >>> def two_lines(X):
        ...     return np.stack([X[:, 0], -X[:, 0]]), np.ones((2, len(X)))
        >>> means, variances = FunctionTeacher(two_lines).gaussians(np.ones((5, 3)))
        >>> means.shape
        (2, 5)
    """

    def __init__(
        self,
        function: Callable[[Any], tuple[Any, Any]],
        *,
        label_columns: tuple[str | int, ...] = (),
    ) -> None:
        if not callable(function):
            raise TypeError(f"`function` must be callable; got {type(function).__name__}.")
        self.function = function
        self.label_columns = label_columns

    def gaussians(self, X: Any) -> tuple[Any, Any]:
        """Call the function on a copy: it may scale and fill its table in place."""
        return self.function(copy_table(X))

    def n_bytes(self) -> None:
        """Return None: the size of a function is unknown."""


def columns_by_name(table: Any, names: tuple[str, ...] | None) -> Any:
    """Take the columns of these names, in their order; arrays, which have no names, stay."""
    own = column_names(table)
    if own is None or names is None or own == names:
        return table
    missing = next((name for name in names if name not in own), None)
    if missing is not None:
        raise TeacherError(
            f'the table has no column "{missing}", with which the teacher was fitted.'
        )
    return pick_columns(table, names)


_MOST_FAILED = 0.01  # share of inputs without a finite answer; with more distillation stops
_ASKED_AT_ONCE = 1 << 14
# Members agree where their means differ by less than this share of their standard deviation: in
# float32 answers nothing smaller can be told from rounding.
_AGREEMENT = 1e-6


class AgreementWarning(UserWarning):
    """The members agree everywhere: there is no knowledge uncertainty to distil."""


@dataclass(frozen=True)
class Answers:
    """Checked answers for some inputs."""

    ensemble: GaussianEnsemble
    """Members at the inputs with an answer, batch ``(n,)``; float64, on the CPU."""
    kept: Tensor
    """True for inputs with an answer, ``(N,)``."""


def ask(teacher: Teacher, X: Any, *, at_once: int = _ASKED_AT_ONCE) -> Iterator[Answers]:
    """Ask a teacher at every row of a table, in pieces, and check the answers.

    Rows without a finite answer are left out; more than 1 % of them, and more than one, are an
    error. If all members agree at all rows, a warning follows the last piece.

    Args:
        teacher: The teacher.
        X: The table.
        at_once: Rows per piece.
    """
    n_rows, n_failed, agree = num_rows(X), 0, True
    first: GaussianEnsemble | None = None
    for rows in iterate_batches(X, at_once):
        answers = _ask_batch(teacher, rows)
        first = first or answers.ensemble
        _check_constant(first, answers.ensemble)
        n_failed += int((~answers.kept).sum())
        # One input is no reason to stop, however few there are, unless it is all of them.
        if n_failed == n_rows or n_failed > max(_MOST_FAILED * n_rows, 1):
            raise TeacherError(
                f"the teacher has no finite answer for {n_failed} or more of {n_rows} inputs; at "
                f"most {_MOST_FAILED:.0%} may be left out. Look at missing values and at values "
                "far from its training data; in Python, `TransferSet(far_share=0)` asks at no such "
                "values."
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
    """Refuse answers of another number of members or targets than the first ones."""
    (m, k), (n, j) = ((one.n_members, one.k_dim) for one in (first, now))
    if (m, k) != (n, j):
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


def _ask_batch(teacher: Teacher, rows: Any) -> Answers:
    try:
        answer = teacher.gaussians(rows)
    except TeacherError:
        raise
    except Exception as error:
        raise TeacherError(
            f"the teacher {type(teacher).__name__} failed: {type(error).__name__}: {error}"
        ) from error
    is_tuple = isinstance(answer, tuple)
    if not is_tuple or len(answer) != 2:
        found = f"a tuple of {len(answer)}" if is_tuple else type(answer).__name__
        raise TeacherError(f"a teacher must return two arrays, means and covariances; got {found}.")
    return checked(answer[0], answer[1], (num_rows(rows),))


def checked(means: Any, covariances: Any, batch: tuple[int, ...]) -> Answers:
    """Check the answers for inputs of a batch shape: rows ``(N,)``, pixels ``(N, H, W)``.

    Means ``(M, *batch, K)`` and covariances ``(M, *batch, K, K)``, or variances like the means. The
    finite answers come back, as one batch dimension.
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
    """Check shapes; give means and variances of one target their last dimension."""
    if mean.dim() == len(batch) + 1:  # one target, without its dimension
        mean = mean.unsqueeze(-1)
        if covariance.dim() == len(batch) + 1:
            covariance = covariance.unsqueeze(-1)
    shape = tuple(mean.shape)
    if len(shape) != len(batch) + 2 or shape[1:-1] != batch or shape[-1] == 0:
        wanted = ", ".join(("M", *map(str, batch)))
        raise TeacherError(
            f"the teacher's means must have shape ({wanted}, K), M members; got {shape}."
        )
    if shape[0] == 0:
        raise TeacherError("the teacher has no members.")
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
