"""One network that keeps what an ensemble knows: EnD2, EnD, MD-EnD."""

from __future__ import annotations

import math
from numbers import Real
from os import PathLike
from typing import Any, Self, get_args

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from priornet.distill import Faithfulness, FaithfulnessWarning, Teacher, TransferSet, as_teacher
from priornet.estimators.base import BaseRegressor
from priornet.estimators.comparison import Comparison
from priornet.estimators.ensemble import DeepEnsembleRegressor
from priornet.estimators.inputs import check_inputs, check_targets
from priornet.estimators.model import Fitted
from priornet.estimators.plan import Auto, check_count
from priornet.estimators.posing import Posed, pose_outside, pose_own, prepare_for
from priornet.estimators.prepared import Prepared
from priornet.estimators.student import StudentSettings, Target, train_student
from priornet.methods import Objective
from priornet.notices import warn_user
from priornet.tables.raw import num_rows, take_rows, without_arrow

__all__ = ["DistilledRegressor"]

_MOST_COMPARED = 2000  # rows; more tell nothing new about a student


class DistilledRegressor(BaseRegressor):
    r"""One network distilled from an ensemble, Section 3.

    The student asks the teacher at a transfer set: rows between neighbours, and training inputs
    with noise on many scales, so that it learns where the members agree and where they part. It
    needs no targets of its own.

    Members that learnt from fewer than 240 rows differ by chance in how sure they are: for
    ``"endd"`` each takes a share of its covariance from all, ``12 / n - 1 / 20`` of n rows.

    Args:
        teacher: A fitted :class:`~priornet.DeepEnsembleRegressor`, or whatever
            :func:`priornet.distill.as_teacher` takes: torch modules, forests, Gaussian processes,
            CatBoost models, a function, a file of answers. None trains an ensemble first, with the
            settings below. It is never refitted, and :func:`sklearn.base.clone` keeps it.
        objective: ``"endd"`` into a Normal-Wishart, which keeps the ensemble's total, data and
            knowledge uncertainty; ``"end"`` into one Gaussian; ``"md-end"`` into one head per
            member.
        target: For ``"endd"``: ``"likelihood"`` maximises the members' likelihood, Eq. (15);
            ``"proxy"`` learns the Normal-Wishart that fits them best, computed per input in closed
            form. Both aim at the same; on most small tables the first ranks errors and strange rows
            better, on large ones the second loses less. ``"auto"``: the likelihood for an ensemble
            of ours and up to 2000 rows to ask around, the proxy otherwise.
        temperature: For ``target="likelihood"``: T at the start, annealed to 1, Eqs. (16) and (17).
        transfer: Where to ask the teacher.
        n_transfer: How many inputs; ``"auto"`` for 64 per training row, 20 000 to 200 000, or to
            400 000 with a forest.
        n_members: Members of the teacher, where it is trained here.
        student_hidden: Width of the student's hidden layers; by default twice ``hidden``, with a
            Gaussian process four times, with a forest 1.5 times to 384, by rows. Where they are a
            multiple of the teacher's, the student starts as the average of members.
        student_pieces: Each number is also read as ramps between so many quantiles, which can
            follow steps; 0 for none, ``"auto"`` for 8 or 16 with forests, 16 with CatBoost.
        student_epochs: Passes through as many transfer inputs as there are training rows, rounded
            up to whole batches; ``"auto"`` for five steps per training row, 12 000 to 24 000
            (36 000 with a forest).
        student_learning_rate: Adam's learning rate at the start; ``"auto"`` for 4e-3 where it
            learns the likelihood of an ensemble of ours, and 2e-3 otherwise. With networks from
            elsewhere twice as much; their student first learns one Gaussian, at five times as
            much. With other teachers once and twice, and less for layers wider than 256.
        hidden: Width of each hidden layer of the teacher. This and the rest: see
            :class:`~priornet.GaussianRegressor`.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> teacher = DeepEnsembleRegressor(5, random_state=0).fit(X, X[:, 0] ** 2)
        >>> student = DistilledRegressor(teacher, random_state=0).fit(X)
        >>> student.predict_uncertainty(X).mutual_information.shape
        (200,)
    """

    teacher_: Any
    """Who was asked: a fitted ensemble, or a teacher."""
    faithfulness_: Faithfulness

    def __init__(
        self,
        teacher: Any = None,
        objective: Objective = "endd",
        *,
        target: Target = "auto",
        temperature: float = 1.0,
        transfer: TransferSet | None = None,
        n_transfer: int | Auto = "auto",
        n_members: int = 10,
        student_hidden: tuple[int, ...] | None = None,
        student_pieces: int | Auto = "auto",
        student_epochs: int | Auto = "auto",
        student_learning_rate: float | Auto = "auto",
        hidden: tuple[int, ...] = (64, 64),
        learning_rate: float = 1e-2,
        weight_decay: float | Auto = 1e-4,
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        patience: int | None = 50,
        validation_fraction: float = 0.1,
        calibration_fraction: float | Auto = "auto",
        random_state: Any = None,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        super().__init__(
            hidden=hidden,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            epochs=epochs,
            batch_size=batch_size,
            patience=patience,
            validation_fraction=validation_fraction,
            calibration_fraction=calibration_fraction,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.teacher = teacher
        self.objective: Objective = objective
        self.target: Target = target
        self.temperature = temperature
        self.transfer = transfer
        self.n_transfer: int | Auto = n_transfer
        self.n_members = n_members
        self.student_hidden = student_hidden
        self.student_pieces: int | Auto = student_pieces
        self.student_epochs: int | Auto = student_epochs
        self.student_learning_rate: float | Auto = student_learning_rate

    def __sklearn_clone__(self) -> Self:
        """A clone would forget what the teacher learnt; it is a datum here, so it is kept."""
        parameters: dict[str, Any] = {
            name: value if name == "teacher" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unlabelled: Any = None) -> Self:
        """Distil; with ``teacher=None`` learn an ensemble from the table first.

        A student of a teacher from elsewhere is compared with it at the end: ``faithfulness_`` says
        how faithful it is, and a :class:`~priornet.distill.FaithfulnessWarning` where it is not.

        Args:
            X: Inputs, shape ``(N, D)``, in the form that the teacher learnt from.
            y: Targets. Needed without a teacher; with one they only calibrate conformal intervals,
                whose guarantee wants rows that the teacher did not train on either.
            sample_weight: Weight per row.
            unlabelled: More inputs of the same kind, around which the teacher is asked too.
        """
        self.check_parameters()
        if isinstance(unlabelled, str | PathLike):
            raise TypeError(
                f"`unlabelled` must be a table, not the name of one: read {str(unlabelled)!r} "
                "first, with pandas for example."
            )
        self.__dict__.pop("faithfulness_", None)
        if self.teacher is None:
            prepared = self._prepare(X, y, sample_weight)
            self.teacher_ = self._train_teacher(prepared)
            prepared = pose_own(self, self.teacher_, prepared, unlabelled)
            return self._fit_prepared(prepared)
        teacher = self._checked_teacher()
        self.teacher_ = teacher
        if isinstance(teacher, BaseRegressor):
            prepared = prepare_for(self, teacher, X, y, sample_weight)
            return self._fit_prepared(pose_own(self, teacher, prepared, unlabelled))
        prepared = pose_outside(
            self, teacher, without_arrow(X), y, sample_weight, without_arrow(unlabelled)
        )
        self._fit_prepared(prepared)
        self._look_at(prepared)
        return self

    def check_parameters(self) -> None:
        """Refuse settings that cannot work."""
        super().check_parameters()
        for name, allowed in (
            ("objective", get_args(Objective)),
            ("target", ("auto", "proxy", "likelihood")),
        ):
            if getattr(self, name) not in allowed:
                given, listing = getattr(self, name), ", ".join(allowed)
                raise ValueError(f'unknown {name} "{given}"; choose one of: {listing}.')
        if not isinstance(self.transfer, TransferSet | None):  # pyright: ignore[reportUnnecessaryIsInstance] (users need not check types)
            raise TypeError(
                "`transfer` must be a priornet.distill.TransferSet, such as "
                f"TransferSet(far_share=0.5); got {self.transfer!r}."
            )
        for name in ("n_transfer", "student_epochs"):
            check_count(name, getattr(self, name), "auto")
        if self.student_pieces != 0:
            check_count("student_pieces", self.student_pieces, "auto")
        rate = self.student_learning_rate
        if rate != "auto" and not (isinstance(rate, Real) and 0 <= float(rate) < math.inf):
            raise ValueError(
                f'`student_learning_rate` must be a number from 0 on, or "auto"; got {rate}.'
            )
        if not self.temperature >= 1:
            raise ValueError(f"`temperature` must be at least 1; got {self.temperature}.")
        if self.temperature > 1 and (self.objective, self.target) != ("endd", "likelihood"):
            raise ValueError(
                '`temperature` above 1 needs objective="endd" and target="likelihood"; got '
                f'"{self.objective}" and "{self.target}".'
            )

    # -- the teacher ------------------------------------------------------------------------------

    def _train_teacher(self, prepared: Prepared) -> DeepEnsembleRegressor:
        common = {name: getattr(self, name) for name in BaseRegressor().get_params()}
        teacher = DeepEnsembleRegressor(self.n_members, **common)
        teacher.check_parameters()
        return teacher._fit_prepared(prepared)

    def _checked_teacher(self) -> BaseRegressor | Teacher:
        teacher = self.teacher
        if not isinstance(teacher, BaseRegressor):
            return as_teacher(teacher)
        check_is_fitted(teacher, msg="`teacher` is not fitted: fit it, or give None to train one.")
        return teacher

    # -- the student ------------------------------------------------------------------------------

    def _train(self, prepared: Prepared) -> Fitted:
        assert isinstance(prepared, Posed)
        return train_student(self._student_settings(), prepared)

    def _student_settings(self) -> StudentSettings:
        hidden = self.student_hidden
        return StudentSettings(
            self.objective,
            self.target,
            self.temperature,
            TransferSet() if self.transfer is None else self.transfer,
            self.n_transfer,
            None if hidden is None else tuple(hidden),
            tuple(self.hidden),
            self.student_pieces,
            self.student_epochs,
            self.batch_size,
            self.student_learning_rate,
            self.verbose,
        )

    # -- how faithful it is -----------------------------------------------------------------------

    def faithfulness(
        self, X: Any, y: Any = None, *, teacher: Any = None, seed: int = 0
    ) -> Faithfulness:
        """Compare the student with its teacher at rows, and at rows drawn beyond them.

        Args:
            X: Inputs, better not those of the training; the first 2000 are used.
            y: Their targets, to score both against the truth.
            teacher: By default the one it learnt from, which a saved student has not kept.
            seed: Of the rows beyond, and of targets drawn from the teacher.
        """
        check_is_fitted(self)
        given = getattr(self, "teacher_", None) if teacher is None else teacher
        if given is None:
            raise ValueError("a saved student does not keep its teacher: give `teacher`.")
        table = check_inputs(self, without_arrow(X), known=self.fitted_.preprocessor)
        rows = np.arange(min(num_rows(table), _MOST_COMPARED))
        targets = None if y is None else check_targets(y, table)[0][rows]
        known = given if isinstance(given, BaseRegressor) else as_teacher(given)
        return Comparison(self, known, take_rows(table, rows)).measure(targets, seed)

    def _look_at(self, prepared: Posed) -> None:
        """Compare with the teacher where nothing was held out, too: beyond the rows it can."""
        found = self.faithfulness(prepared.table, prepared.y, seed=0)
        self.faithfulness_ = found
        self.fitted_.training["faithfulness"] = found.to_json()
        for problem in found.problems:
            warn_user(f"the student is not faithful: {problem}.", FaithfulnessWarning)
