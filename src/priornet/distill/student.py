"""The student: its default size, its first weights, its settings and its training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from priornet.distill.problem import DistillationProblem
from priornet.distill.targets import Targets, pool_covariances, pooled_share, targets_for
from priornet.distill.teacher import AnswerKind, Answers
from priornet.distill.transfer import Drawn, TransferSet
from priornet.methods import METHODS, HeadKind, Objective
from priornet.nn import Network, Stack
from priornet.nn.architecture import quantile_edges
from priornet.training import Rows
from priornet.training.objectives import student
from priornet.training.stack_training import Auto, Plan, StackRows, TrainingSettings, train_stack

Target = Literal["auto", "proxy", "likelihood"]

_HEADS: dict[str, HeadKind] = {
    one.objective: one.head for one in METHODS.values() if one.objective and one.head
}
# A student without a member's weights begins as one Gaussian, for this share of its epochs.
_FIRST_SHARE = 0.3
_LEAST_SPREAD = 0.02  # of the average spread, in the weights of answers

# The defaults depend on how the teacher's answers vary and on the rows of the table. They were
# chosen on rows held out of the training parts of several tables, see benchmarks/README.md.
_LEAST_STEPS, _LEAST_INPUTS = 12_000, 20_000
# Most steps, most inputs, how many times the teacher's width, pieces.
_SIZES: dict[AnswerKind, tuple[int, int, float, int]] = {
    "smooth": (24_000, 200_000, 2.0, 0),
    "fine": (24_000, 200_000, 4.0, 0),
    "steps": (24_000, 200_000, 2.0, 16),
    "rows": (36_000, 400_000, 2.0, 16),
}
# To follow rows: up to so many of them, how many times the teacher's width, least width, pieces.
# Larger students are not five times faster than a forest, and on few rows hardly better.
_FOLLOWING = ((2000, 1.5, 0, 8), (20_000, 2.0, 256, 16), (math.inf, 2.0, 384, 16))
# Adam's first learning rate. Twice as much for the likelihood ranks the errors of one table better
# and costs nothing measurable on others; four times as much brings nothing more.
_DEFAULT_RATE, _LIKELIHOOD_RATE = 2e-3, 4e-3
# Factors of the learning rate: of the Gaussian that a student begins as, and of the student.
_SMOOTH_RATES, _OTHER_RATES = (5.0, 2.0), (2.0, 1.0)
_RATES_UP_TO = 256  # units of a layer; wider ones need smaller steps
# The likelihood is the default up to so many rows, which get six steps each and more; with five, it
# was worse than the proxy on two tables of three.
_LIKELIHOOD_UP_TO = 2000


@dataclass(frozen=True)
class StudentSize:
    """Default size of a student, and of its training."""

    hidden: tuple[int, ...]
    """Width of the hidden layers."""
    n_pieces: int
    """Ramps per number, see :mod:`priornet.nn.architecture`; 0 for none."""
    n_transfer: int
    """Inputs at which the teacher is asked."""
    n_steps: int


def student_size(n_rows: int, hidden: tuple[int, ...], kind: AnswerKind) -> StudentSize:
    """Choose the default size: more of everything for tables of more rows.

    Args:
        n_rows: Rows around which the teacher is asked.
        hidden: Width of the hidden layers of a teacher that is trained here.
        kind: Kind of the teacher's answers.
    """
    most_steps, most_inputs, times, n_pieces = _SIZES.get(kind, _SIZES["smooth"])
    least = 0
    n_steps = min(max(5 * n_rows, _LEAST_STEPS), most_steps)
    n_transfer = max(min(max(64 * n_rows, _LEAST_INPUTS), most_inputs), n_rows)
    if kind == "rows":
        _, times, least, n_pieces = next(size for size in _FOLLOWING if n_rows <= size[0])
    wide = tuple(max(round(times * width), least) for width in hidden)
    return StudentSize(wide, n_pieces, n_transfer, n_steps)


def learning_rates(rate: float, kind: AnswerKind, width: int) -> tuple[float, float]:
    """Compute the rates of the Gaussian that a student begins as, and of the student.

    ``rate`` is that of a student that starts as the average of members, and has less far to go.
    """
    first, then = _SMOOTH_RATES if kind == "smooth" else _OTHER_RATES
    share = 1.0 if kind == "smooth" else min(_RATES_UP_TO / width, 1.0)
    return rate * share * first, rate * share * then


def prefers_likelihood(n_rows: int, has_weights: bool) -> bool:
    """Tell if EnD2 learns the likelihood by default; ``has_weights`` if it starts from members."""
    return has_weights and n_rows <= _LIKELIHOOD_UP_TO


def default_rate(by_likelihood: bool, has_weights: bool) -> float:
    """Choose Adam's first learning rate, before :func:`learning_rates`."""
    return _LIKELIHOOD_RATE if by_likelihood and has_weights else _DEFAULT_RATE


