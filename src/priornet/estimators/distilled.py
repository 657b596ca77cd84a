"""One network that keeps what an ensemble knows: EnD2, EnD, MD-EnD."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor

from priornet.data.preprocessing import TablePreprocessor
from priornet.distill import (
    Faithfulness,
    FaithfulnessWarning,
    Questions,
    Targets,
    Teacher,
    TransferSet,
    as_teacher,
    ask_all,
    start_as_members,
    targets_for,
)
from priornet.distill.tables import plain
from priornet.estimators.asking import (
    Asked,
    MakeTargets,
    OutsideTeacher,
    OwnTeacher,
    join_tables,
    pack_answers,
    teacher_scaling,
)
from priornet.estimators.base import BaseRegressor, Prepared
from priornet.estimators.comparison import Comparison
from priornet.estimators.ensemble import DeepEnsembleRegressor
from priornet.estimators.fitted import Fitted
from priornet.estimators.inputs import (
    check_inputs,
    check_targets,
    check_weight,
    num_rows,
    take_rows,
)
from priornet.estimators.network import HeadKind, Network
from priornet.estimators.plan import Auto, Plan, Split, check_count, network_seeds, split_rows
from priornet.estimators.recipe import Recipe, train_stack
from priornet.estimators.targets import FloatArray, TargetColumns
from priornet.nn import Stack
from priornet.training import Batch, Rows
from priornet.training.schedules import temperature

__all__ = ["DistilledRegressor"]

Objective = Literal["endd", "end", "md-end"]

_HEADS: dict[str, HeadKind] = {"endd": "normal-wishart", "end": "gaussian", "md-end": "mixture"}
# A student without a member's weights begins as one Gaussian: for this share of its epochs, with so
# many times the learning rate; what follows has further to go than from an ensemble's average.
_FIRST_SHARE, _FIRST, _THEN = 0.3, 5.0, 2.0
_LEAST_STEPS, _LEAST_OUTSIDE = 6000, 12_000  # also of small tables; the second without weights
_MOST_COMPARED = 2000  # rows; more tell nothing new about a student


@dataclass
class _Posed(Prepared):
    """A table, and someone to ask about inputs around its rows."""

    asked: Asked
    centres: Tensor
    """Standardised training inputs, and unlabelled ones behind them."""
    table: Any = None
    """Raw, for teachers from elsewhere."""
    y: Any = None


class _Transfer(NamedTuple):
    """Inputs at which a teacher has answered."""

    inputs: Tensor
    weight: Tensor
    n_rows: int
    """Of the table around which they were drawn."""
    seed: int


class DistilledRegressor(BaseRegressor):
    r"""One network distilled from an ensemble, Section 3.

    The student asks the teacher at a transfer set: rows between neighbours, and training inputs
    with noise on many scales, so that it learns where the members agree and where they part. It
    needs no targets of its own.

    Args:
        teacher: A fitted :class:`~priornet.DeepEnsembleRegressor`, or whatever
            :func:`priornet.distill.as_teacher` takes: torch modules, forests, Gaussian processes,
            CatBoost models, a function, a file of answers. None trains an ensemble first, with the
            settings below. It is never refitted, and :func:`sklearn.base.clone` keeps it.
        objective: ``"endd"`` into a Normal-Wishart, which keeps the ensemble's total, data and
            knowledge uncertainty; ``"end"`` into one Gaussian; ``"md-end"`` into one head per
            member.
        target: For ``"endd"``: ``"proxy"`` learns the Normal-Wishart that fits the members best,
            computed per input in closed form; ``"likelihood"`` maximises the members' likelihood,
            Eq. (15).
        temperature: For ``target="likelihood"``: T at the start, annealed to 1, Eqs. (16) and (17).
        transfer: Where to ask the teacher.
        n_transfer: How many inputs; ``"auto"`` for 64 per training row, 20 000 to 200 000.
        n_members: Members of the teacher, where it is trained here.
        student_hidden: Width of the student's hidden layers; by default twice ``hidden``. Where
            they are a multiple of the teacher's, the student starts as the average of members.
        student_epochs: Passes through as many transfer inputs as there are training rows, rounded
            up to whole batches; ``"auto"`` for five steps per training row, 6000 to 24 000, and
            12 000 at least with a teacher from elsewhere.
        student_learning_rate: Adam's learning rate at the start; twice as much with a teacher from
            elsewhere, whose student first learns one Gaussian, at five times as much.
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
        target: Literal["proxy", "likelihood"] = "proxy",
        temperature: float = 1.0,
        transfer: TransferSet | None = None,
        n_transfer: int | Auto = "auto",
        n_members: int = 10,
        student_hidden: tuple[int, ...] | None = None,
        student_epochs: int | Auto = "auto",
        student_learning_rate: float = 2e-3,
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
        self.target = target
        self.temperature = temperature
        self.transfer = transfer
        self.n_transfer: int | Auto = n_transfer
        self.n_members = n_members
        self.student_hidden = student_hidden
        self.student_epochs: int | Auto = student_epochs
        self.student_learning_rate = student_learning_rate

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
        self.__dict__.pop("faithfulness_", None)
        if self.teacher is None:
            prepared = self._prepare(X, y, sample_weight)
            self.teacher_ = self._train_teacher(prepared)
            prepared = self._posed_own(self.teacher_, prepared, unlabelled)
            return self._fit_prepared(prepared)
        teacher = self._checked_teacher()
        self.teacher_ = teacher
        if isinstance(teacher, BaseRegressor):
            prepared = self._prepare_for(teacher, X, y, sample_weight)
            return self._fit_prepared(self._posed_own(teacher, prepared, unlabelled))
        prepared = self._posed_outside(teacher, plain(X), y, sample_weight, plain(unlabelled))
        self._fit_prepared(prepared)
        self._look_at(prepared)
        return self

    def check_parameters(self) -> None:
        """Refuse settings that cannot work."""
        super().check_parameters()
        for name, allowed in (
            ("objective", ("endd", "end", "md-end")),
            ("target", ("proxy", "likelihood")),
        ):
            if getattr(self, name) not in allowed:
                given, listing = getattr(self, name), ", ".join(allowed)
                raise ValueError(f'unknown {name} "{given}"; choose one of: {listing}.')
        for name in ("n_transfer", "student_epochs"):
            check_count(name, getattr(self, name), "auto")
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

    def _posed_own(self, teacher: BaseRegressor, prepared: Prepared, unlabelled: Any) -> _Posed:
        centres = prepared.inputs[prepared.split.train]
        if unlabelled is not None:
            more = prepared.preprocessor.transform(check_inputs(self, unlabelled, reset=False))
            centres = torch.cat([centres, torch.as_tensor(more).to(centres)])
        return _Posed(**vars(prepared), asked=OwnTeacher(teacher), centres=centres)

    def _posed_outside(
        self, teacher: Teacher, X: Any, y: Any, sample_weight: Any, unlabelled: Any
    ) -> _Posed:
        """The table in units of its own: what the teacher expects has mean 0 and variance 1."""
        table = check_inputs(self, X, reset=True)
        rng, n_rows = check_random_state(self.random_state), num_rows(table)
        scaling = teacher_scaling(ask_all(teacher, table))
        k_dim = len(scaling.shift)
        names = ("y",) if k_dim == 1 else tuple(f"y{k}" for k in range(k_dim))
        unnamed = TargetColumns(names, k_dim == 1, scaling)
        values, columns, split = self._targets(y, table, unnamed, rng)
        if len(columns.names) != k_dim:
            raise ValueError(
                f"`y` has {len(columns.names)} columns; the teacher predicts {k_dim} targets."
            )
        given = check_weight(sample_weight, values)
        train = split.train.numpy()
        weight = np.ones(n_rows) if given is None else given / given[train].mean()
        around = take_rows(table, train)
        prep = TablePreprocessor().fit(around, None if given is None else given[train])
        prepared = self._prepared(prep, columns, table, values, weight, split, rng)
        if unlabelled is not None:
            around = join_tables(around, unlabelled)
        questions = Questions(around, prep, teacher.label_columns)
        centres = torch.as_tensor(questions.inputs).to(prepared.inputs)
        asked = OutsideTeacher(teacher, questions, scaling)
        return _Posed(**vars(prepared), asked=asked, centres=centres, table=table, y=y)

    def _prepare_for(self, teacher: BaseRegressor, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """The table in the teacher's own units."""
        fitted = teacher.fitted_
        table = check_inputs(self, X, reset=True)
        rng = check_random_state(self.random_state)
        values, columns, split = self._targets(y, table, fitted.targets, rng)
        weight = check_weight(sample_weight, values)
        weight = np.ones(num_rows(table)) if weight is None else weight / weight.mean()
        prep = fitted.preprocessor
        return self._prepared(prep, columns, table, values, weight, split, rng)

    def _targets(
        self, y: Any, table: Any, known: TargetColumns, rng: Any
    ) -> tuple[FloatArray, TargetColumns, Split]:
        """Targets in the units that are known; without them nothing is held out."""
        n_rows = num_rows(table)
        if y is None:
            split = Split(torch.arange(n_rows), torch.arange(0))
            return np.zeros((n_rows, len(known.names))), known, split
        values, names, is_vector = check_targets(y, table)
        columns = TargetColumns(names, is_vector, known.scaling)
        return values, columns, split_rows(n_rows, self.calibration_fraction, rng)

    # -- the student ------------------------------------------------------------------------------

    def _train(self, prepared: Prepared) -> Fitted:
        assert isinstance(prepared, _Posed)
        seed, source = network_seeds(prepared.rng, 2)
        n_rows = len(prepared.centres)
        transfer = TransferSet() if self.transfer is None else self.transfer
        drawn, answers = prepared.asked.around(
            prepared.centres, self._n_asked(n_rows), transfer, Generator().manual_seed(source)
        )
        kinds = self._kinds(first=not prepared.asked.has_weights)
        packed, kept = pack_answers(kinds, answers, prepared.centres)
        weight = prepared.weight.new_ones(n_rows)
        weight[: len(prepared.split.train)] = prepared.weight[prepared.split.train]
        asked = _Transfer(drawn.inputs[kept], weight[drawn.centre[kept]], n_rows, seed)
        targets, columns = packed[-1]
        network = self._network(asked.inputs.shape[1], targets)
        stack = network.build([seed], prepared.inputs)
        least = _LEAST_STEPS if prepared.asked.has_weights else _LEAST_OUTSIDE
        plan, rate = self._student_plan(n_rows, least), self.student_learning_rate
        if prepared.asked.has_weights:
            prepared.asked.start(stack)
        else:  # first a Gaussian, which learns quickly where the members are
            first = replace(network, head="gaussian", n_members=1).build([seed], prepared.inputs)
            n_first = max(round(_FIRST_SHARE * plan.epochs), 1)
            self._distil(first, asked, *packed[0], replace(plan, epochs=n_first), _FIRST * rate)
            start_as_members(stack, first, [0])
            plan, rate = replace(plan, epochs=max(plan.epochs - n_first, 1)), _THEN * rate
        training = self._distil(stack, asked, targets, columns, plan, rate)
        training["teacher"] = prepared.asked.record()
        return Fitted(prepared.preprocessor, prepared.columns, network, stack, training)

    def _network(self, n_inputs: int, targets: Targets) -> Network:
        hidden = self.student_hidden
        return Network(
            n_inputs,
            tuple(2 * width for width in self.hidden) if hidden is None else tuple(hidden),
            targets.n_targets,
            _HEADS[self.objective],
            n_members=targets.n_members if self.objective == "md-end" else 1,
            min_excess=1.0,  # members that differ wildly ask for less, where variances explode
            min_belief=1e-10,  # members without noise, far outside: sure of different means
        )

    def _distil(
        self,
        stack: Stack,
        asked: _Transfer,
        targets: Targets,
        columns: Tensor,
        plan: Plan,
        rate: float,
    ) -> dict[str, Any]:
        start = self.temperature

        def loss(prediction: Any, batch: Batch, share: float) -> Tensor:
            return targets.loss(prediction, batch.targets, temperature(share, start))

        return train_stack(
            stack,
            Rows(asked.inputs, columns, asked.weight),
            [torch.arange(len(asked.inputs))],
            None,
            loss,
            loss,
            [asked.seed],
            Recipe(rate, 0.0, plan, verbose=self.verbose, what=self.objective),
            epoch_rows=math.ceil(asked.n_rows / plan.batch_size) * plan.batch_size,
        )

    def _kinds(self, *, first: bool) -> list[MakeTargets]:
        """What is kept of the answers: for the student, and for the Gaussian that it starts as."""

        def own(k_dim: int, n_members: int) -> Targets:
            proxy, annealed = self.target == "proxy", self.temperature > 1
            return targets_for(self.objective, k_dim, n_members, proxy=proxy, annealed=annealed)

        def average(k_dim: int, n_members: int) -> Targets:
            return targets_for("end", k_dim, n_members, proxy=False, annealed=False)

        return [average, own] if first else [own]

    def _n_asked(self, n_rows: int) -> int:
        if self.n_transfer == "auto":
            return max(min(max(64 * n_rows, 20_000), 200_000), n_rows)
        return self.n_transfer

    def _student_plan(self, n_rows: int, least: int = _LEAST_STEPS) -> Plan:
        """Batches of 256, and more steps on larger tables, which have more to say."""
        size = 256 if self.batch_size == "auto" else self.batch_size
        epochs = self.student_epochs
        if epochs == "auto":
            n_steps = min(max(5 * n_rows, least), 24_000)
            epochs = max(round(n_steps / math.ceil(n_rows / size)), 20)
        return Plan(epochs, size, None)

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
        table = check_inputs(self, plain(X), reset=False)
        rows = np.arange(min(num_rows(table), _MOST_COMPARED))
        targets = None if y is None else check_targets(y, table)[0][rows]
        known = given if isinstance(given, BaseRegressor) else as_teacher(given)
        return Comparison(self, known, take_rows(table, rows)).measure(targets, seed)

    def _look_at(self, prepared: _Posed) -> None:
        """Compare with the teacher where nothing was held out, too: beyond the rows it can."""
        found = self.faithfulness(prepared.table, prepared.y, seed=0)
        self.faithfulness_ = found
        self.fitted_.training["faithfulness"] = found.to_json()
        for problem in found.problems:
            warnings.warn(
                f"the student is not faithful: {problem}.", FaithfulnessWarning, stacklevel=3
            )
