"""One network that keeps what an ensemble knows: EnD2, EnD, MD-EnD."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Generator, Tensor

from priornet.distill import Targets, TransferSet, start_as_average, targets_for
from priornet.distributions import GaussianEnsemble
from priornet.estimators.base import BaseRegressor, Prepared
from priornet.estimators.ensemble import DeepEnsembleRegressor
from priornet.estimators.fitted import Fitted
from priornet.estimators.inputs import check_inputs, check_targets, check_weight, num_rows
from priornet.estimators.network import HeadKind, Network
from priornet.estimators.plan import Auto, Plan, Split, check_count, network_seeds, split_rows
from priornet.estimators.recipe import Recipe, train_stack
from priornet.estimators.targets import TargetColumns
from priornet.training import Batch, Rows
from priornet.training.schedules import temperature

__all__ = ["DistilledRegressor"]

Objective = Literal["endd", "end", "md-end"]

_HEADS: dict[str, HeadKind] = {"endd": "normal-wishart", "end": "gaussian", "md-end": "mixture"}
_ASKED_AT_ONCE = 1 << 14  # inputs at which the teacher is asked in one go


class DistilledRegressor(BaseRegressor):
    r"""One network distilled from an ensemble, Section 3.

    The student asks the teacher at a transfer set: rows between neighbours, and training inputs
    with noise on many scales, so that it learns where the members agree and where they part. It
    needs no targets of its own.

    Args:
        teacher: A fitted :class:`~priornet.DeepEnsembleRegressor`; None trains one first, with the
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
            up to whole batches; ``"auto"`` for five steps per training row, 6000 to 24 000.
        student_learning_rate: Adam's learning rate at the start.
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Distil; with ``teacher=None`` learn an ensemble from the table first.

        Args:
            X: Inputs, shape ``(N, D)``, in the form that the teacher learnt from.
            y: Targets. Needed without a teacher; with one they only calibrate conformal intervals,
                whose guarantee wants rows that the teacher did not train on either.
            sample_weight: Weight per row.
        """
        self.check_parameters()
        if self.teacher is None:
            prepared = self._prepare(X, y, sample_weight)
            teacher = self._train_teacher(prepared)
        else:
            teacher = self._checked_teacher()
            prepared = self._prepare_for(teacher, X, y, sample_weight)
        self.teacher_ = teacher
        return self._fit_prepared(prepared)

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

    def _checked_teacher(self) -> BaseRegressor:
        teacher = self.teacher
        if not isinstance(teacher, BaseRegressor):
            raise TypeError(
                "`teacher` must be a fitted DeepEnsembleRegressor, or None to train one; got "
                f"{type(teacher).__name__}."
            )
        check_is_fitted(teacher, msg="`teacher` is not fitted: fit it, or give None to train one.")
        return teacher

    def _prepare_for(self, teacher: BaseRegressor, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """The table in the teacher's own units; without targets nothing is held out."""
        fitted = teacher.fitted_
        table = check_inputs(self, X, reset=True)
        rng = check_random_state(self.random_state)
        columns, n_rows = fitted.targets, num_rows(table)
        if y is None:
            values = np.zeros((n_rows, len(columns.names)))
            split = Split(torch.arange(n_rows), torch.arange(0))
        else:
            values, names, is_vector = check_targets(y, table)
            columns = TargetColumns(names, is_vector, columns.scaling)
            split = split_rows(n_rows, self.calibration_fraction, rng)
        weight = check_weight(sample_weight, values)
        weight = np.ones(n_rows) if weight is None else weight / weight.mean()
        prep = fitted.preprocessor
        return self._prepared(prep, columns, table, values, weight, split, rng)

    # -- the student ------------------------------------------------------------------------------

    def _train(self, prepared: Prepared) -> Fitted:
        seed, source = network_seeds(prepared.rng, 2)
        train = prepared.split.train
        n_rows = len(train)
        n_asked = self._n_asked(n_rows)
        transfer = TransferSet() if self.transfer is None else self.transfer
        continuous = [column.is_continuous for column in prepared.preprocessor.source_]
        asked, centre = transfer.sample(
            prepared.inputs[train], n_asked, Generator().manual_seed(source), continuous
        )
        targets, columns = self._ask(asked)
        start = self.temperature

        def loss(prediction: Any, batch: Batch, share: float) -> Tensor:
            return targets.loss(prediction, batch.targets, temperature(share, start))

        hidden = self.student_hidden
        widths = tuple(2 * width for width in self.hidden) if hidden is None else tuple(hidden)
        network = Network(
            asked.shape[1],
            widths,
            targets.n_targets,
            _HEADS[self.objective],
            n_members=targets.n_members if self.objective == "md-end" else 1,
            min_excess=1.0,  # members that differ wildly ask for less, where variances explode
            min_belief=1e-10,  # members without noise, far outside: sure of different means
        )
        stack = network.build([seed], prepared.inputs)
        start_as_average(stack, self.teacher_.fitted_.stack)
        plan, rate = self._student_plan(n_rows), self.student_learning_rate
        training = train_stack(
            stack,
            Rows(asked, columns, prepared.weight[train][centre]),
            [torch.arange(n_asked)],
            None,
            loss,
            loss,
            [seed],
            Recipe(rate, 0.0, plan, verbose=self.verbose, what=self.objective),
            epoch_rows=math.ceil(n_rows / plan.batch_size) * plan.batch_size,
        )
        training["teacher"] = self.teacher_.fitted_.training
        return Fitted(prepared.preprocessor, prepared.columns, network, stack, training)

    def _n_asked(self, n_rows: int) -> int:
        if self.n_transfer == "auto":
            return max(min(max(64 * n_rows, 20_000), 200_000), n_rows)
        return self.n_transfer

    def _student_plan(self, n_rows: int) -> Plan:
        """Batches of 256, and more steps on larger tables, which have more to say."""
        size = 256 if self.batch_size == "auto" else self.batch_size
        epochs = self.student_epochs
        if epochs == "auto":
            n_steps = min(max(5 * n_rows, 6000), 24_000)
            epochs = max(round(n_steps / math.ceil(n_rows / size)), 20)
        return Plan(epochs, size, None)

    def _ask(self, inputs: Tensor) -> tuple[Targets, Tensor]:
        """The teacher's answers, as columns for the loss."""
        pieces: list[Tensor] = []
        targets = None
        for x in inputs.split(_ASKED_AT_ONCE):
            ensemble = self.teacher_.fitted_.standard_belief(x)
            if not isinstance(ensemble, GaussianEnsemble):
                raise TypeError(
                    "`teacher` must be an ensemble of Gaussians, whose members can disagree; "
                    f"{type(self.teacher_).__name__} predicts one {type(ensemble).__name__}."
                )
            if targets is None:
                targets = targets_for(
                    self.objective,
                    ensemble.k_dim,
                    ensemble.n_members,
                    proxy=self.target == "proxy",
                    annealed=self.temperature > 1,
                )
            pieces.append(targets.pack(ensemble).to(inputs))
        assert targets is not None
        return targets, torch.cat(pieces)
