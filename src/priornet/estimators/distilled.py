"""One network that keeps what an ensemble knows: EnD2, EnD, MD-EnD."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from typing import Any, Self, get_args

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from priornet.distill import (
    DistillationProblem,
    Faithfulness,
    FaithfulnessWarning,
    StudentSettings,
    Teacher,
    TransferSet,
    as_teacher,
    ask_all,
    compare,
    train_student,
)
from priornet.distill.problem import teacher_scaling
from priornet.distill.student import (
    Target,
    default_rate,
    prefers_likelihood,
    student_plan,
    student_size,
)
from priornet.distributions import GaussianEnsemble
from priornet.estimators.base_regressor import BaseRegressor, check_count
from priornet.estimators.prediction import Fitted
from priornet.estimators.prepared import (
    Prepared,
    check_inputs,
    check_targets,
    known_columns,
    prepare_for_teacher,
    prepare_table,
)
from priornet.estimators.regressors import DeepEnsembleRegressor
from priornet.messages import warn_user
from priornet.methods import Objective
from priornet.tables.learning import TargetColumns
from priornet.tables.raw import num_rows, take_rows, without_arrow
from priornet.training.stack_training import Auto, network_seeds, stages

_MOST_COMPARED = 2000  # rows; more say nothing new about a student


@dataclass(kw_only=True, eq=False, repr=False)
class DistilledRegressor(BaseRegressor):
    r"""One network distilled from an ensemble, Section 3.

    The student learns the teacher's answers at a transfer set: rows between neighbours, and
    training inputs with noise on many scales. So it learns where the members agree and where they
    differ. It needs no targets of its own.

    Members that learnt from fewer than 240 rows are sure or unsure by chance. For ``"endd"`` each
    of them takes a share of its covariance from all, ``12 / n - 1 / 20`` for n rows.

    Args:
        teacher: A fitted :class:`~priornet.DeepEnsembleRegressor`, or an object for
            :func:`priornet.distill.as_teacher`: torch modules, forests, Gaussian processes,
            CatBoost models, a function, a file of answers. None trains an ensemble first, with the
            settings below. A teacher is never refitted, and :func:`sklearn.base.clone` keeps it.
        objective: ``"endd"`` learns a Normal-Wishart, which keeps the ensemble's total, data and
            knowledge uncertainty; ``"end"`` one Gaussian; ``"md-end"`` one Gaussian per member.
        target: For ``"endd"``: ``"likelihood"`` maximises the members' likelihood, Eq. (15);
            ``"proxy"`` learns the Normal-Wishart that fits the members best, in closed form per
            input. On most small tables the first ranks errors and out-of-domain rows better, on
            large ones the second loses less. ``"auto"``: the likelihood for a
            :class:`~priornet.DeepEnsembleRegressor` and up to 2000 rows, else the proxy.
        temperature: For ``target="likelihood"``: T at the start, annealed to 1, Eqs. (16) and (17).
        transfer: The transfer set.
        n_transfer: Number of transfer inputs; ``"auto"`` for 64 per training row, 20 000 to
            200 000, or to 400 000 with a forest.
        n_members: Members of a teacher that is trained here.
        student_hidden: Width of the student's hidden layers; by default twice ``hidden``, with a
            Gaussian process four times, with a forest 1.5 times to 384, by rows. If it is a
            multiple of the teacher's, the student starts as the average of members.
        student_pieces: Each number is also read as ramps between so many quantiles, which can
            follow steps; 0 for none, ``"auto"`` for 8 or 16 with forests, 16 with CatBoost.
        student_epochs: Passes through as many transfer inputs as there are training rows, rounded
            up to whole batches; ``"auto"`` for five steps per training row, 12 000 to 24 000
            (36 000 with a forest).
        student_learning_rate: Adam's learning rate at the start; ``"auto"`` for 4e-3 with the
            likelihood of a :class:`~priornet.DeepEnsembleRegressor`, else 2e-3. Other teachers'
            students first learn one Gaussian. With torch modules they do so at five times the
            rate, and go on at twice the rate; with others at twice and once, and at less for
            layers wider than 256.
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

    teacher: Any = field(default=None, kw_only=False)
    objective: Objective = field(default="endd", kw_only=False)
    target: Target = "auto"
    temperature: float = 1.0
    transfer: TransferSet | None = None
    n_transfer: int | Auto = "auto"
    n_members: int = 10
    student_hidden: tuple[int, ...] | None = None
    student_pieces: int | Auto = "auto"
    student_epochs: int | Auto = "auto"
    student_learning_rate: float | Auto = "auto"

    teacher_: Any = field(init=False)
    """The fitted ensemble or teacher."""
    faithfulness_: Faithfulness = field(init=False)
    """Comparison with a teacher that is no model of this library."""

    def __sklearn_clone__(self) -> Self:
        """Copy the estimator with its fitted teacher, which a clone would make forget."""
        parameters: dict[str, Any] = {
            name: value if name == "teacher" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unlabelled: Any = None) -> Self:
        """Distil the teacher; with ``teacher=None`` train an ensemble on the table first.

        With a teacher that is no model of this library, the two are compared at the end: see
        ``faithfulness_``. A :class:`~priornet.distill.FaithfulnessWarning` names each problem.

        Args:
            X: Inputs, shape ``(N, D)``, in the form in which the teacher learnt them.
            y: Targets. Needed without a teacher; with one they only calibrate conformal intervals.
                Their guarantee needs rows that the teacher has not seen either.
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
        with stages(1 if isinstance(self.teacher, BaseRegressor) else 2):  # teacher, student
            table, prepared = self._find_teacher(X, y, sample_weight)
            problem = self._problem(table, prepared, unlabelled)
            settings = self._student_settings(problem)
            seed, source = network_seeds(prepared.rng, 2)
            answers = problem.ask(settings.transfer, settings.n_transfer, source)
            student = train_student(settings, problem, *answers, seed)
        self._adopt(Fitted(prepared.preprocessor, prepared.columns, *student), prepared)
        if isinstance(self.teacher_, Teacher):
            self._compare(X, y)
        return self

    def check_parameters(self) -> None:
        """Refuse settings that cannot work."""
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
        super().check_parameters()

    def _find_teacher(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Prepared]:
        """Set ``teacher_``, and prepare the table; return it raw too, if the teacher reads it."""
        if self.teacher is None:
            common = {name: getattr(self, name) for name in BaseRegressor().get_params()}
            teacher = DeepEnsembleRegressor(self.n_members, **common)
            teacher.check_parameters()
            prepared = prepare_table(self, X, y, sample_weight, self.calibration_fraction)
            self.teacher_ = teacher._fit_prepared(prepared)
            return None, prepared
        if self.target_transform not in ("none", "auto"):
            raise ValueError(
                "with `teacher` the student learns on the scale of the teacher; leave "
                f'`target_transform` at "none"; got "{self.target_transform}".'
            )
        self.teacher_ = teacher = checked_teacher(self.teacher)
        if isinstance(teacher, BaseRegressor):
            known = teacher.fitted_.preprocessor
            table = check_inputs(self, known_columns(X, known))
            targets = teacher.fitted_.targets
            return None, prepare_for_teacher(self, table, y, sample_weight, targets, known)
        table = check_inputs(self, without_arrow(X))
        scaling = teacher_scaling(ask_all(teacher, table))
        k_dim = len(scaling.shift)
        names = ("y",) if k_dim == 1 else tuple(f"y{k}" for k in range(k_dim))
        unnamed = TargetColumns(names, k_dim == 1, scaling)
        return table, prepare_for_teacher(self, table, y, sample_weight, unnamed)

    def _problem(self, table: Any, prepared: Prepared, unlabelled: Any) -> DistillationProblem:
        """Ask around the training rows, and around rows without targets."""
        train = prepared.train
        if isinstance(self.teacher_, Teacher):
            table, unlabelled = take_rows(table, train.numpy()), without_arrow(unlabelled)
        elif unlabelled is not None:
            unlabelled = check_inputs(self, unlabelled, known=prepared.preprocessor)
        return DistillationProblem(
            _answering(self.teacher_),
            prepared.preprocessor,
            prepared.columns.scaling,
            prepared.inputs[train],
            prepared.weight[train],
            table,
            unlabelled,
        )

    def _student_settings(self, problem: DistillationProblem) -> StudentSettings:
        """Replace every ``"auto"`` by a default for the problem."""
        transfer = TransferSet() if self.transfer is None else self.transfer
        n_rows, has_weights = len(problem.centres), problem.members is not None
        size = student_size(n_rows, tuple(self.hidden), problem.kind)
        by_likelihood = self.objective == "endd" and (
            self.target == "likelihood"
            or (self.target == "auto" and prefers_likelihood(n_rows, has_weights))
        )
        hidden, rate = self.student_hidden, self.student_learning_rate
        return StudentSettings(
            self.objective,
            by_likelihood,
            self.temperature,
            transfer,
            size.n_transfer if self.n_transfer == "auto" else self.n_transfer,
            size.hidden if hidden is None else tuple(hidden),
            size.n_pieces if self.student_pieces == "auto" else self.student_pieces,
            student_plan(n_rows, self.student_epochs, self.batch_size, size.n_steps),
            default_rate(by_likelihood, has_weights) if rate == "auto" else rate,
            self.verbose,
        )

    def faithfulness(
        self, X: Any, y: Any = None, *, teacher: Any = None, seed: int = 0
    ) -> Faithfulness:
        """Compare the student with its teacher at rows, and at as many out-of-domain rows.

        Both are compared on the scale on which they learnt the targets (``target_transform``).

        Args:
            X: Inputs, preferably unseen in training; the first 2000 are used.
            y: Their targets, to score student and teacher.
            teacher: By default the teacher of the training, which a saved student has not kept.
            seed: Of the out-of-domain rows, and of targets drawn from the teacher.
        """
        check_is_fitted(self)
        given = getattr(self, "teacher_", None) if teacher is None else teacher
        if given is None:
            raise ValueError("a saved student does not keep its teacher: give `teacher`.")
        table = check_inputs(self, without_arrow(X), known=self.fitted_.preprocessor)
        rows = np.arange(min(num_rows(table), _MOST_COMPARED))
        targets = None if y is None else check_targets(y, table)[0][rows]
        known, own = _answering(checked_teacher(given)), self.fitted_.targets
        if own.maps != (known.targets.maps if isinstance(known, Fitted) else None):
            raise ValueError(
                "student and teacher learnt the targets on different scales (`target_transform`), "
                "on which they cannot be compared: give the student's own teacher."
            )
        targets = None if targets is None else own.mapped(targets)
        return compare(self.fitted_, known, take_rows(table, rows), targets, seed=seed)

    def _compare(self, X: Any, y: Any) -> None:
        """Set ``faithfulness_``, and warn of each problem."""
        self.faithfulness_ = self.faithfulness(X, y)
        self.fitted_.training["faithfulness"] = self.faithfulness_.to_json()
        for problem in self.faithfulness_.problems:
            warn_user(f"the student is not faithful: {problem}.", FaithfulnessWarning)


def checked_teacher(teacher: Any) -> BaseRegressor | Teacher:
    """Check a fitted ensemble, or make a teacher of another object."""
    if not isinstance(teacher, BaseRegressor):
        return as_teacher(teacher)
    check_is_fitted(teacher, msg="`teacher` is not fitted: fit it, or give None to train one.")
    belief = teacher.fitted_.standard_belief(torch.zeros(1, teacher.fitted_.network.n_inputs))
    if not isinstance(belief, GaussianEnsemble):
        raise TypeError(
            "`teacher` must be an ensemble of Gaussians, whose members can disagree; "
            f"{type(teacher).__name__} predicts one {type(belief).__name__}."
        )
    return teacher


def _answering(teacher: BaseRegressor | Teacher) -> Fitted | Teacher:
    """Return the part of a teacher that answers."""
    return teacher.fitted_ if isinstance(teacher, BaseRegressor) else teacher
