"""The training of a student: what it keeps of the answers, how it starts, and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from priornet.distill import Targets, TransferSet, start_as_members, targets_for
from priornet.distill.answers import pool_answers, pooled_share
from priornet.estimators.asking import MakeTargets, pack_answers
from priornet.estimators.model import Fitted
from priornet.estimators.plan import network_seeds
from priornet.estimators.posing import Posed
from priornet.estimators.student_size import (
    StudentSize,
    learning_rates,
    prefers_likelihood,
    student_size,
    usual_rate,
)
from priornet.methods import Objective, method_named
from priornet.nn import Stack
from priornet.nn.architecture import Network
from priornet.nn.ramps import quantile_edges
from priornet.training import Rows
from priornet.training.objectives import student
from priornet.training.stack_training import Auto, Plan, TrainingSettings, train_stack

__all__ = ["StudentSettings", "Target", "balance", "student_plan", "train_student"]

Target = Literal["auto", "proxy", "likelihood"]

# A student without a member's weights begins as one Gaussian, for this share of its epochs.
_FIRST_SHARE = 0.3
_LEAST_SPREAD = 0.02  # of the average, when answers are weighed


@dataclass(frozen=True)
class StudentSettings:
    """How to train a student; :class:`~priornet.DistilledRegressor` says what they mean."""

    objective: Objective
    target: Target
    temperature: float
    transfer: TransferSet
    n_transfer: int | Auto
    hidden: tuple[int, ...] | None
    """Of the student."""
    teacher_hidden: tuple[int, ...]
    """Of a teacher that is trained here; the student's default depends on it."""
    n_pieces: int | Auto
    epochs: int | Auto
    batch_size: int | Auto
    learning_rate: float | Auto
    verbose: bool


class _Transfer(NamedTuple):
    """Inputs at which a teacher has answered."""

    inputs: Tensor
    weight: Tensor
    n_rows: int
    """Of the table around which they were drawn."""
    seed: int


def train_student(settings: StudentSettings, posed: Posed) -> Fitted:
    """Ask around a table, and learn the answers."""
    seed, source = network_seeds(posed.rng, 2)
    n_rows, has_weights = len(posed.centres), posed.asked.has_weights
    size = student_size(n_rows, settings.teacher_hidden, posed.asked.kind)
    drawn, answers = posed.asked.around(
        posed.centres,
        size.n_asked if settings.n_transfer == "auto" else settings.n_transfer,
        settings.transfer,
        Generator().manual_seed(source),
    )
    if settings.objective == "endd" and posed.asked.n_rows is not None:
        answers = pool_answers(answers, pooled_share(posed.asked.n_rows))
    by_likelihood = settings.objective == "endd" and (
        settings.target == "likelihood"
        or (settings.target == "auto" and prefers_likelihood(n_rows, has_weights))
    )
    kinds = _kinds(settings, by_likelihood=by_likelihood, first=not has_weights)
    packed, kept = pack_answers(kinds, answers, posed.centres)
    weight = posed.weight.new_ones(n_rows)
    weight[: len(posed.split.train)] = posed.weight[posed.split.train]
    weight = weight[drawn.centre[kept]]
    if posed.asked.kind == "rows":
        weight = weight * balance(*packed[0])
    asked = _Transfer(drawn.inputs[kept], weight, n_rows, seed)
    targets, columns = packed[-1]
    network = _network(settings, size, posed, targets)
    stack = network.build([seed], posed.inputs)
    plan = student_plan(n_rows, settings.epochs, settings.batch_size, size.n_steps)
    rate = settings.learning_rate
    if rate == "auto":
        rate = usual_rate(by_likelihood, has_weights)
    if has_weights:
        posed.asked.start(stack)
    else:  # first a Gaussian, which learns quickly where the members are
        first_rate, rate = learning_rates(rate, posed.asked.kind, max(network.widths))
        first = replace(network, head="gaussian", n_members=1).build([seed], posed.inputs)
        n_first = max(round(_FIRST_SHARE * plan.epochs), 1)
        _distil(settings, first, asked, *packed[0], replace(plan, epochs=n_first), first_rate)
        start_as_members(stack, first, [0])
        plan = replace(plan, epochs=max(plan.epochs - n_first, 1))
    training = _distil(settings, stack, asked, targets, columns, plan, rate)
    if settings.objective == "endd":
        training["target"] = "likelihood" if by_likelihood else "proxy"
    training["teacher"] = posed.asked.record()
    return Fitted(posed.preprocessor, posed.columns, network, stack, training)


def student_plan(n_rows: int, epochs: int | Auto, batch_size: int | Auto, n_steps: int) -> Plan:
    """Batches of 256, and as many passes as make the steps."""
    size = 256 if batch_size == "auto" else batch_size
    if epochs == "auto":
        epochs = max(round(n_steps / math.ceil(n_rows / size)), 20)
    return Plan(epochs, size, None)


def _kinds(settings: StudentSettings, *, by_likelihood: bool, first: bool) -> list[MakeTargets]:
    """What is kept of the answers: for the student, and for the Gaussian that it starts as."""

    def own(k_dim: int, n_members: int) -> Targets:
        proxy, annealed = not by_likelihood, settings.temperature > 1
        return targets_for(settings.objective, k_dim, n_members, proxy=proxy, annealed=annealed)

    def average(k_dim: int, n_members: int) -> Targets:
        return targets_for("end", k_dim, n_members, proxy=False, annealed=False)

    return [average, own] if first else [own]


def balance(targets: Targets, columns: Tensor) -> Tensor:
    """Weights of mean 1 against a loss that counts errors in units of the members' spread.

    Where that differs a thousandfold, a student spends itself on the rows of which the teacher is
    surest, and the mean of the others suffers. The best student stays the same: each input's loss
    is least where it was.
    """
    spread = targets.unpack(columns)["scatter"].diagonal(dim1=-2, dim2=-1).sum(-1)
    least = _LEAST_SPREAD * spread.mean() + torch.finfo(spread.dtype).tiny  # all may agree
    root = (spread + least).sqrt()
    return root / root.mean()


def _network(
    settings: StudentSettings, size: StudentSize, posed: Posed, targets: Targets
) -> Network:
    head = method_named(settings.objective).head
    assert head is not None
    n_pieces = size.n_pieces if settings.n_pieces == "auto" else settings.n_pieces
    continuous = [source.is_continuous for source in posed.preprocessor.source_]
    return Network(
        posed.centres.shape[1],
        size.hidden if settings.hidden is None else settings.hidden,
        targets.n_targets,
        head,
        n_members=targets.n_members if head == "mixture" else 1,
        min_excess=1.0,  # members that differ wildly ask for less, where variances explode
        min_belief=1e-10,  # members without noise, far outside: sure of different means
        edges=quantile_edges(posed.centres, n_pieces, continuous) if n_pieces else (),
    )


def _distil(
    settings: StudentSettings,
    stack: Stack,
    asked: _Transfer,
    targets: Targets,
    columns: Tensor,
    plan: Plan,
    rate: float,
) -> dict[str, Any]:
    loss = student(targets, settings.temperature)
    return train_stack(
        stack,
        Rows(asked.inputs, columns, asked.weight),
        [torch.arange(len(asked.inputs))],
        None,
        loss,
        loss,
        [asked.seed],
        TrainingSettings(rate, 0.0, plan, verbose=settings.verbose, what=settings.objective),
        epoch_rows=math.ceil(asked.n_rows / plan.batch_size) * plan.batch_size,
    )