def student_plan(n_rows: int, epochs: int | Auto, batch_size: int | Auto, n_steps: int) -> Plan:
    """Choose batches of 256, and as many epochs as make the steps."""
    size = 256 if batch_size == "auto" else batch_size
    if epochs == "auto":
        epochs = max(round(n_steps / math.ceil(n_rows / size)), 20)
    return Plan(epochs, size, None)


@dataclass(frozen=True)
class StudentSettings:
    """Settings of a student, without any ``"auto"``; see :class:`~priornet.DistilledRegressor`."""

    objective: Objective
    by_likelihood: bool
    """EnD2 learns the members' likelihood, not the Normal-Wishart fitted to them."""
    temperature: float
    transfer: TransferSet
    n_transfer: int
    hidden: tuple[int, ...]
    n_pieces: int
    plan: Plan
    learning_rate: float
    verbose: bool = False


class Student(NamedTuple):
    """A trained student."""

    network: Network
    stack: Stack
    training: dict[str, Any]
    """Record of the training, ready for JSON."""


def train_student(
    settings: StudentSettings,
    problem: DistillationProblem,
    drawn: Drawn,
    answers: Iterator[Answers],
    seed: int,
) -> Student:
    """Train a student on a teacher's answers.

    Args:
        settings: Its settings.
        problem: The problem that was asked.
        drawn: The inputs, from :meth:`DistillationProblem.ask`.
        answers: The answers there, from the same call.
        seed: Seed of the weights and of the order of the inputs.
    """
    packed, kept = _pack(settings, problem, answers)
    inputs, weight = drawn.inputs[kept], problem.weight[drawn.centre[kept]]
    if problem.kind == "rows":
        weight = weight * balance(*packed[0])
    targets, columns = packed[-1]
    network = _network(settings, problem, targets)
    stack = network.build([seed], problem.centres)
    n_rows = len(problem.centres)
    if problem.members is not None:
        start_as_average(stack, problem.members)
    else:  # begin as a Gaussian, which learns quickly where the members are
        first, settings = _two_parts(settings, problem.kind, max(network.widths))
        gaussian = replace(network, head="gaussian", n_members=1).build([seed], problem.centres)
        data = Rows(inputs, packed[0][1], weight)
        _train(first, gaussian, packed[0][0], data, n_rows, seed)
        start_as_members(stack, gaussian, [0])
    record = _train(settings, stack, targets, Rows(inputs, columns, weight), n_rows, seed)
    if settings.objective == "endd":
        record["target"] = "likelihood" if settings.by_likelihood else "proxy"
    record["teacher"] = problem.teacher_record(targets.n_members)
    return Student(network, stack, record)


def _two_parts(
    settings: StudentSettings, kind: AnswerKind, width: int
) -> tuple[StudentSettings, StudentSettings]:
    """Split a training: for the Gaussian that a student begins as, and for the student."""
    rates, plan = learning_rates(settings.learning_rate, kind, width), settings.plan
    n_first = max(round(_FIRST_SHARE * plan.epochs), 1)
    n_rest = max(plan.epochs - n_first, 1)
    return (
        replace(settings, learning_rate=rates[0], plan=replace(plan, epochs=n_first)),
        replace(settings, learning_rate=rates[1], plan=replace(plan, epochs=n_rest)),
    )


def _pack(
    settings: StudentSettings, problem: DistillationProblem, answers: Iterator[Answers]
) -> tuple[list[tuple[Targets, Tensor]], Tensor]:
    """Pack answers into targets; mark the inputs that have an answer.

    The last targets are the student's; the first are those of the Gaussian that it begins as.
    """
    n_rows = problem.n_member_rows if settings.objective == "endd" else None
    share = 0.0 if n_rows is None else pooled_share(n_rows)
    kinds: list[Targets] = []
    pieces: list[list[Tensor]] = []
    kept: list[Tensor] = []
    for answer in answers:
        ensemble = pool_covariances(answer.ensemble, share)
        kinds = kinds or _kinds(settings, problem, (ensemble.k_dim, ensemble.n_members))
        pieces.append([targets.pack(ensemble).to(problem.centres) for targets in kinds])
        kept.append(answer.kept)
    columns = [torch.cat(own) for own in zip(*pieces, strict=True)]
    return list(zip(kinds, columns, strict=True)), torch.cat(kept)


def _kinds(
    settings: StudentSettings, problem: DistillationProblem, sizes: tuple[int, int]
) -> list[Targets]:
    is_proxy, is_annealed = not settings.by_likelihood, settings.temperature > 1
    own = targets_for(settings.objective, *sizes, proxy=is_proxy, annealed=is_annealed)
    if problem.members is not None:
        return [own]
    return [targets_for("end", *sizes, proxy=False, annealed=False), own]


