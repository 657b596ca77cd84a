"""The shared network: many members with one body, and boosted trees as a witness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from priornet.estimators.base_regressor import BaseRegressor, Task
from priornet.estimators.prediction import Fitted, label_counts
from priornet.estimators.prepared import Prepared
from priornet.nn.shared import SharedMLP, SharedNetwork, score_knots
from priornet.nn.stacked import stack_outputs
from priornet.tables.boosting import LEAST_ROWS, fit_trees
from priornet.tables.preprocessing import OutputColumn
from priornet.tables.trees import Trees
from priornet.training import Rows
from priornet.training.objectives import members
from priornet.training.stack_training import (
    Auto,
    Plan,
    StackRows,
    TrainingSettings,
    make_plan,
    network_seeds,
    train_stack,
    validation_split,
)

_STEPS = (600, 1500)  # of small and of other tables
_MANY_ROWS = 1500
_LARGEST_BATCH = 256
_LONGEST_GRADIENT = 10.0  # per member
_WAVES = ((32, 24, 8), (128, 8, 4))  # up to so many numbers: frequencies of each, and units
_FEWEST_WAVES = (4, 2)
_FEW_LABELS = 8  # of a column; more become a few numbers each


@dataclass(kw_only=True, eq=False, repr=False)
class SharedPriorRegressor(BaseRegressor):
    """Members that share a body and answer in one pass, as one Normal-Wishart.

    The Normal-Wishart is fitted to the members row by row, in closed form: a prior network without
    distillation and without out-of-domain inputs. Boosted trees, fitted out of fold, are a witness:
    half of the members add their prediction to the mean, the others never see it. Held-out rows
    decide how many members of each half stay.

    This method is not in the paper. It joins the fit of a Normal-Wishart to an ensemble, Eq. (15),
    with members that share a body (BatchEnsemble, Wen et al., 2020; TabM, Gorishniy et al., 2025).

    Args:
        n_members: Number of members before the choice.
        trees: ``True`` for a witness, ``False`` for none, ``"auto"`` to let the held-out rows
            decide if it stays.
        learning_rate: Adam's learning rate at the start.
        epochs: Passes through the rows; ``"auto"`` for some 1500 steps, 600 on tables of fewer
            than 1500 rows.
        validation_fraction: Share of the training rows held out to find the best epoch, and to
            choose members.
        calibration_fraction: Share of the rows that no training sees, for conformal intervals;
            ``"auto"`` takes the validation rows, so that no more rows are lost. They have chosen
            the best epoch and the members, so the guarantee of coverage is not strict then. This
            and the rest: see :class:`~priornet.GaussianRegressor`.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> model = SharedPriorRegressor(random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.predict_uncertainty(X).mutual_information.shape
        (200,)
    """

    n_members: int = field(default=16, kw_only=False)
    trees: Literal["auto"] | bool = "auto"
    learning_rate: float = 1e-2
    patience: int | None = None
    validation_fraction: float = 0.125

    def check_parameters(self) -> None:
        """Refuse parameters that cannot work."""
        super().check_parameters()
        if self.n_members < 4:
            raise ValueError(f"`n_members` must be at least 4; got {self.n_members}.")
        if self.trees not in ("auto", True, False):
            raise ValueError(f'`trees` must be True, False or "auto"; got {self.trees!r}.')

    @property
    def _share_held(self) -> float | Auto:
        """Return the share held out for calibration: none, where validation rows calibrate."""
        return 0.0 if self.calibration_fraction == "auto" else self.calibration_fraction

    def _task(self, prepared: Prepared) -> Task:
        return Task("shared", "normal-wishart", members, network_seeds(prepared.rng, 1))

    def _train(self, prepared: Prepared) -> Fitted:
        task = self._task(prepared)
        n_known = prepared.inputs.shape[1]
        trees = self._add_witness(prepared, task.seeds[0])
        train, held = validation_split(prepared.train, self.validation_fraction, task.seeds)
        if held is not None and self.calibration_fraction == "auto":
            prepared.held = held[0].sort().values
        network = self._network(prepared, n_known, train[0], trees is not None)
        stack = network.build(task.seeds, prepared.inputs)
        decay = 0.0 if self.weight_decay == "auto" else self.weight_decay
        settings = TrainingSettings(
            self.learning_rate,
            decay,
            self._plan(len(train[0])),
            clip=_LONGEST_GRADIENT * self.n_members,
            verbose=self.verbose,
            what=task.name,
        )
        data = Rows(prepared.inputs, prepared.targets, prepared.weight)
        training = train_stack(stack, StackRows(data, train, held), task.loss, task.seeds, settings)
        if trees is not None and held is not None:
            stack = _chosen(stack, data, held[0], may_drop=self.trees == "auto")
        network = stack.network
        training["members"] = [network.witnessed, network.n_members - network.witnessed]
        if trees is not None and not network.witnessed:
            trees, prepared.inputs = None, prepared.inputs[:, :n_known]
        return Fitted(prepared.preprocessor, prepared.columns, network, stack, training, trees)

    def _add_witness(self, prepared: Prepared, seed: int) -> Trees | None:
        """Fit trees, and append to the inputs what they say of rows that they have not seen."""
        is_small = len(prepared.train) < LEAST_ROWS
        if is_small and self.trees is True:
            raise ValueError(
                f"`trees` is True, but boosted trees need at least {LEAST_ROWS} rows to learn "
                f'from; got {len(prepared.train)}: set it to "auto".'
            )
        if is_small or self.trees is False:
            return None
        columns = prepared.preprocessor.columns_matrix(prepared.table)
        own = prepared.train.numpy()
        targets = prepared.targets.double().cpu().numpy()
        weight = prepared.weight.double().cpu().numpy()
        n_labels = label_counts(prepared.preprocessor)
        trees, answers = fit_trees(
            columns[own], targets[own], weight[own], n_labels=n_labels, seed=seed
        )
        witness = torch.empty_like(prepared.targets)
        witness[prepared.train] = torch.as_tensor(answers).to(witness)
        if len(prepared.held):
            rest = torch.as_tensor(trees.predict(columns[prepared.held.numpy()]))
            witness[prepared.held] = rest.to(witness)
        prepared.inputs = torch.cat([prepared.inputs, witness], 1)
        return trees

    def _network(
        self, prepared: Prepared, n_known: int, train: Tensor, has_witness: bool
    ) -> SharedNetwork:
        """Size the network by the columns of the table."""
        source, n_targets = prepared.preprocessor.source_, prepared.targets.shape[1]
        continuous = [one.is_continuous for one in source]
        n_numbers = sum(continuous)
        found = ((waves, width) for most, waves, width in _WAVES if n_numbers <= most)
        n_waves, wave_width = next(found, _FEWEST_WAVES)
        return SharedNetwork(
            n_inputs=prepared.inputs.shape[1],
            widths=tuple(self.hidden),
            n_targets=n_targets,
            n_members=self.n_members,
            knots=score_knots(prepared.inputs[train, :n_known], continuous),
            label_columns=_label_columns(source),
            n_waves=n_waves,
            wave_width=wave_width,
            witnessed=self.n_members // 2 if has_witness else 0,
        )

    def _plan(self, n_rows: int) -> Plan:
        """Decide the length of the training."""
        plan = make_plan(n_rows, self.epochs, self.batch_size, self.patience)
        if self.batch_size == "auto":
            plan = replace(plan, batch_size=min(plan.batch_size, _LARGEST_BATCH))
        if self.epochs == "auto":
            n_steps = _STEPS[n_rows >= _MANY_ROWS * (1 - self.validation_fraction)]
            plan = replace(plan, epochs=math.ceil(n_steps / math.ceil(n_rows / plan.batch_size)))
        return plan


def _label_columns(source: Sequence[OutputColumn]) -> tuple[tuple[int, int], ...]:
    """Find the outputs of each column with many labels: its first one, and the one after them."""
    places: dict[int, list[int]] = {}
    for place, one in enumerate(source):
        if one.role == "category":
            places.setdefault(one.column, []).append(place)
    return tuple((own[0], own[-1] + 1) for own in places.values() if len(own) > _FEW_LABELS)


@torch.no_grad()
def _chosen(stack: SharedMLP, data: Rows, held: Tensor, *, may_drop: bool) -> SharedMLP:
    """Keep so many members with and without the witness as predict the held-out rows best."""
    network = stack.network
    seeing, blind = range(network.witnessed), range(network.witnessed, network.n_members)
    outputs = stack_outputs(stack, data.inputs[held])
    y, weight = (part[held].double().cpu() for part in (data.targets, data.weight))

    def loss(chosen: list[int]) -> float:
        answer = stack.joint(outputs[chosen]).predictive()
        return -float((answer.log_prob(y) * weight).sum())

    few = sorted({max(1, len(seeing) // 4), max(1, len(seeing) // 2)})
    candidates = [(len(seeing), n) for n in (len(blind), *few, 0)]
    candidates += [(n, len(blind)) for n in few]
    if may_drop:
        candidates.append((0, len(blind)))
    groups = [[*seeing[:a], *blind[:b]] for a, b in candidates]
    return stack.select_members(min(groups, key=loss))
