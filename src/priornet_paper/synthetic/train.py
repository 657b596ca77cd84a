"""Training for the synthetic experiment: one network of a stack per repetition of a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from priornet import losses
from priornet.distill import Targets, start_as_members, targets_for
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.nn import StackedMLP, stack_head
from priornet.priors import semi_informative_prior, stack_priors
from priornet.training import Batches, Loss, StackedAdam, Tick, cosine, fit, objectives
from priornet_paper.synthetic.config import Config
from priornet_paper.synthetic.data import Data, Predictor

Progress = Callable[[Tick], object]

_INPUTS_AT_ONCE = 1 << 12  # so that an ensemble's layers stay in cache


class Ensembles(NamedTuple):
    """The networks of all ensembles, and what each ensemble predicts."""

    stack: StackedMLP
    predictors: list[Predictor]


def train_ensembles(data: Data, progress: Progress) -> Ensembles:
    """Train Gaussian networks by likelihood: the members of every repetition's ensemble at once."""
    config = data.config
    n_runs, n_members, n_rows = len(data.x), config.n_members, config.n_train
    seeds = data.network_seeds(n_members)
    stack = StackedMLP(1, config.widths, stack_head("gaussian", config.widths[-1]), seeds)
    own = [torch.arange(r * n_rows, (r + 1) * n_rows) for r in range(n_runs)]
    rows = [own[r] for r in range(n_runs) for _ in range(n_members)]
    batches = Batches(data.rows(data.x, data.y), rows, seeds, config.batch_size)
    _fit(config, stack, objectives.likelihood, batches, progress)
    parts = (slice(r * n_members, (r + 1) * n_members) for r in range(n_runs))
    return Ensembles(stack, [data.predictor(stack, part) for part in parts])


def train_students(
    data: Data, config: Config, ensembles: Ensembles, progress: Progress
) -> list[Predictor]:
    """Train a Normal-Wishart network per ensemble, on its answers at training inputs with noise."""
    n_members, annealed = config.n_members, config.temperature > 1
    targets = targets_for("endd", 1, n_members, proxy=False, annealed=annealed)
    n_asked = config.n_train * config.n_noises
    asked = [
        x.repeat(config.n_noises, 1) + config.input_noise * torch.randn(n_asked, 1, generator=g)
        for x, g in zip(data.x, data.generators, strict=True)
    ]
    columns = [_ask(targets, *pair) for pair in zip(ensembles.predictors, asked, strict=True)]
    stack, seeds = _normal_wishart_networks(data, config, config.student_min_excess)
    if config.student_start == "member":
        start_as_members(stack, ensembles.stack, range(0, len(asked) * n_members, n_members))
    rows = [torch.arange(r * n_asked, (r + 1) * n_asked) for r in range(len(asked))]
    batches = Batches(
        data.rows(asked, columns), rows, seeds, config.batch_size, epoch_rows=config.n_train
    )
    _fit(config, stack, objectives.student(targets, config.temperature), batches, progress)
    return [data.predictor(stack, slice(r, r + 1)) for r in range(len(asked))]


def train_prior_networks(data: Data, config: Config, progress: Progress) -> list[Predictor]:
    """Train Normal-Wishart networks by KL: to the data in domain, to the prior outside, Eq. (8)."""
    n_runs, n_in, n_out = len(data.x), config.n_train, config.n_out
    # Beside the target a column that says whether the row has one: 1 inside, 0 outside.
    inside = torch.cat([torch.ones(n_in, 1), torch.zeros(n_out, 1)])
    rows = data.rows(
        [torch.cat(parts) for parts in zip(data.x, data.x_out, strict=True)],
        [torch.cat([torch.cat([y, torch.zeros(n_out, 1)]), inside], -1) for y in data.y],
    )
    evidence, divergences = (
        config.prior_evidence,
        {"reverse": losses.reverse_kl, "forward": _forward},
    )
    priors = stack_priors(
        [semi_informative_prior(y, evidence, evidence, config.prior_match) for y in data.y]
    )
    loss = objectives.prior_network(
        priors,
        config.beta,
        config.gamma,
        divergence=divergences[config.divergence],
        per_target=False,
    )
    stack, seeds = _normal_wishart_networks(data, config)
    starts = [r * (n_in + n_out) for r in range(n_runs)]
    batches = Batches(
        rows,
        [torch.arange(start, start + n_in) for start in starts],
        seeds,
        config.batch_size,
        extra=[torch.arange(start + n_in, start + n_in + n_out) for start in starts],
        extra_size=n_out // config.n_steps,
    )
    _fit(config, stack, loss, batches, progress)
    return [data.predictor(stack, slice(r, r + 1)) for r in range(n_runs)]


def _forward(nw: Any, y: Tensor, prior: NormalWishart, beta: Tensor) -> Tensor:
    """Compute the forward KL from the posterior of each target."""
    return kl_divergence(prior.expand(nw.batch_shape).posterior(y, beta), nw)


def _normal_wishart_networks(
    data: Data, config: Config, min_excess: float = 1e-4
) -> tuple[StackedMLP, list[int]]:
    """Make one network per repetition, and their seeds."""
    start = config.initial_evidence
    head = stack_head(
        "normal-wishart",
        config.widths[-1],
        initial_belief=start,
        initial_excess=start,
        min_excess=min_excess,
    )
    seeds = data.network_seeds()
    return StackedMLP(1, config.widths, head, seeds), seeds


def _fit(
    config: Config, stack: StackedMLP, loss: Loss, batches: Batches, progress: Progress
) -> None:
    optimizer = StackedAdam(stack.weights, config.learning_rate, config.weight_decay)
    schedule = cosine if config.schedule == "cosine" else lambda _: 1.0
    fit(stack, loss, batches, optimizer, epochs=config.epochs, schedule=schedule, progress=progress)


@torch.no_grad()
def _ask(targets: Targets, ensemble: Predictor, x: Tensor) -> Tensor:
    """Compute the ensemble's answers at inputs ``(N, 1)``, as columns for a student."""
    answers = [cast("GaussianEnsemble", ensemble(part)) for part in x.split(_INPUTS_AT_ONCE)]
    return torch.cat([targets.pack(answer) for answer in answers])