def balance(targets: Targets, columns: Tensor) -> Tensor:
    """Compute weights of mean 1 for a loss that counts errors in units of the members' spread.

    Where the spread differs a thousandfold, a student spends itself on the rows of which the
    teacher is surest, and the mean of the others suffers. The best student stays the same: each
    input's loss has its minimum where it was.
    """
    spread = targets.unpack(columns)["scatter"].diagonal(dim1=-2, dim2=-1).sum(-1)
    least = _LEAST_SPREAD * spread.mean() + torch.finfo(spread.dtype).tiny  # all may agree
    root = (spread + least).sqrt()
    return root / root.mean()


def _network(settings: StudentSettings, problem: DistillationProblem, targets: Targets) -> Network:
    head = _HEADS[settings.objective]
    n_pieces = settings.n_pieces
    continuous = [source.is_continuous for source in problem.preprocessor.source_]
    return Network(
        problem.centres.shape[1],
        settings.hidden,
        targets.n_targets,
        head,
        n_members=targets.n_members if head == "mixture" else 1,
        min_excess=1.0,  # members that differ wildly ask for less, where variances explode
        min_belief=1e-10,  # members without noise, far outside: sure of different means
        edges=quantile_edges(problem.centres, n_pieces, continuous) if n_pieces else (),
    )


def _train(
    settings: StudentSettings, stack: Stack, targets: Targets, data: Rows, n_rows: int, seed: int
) -> dict[str, Any]:
    """Train on answers packed into columns; an epoch is as long as the table of ``n_rows``."""
    size = settings.plan.batch_size
    rows = StackRows(
        data, [torch.arange(len(data.inputs))], per_epoch=math.ceil(n_rows / size) * size
    )
    loss = student(targets, settings.temperature)
    plan, rate, what = settings.plan, settings.learning_rate, settings.objective
    training = TrainingSettings(rate, 0.0, plan, verbose=settings.verbose, what=what)
    return train_stack(stack, rows, loss, [seed], training)


@torch.no_grad()
def start_as_member(student: nn.Module, member: nn.Module) -> None:
    """Start one network from a member with the same body: its layers, mean and precision.

    Tensors of another shape keep their own first weights, except the outputs of the head: all heads
    put mean and precision first, a mixture those of every member.

    Args:
        student: A network with a ``head``.
        member: A Gaussian network, on any device.
    """
    sources = member.state_dict()
    n_heads = getattr(student.head, "n_members", 1)
    for name, piece in student.state_dict().items():  # of the tensors themselves
        source = sources[name].to(piece) if name in sources else piece
        if source.shape == piece.shape:
            piece.copy_(source)
        elif name.startswith("head.") and source.shape[1:] == piece.shape[1:]:
            filled = torch.cat([source] * n_heads)
            piece[: len(filled)] = filled


@torch.no_grad()
def start_as_members(student: Stack, teacher: Stack, members: Sequence[int]) -> None:
    """Start from members: their layers, means and precisions; only the evidence is new.

    From random weights the likelihood of the members first gives up on the mean. All heads put mean
    and precision first, a mixture those of every member.

    Args:
        student: The students, of the teacher's widths.
        teacher: Gaussian networks.
        members: For each student, the network of the teacher that it starts from.
    """
    sources = teacher.pieces()
    for name, piece in student.pieces().items():
        source = sources[name][list(members)].to(piece)
        times = getattr(student.head, "n_members", 1) if piece.shape != source.shape else 1
        filled = torch.cat([source] * times, -1)
        piece[..., : filled.shape[-1]] = filled


@torch.no_grad()
def start_as_average(student: Stack, teacher: Stack) -> bool:
    """Start one wide student as the average of the teacher's first members, side by side.

    Each layer of the student holds those of as many members as it is wide, apart from each other;
    the last takes the average of their means and precisions. Only the evidence is new.

    Returns:
        True if they fit: the student's layers must be the same whole multiple of a member's.
    """
    own, members = student.pieces(), teacher.pieces()
    n_layers = len(own) // 2
    n, rest = divmod(own["0.bias"].shape[-1], members["0.bias"].shape[-1])
    wide = [own[f"{i}.bias"].shape[-1] for i in range(n_layers - 1)]
    narrow = [members[f"{i}.bias"].shape[-1] for i in range(len(members) // 2 - 1)]
    if rest or n > teacher.n_networks or wide != [n * width for width in narrow]:
        return False
    for i in range(n_layers):
        weights = list(members[f"{i}.weight"][:n].to(student.weights))
        biases = members[f"{i}.bias"][:n].to(student.weights)
        weight, bias = own[f"{i}.weight"][0], own[f"{i}.bias"][0]
        if i == n_layers - 1:
            times = getattr(student.head, "n_members", 1)
            filled = torch.cat([torch.cat(weights) / n] * times, -1)
            weight[:, : filled.shape[-1]] = filled
            bias[: filled.shape[-1]] = biases.mean(0).repeat(times)
        else:
            filled = torch.cat(weights, -1) if i == 0 else torch.block_diag(*weights)
            weight.zero_()  # ramps, which members lack, begin without effect
            weight[: len(filled)] = filled
            bias.copy_(biases.flatten())
    return True
