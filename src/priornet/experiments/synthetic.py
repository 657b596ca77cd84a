r"""The paper's experiment on synthetic data: three ways to know what a regression does not know.

* ENSM, ten Gaussian networks trained by likelihood from different starts;
* EnD2, one Normal-Wishart network that has learnt the distribution of the ten, Eq. (17);
* NWPN, one Normal-Wishart network trained by reverse KL on data and on out-of-domain inputs,
  Eqs. (8) and (11).

The noise is known here, so data uncertainty can be held against the truth; knowledge uncertainty
should be small where there was data and large where there was none.

Paper: section 4 and its appendix, arXiv:2006.11590v2.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from priornet import losses
from priornet.data.synthetic import sample_inputs, sample_targets
from priornet.distributions import Gaussian, GaussianEnsemble
from priornet.experiments.results import preset_of, provenance
from priornet.experiments.synthetic_metrics import Predictor, measure, numbers, trace
from priornet.nn import MLP, GaussianHead, NormalWishartHead
from priornet.priors import semi_informative_prior
from priornet.training.schedules import cosine
from priornet.training.threads import at_most

__all__ = ["METHODS", "PRESETS", "Config", "Tick", "run"]

METHODS = ("ENSM", "EnD2", "NWPN")

Ensemble = Callable[[Tensor], GaussianEnsemble]
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]

_CHOICES = {
    "schedule": ("constant", "cosine"),
    "student_start": ("random", "member"),
    "prior_match": ("precision", "variance"),
}


@dataclass(frozen=True)
class Config:
    """Settings of one run; the defaults are the paper's."""

    seed: int = 0
    """Seed of the data, the initial weights and the order of the batches."""
    n_train: int = 2048
    """Training points."""
    train_edge: float = 10.0
    """Training inputs are uniform on ``|x| <= train_edge``."""
    n_out: int = 512
    """Out-of-domain training inputs, which have no targets; NWPN alone sees them."""
    out_range: tuple[float, float] = (20.0, 25.0)
    """They are uniform on this range of ``|x|``."""
    widths: tuple[int, ...] = (30, 30)
    """Hidden layers of every network."""
    n_members: int = 10
    """Networks in the ensemble."""
    epochs: int = 800
    """Passes through the training data, for each of the three methods."""
    batch_size: int = 128
    """Training points in a step; the out-of-domain inputs are spread evenly over the steps."""
    learning_rate: float = 1e-2
    """Adam's learning rate, at its highest."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Whether the learning rate stays, or decays to zero along half a cosine."""
    weight_decay: float = 1e-4
    """Adam's L2 penalty."""
    student_start: Literal["random", "member"] = "random"
    """Whether the EnD2 student starts from random weights, or as a copy of the first member."""
    input_noise: float = 3.0
    """Standard deviation of the noise on the inputs at which the student asks the ensemble."""
    temperature: float = 1.0
    """Temperature of the distillation."""
    student_min_excess: float = 1e-4
    """Lower bound of the student's excess. Far out the members ask for less than 0, where variances
    do not exist; 1 keeps the student's variances at the ensemble's."""
    initial_evidence: float = 10.0
    """Belief and excess that a Normal-Wishart network predicts before training."""
    prior_evidence: float = 1e-2
    """Belief and excess of the prior to which NWPN returns away from the data."""
    prior_match: Literal["precision", "variance"] = "precision"
    """Which moment of that prior is the targets': see :func:`semi_informative_prior`."""
    beta: float = 100.0
    """How often NWPN counts each target against the prior."""
    gamma: float = 0.5
    """Weight of NWPN's loss out of domain."""
    n_test: int = 4096
    """Fresh points for the metrics, in domain and out of it."""
    test_out_range: tuple[float, float] = (15.0, 25.0)
    """Range of ``|x|`` that counts as out of domain for the metrics."""
    n_curve: int = 401
    """Grid points of the curves, from ``-curve_edge`` to ``curve_edge``."""
    curve_edge: float = 25.0
    """Where the curves end."""

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                given, listing = getattr(self, name), ", ".join(allowed)
                raise ValueError(f'unknown {name} "{given}"; choose one of: {listing}.')
        for name in ("n_train", "n_members", "epochs", "batch_size", "n_test", "n_curve"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1; got {getattr(self, name)}.")
        if self.n_out < self.n_steps:
            raise ValueError(
                f"`n_out` must be at least {self.n_steps}, one for each step of an epoch; got "
                f"{self.n_out}."
            )

    @property
    def n_steps(self) -> int:
        """Steps in an epoch."""
        return math.ceil(self.n_train / self.batch_size)


_DEMO = Config(epochs=150, schedule="cosine", student_start="member", student_min_excess=1.0)
PRESETS = {
    "demo": _DEMO,  # the same picture in a fifth of the steps
    "paper": Config(),
    "smoke": replace(_DEMO, epochs=2, n_members=3, n_test=256, n_curve=51),
}


class Tick(NamedTuple):
    """Where a run stands; handed to the ``progress`` callback after every epoch."""

    method: str
    epoch: int
    done: float
    loss: float


Report = Callable[[Tick], object]


def run(config: Config, progress: Report | None = None) -> dict[str, Any]:
    """Train the three methods, measure them, and trace their curves.

    Args:
        config: Settings; see :data:`PRESETS`.
        progress: Called after every epoch.

    Returns:
        The results, ready for JSON: metrics of each method, the curves behind the figure, the
        training data, and what it took to make them. One seed gives one set of numbers.
    """
    started = time.perf_counter()
    with at_most(1), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(config.seed)  # for the initial weights
        trainer = _Trainer(config, progress)
        members, ensemble = train_ensemble(trainer)
        student = train_student(trainer, members, ensemble)
        predictors = {"ENSM": ensemble, "EnD2": student, "NWPN": train_prior_network(trainer)}
        with torch.no_grad():
            methods, truth = measure(config, predictors)
            curves = trace(config, predictors)
    return {
        "dataset": "synthetic",
        "preset": preset_of(config, PRESETS),
        "config": asdict(config),
        "methods": methods,
        "truth": truth,
        "curves": curves,
        "train": {"x": numbers(trainer.x), "y": numbers(trainer.y)},
        "seconds": round(time.perf_counter() - started, 2),
        "device": "cpu",
        **provenance(),
    }


class _Trainer:
    """The data of a run, and the one loop that all three methods share."""

    def __init__(self, config: Config, progress: Report | None) -> None:
        self.config, self.progress = config, progress
        self.generator = generator = torch.Generator().manual_seed(2 * config.seed)
        self.x = sample_inputs(config.n_train, 0.0, config.train_edge, generator)
        self.y = sample_targets(self.x, generator)
        self.x_out = sample_inputs(config.n_out, *config.out_range, generator)

    def fit(self, method: str, parameters: Iterable[Tensor], loss_fn: Loss) -> None:
        """Minimise ``loss_fn(x, y, x_out)``, one value or one per network trained side by side."""
        config = self.config
        n_steps, peak = config.n_steps, config.learning_rate
        optimizer = torch.optim.Adam(
            parameters, lr=peak, weight_decay=config.weight_decay, fused=True
        )
        for epoch in range(config.epochs):
            mean_loss = torch.zeros(())
            for step, batch in enumerate(self._batches()):
                if config.schedule == "cosine":
                    share = (epoch + step / n_steps) / config.epochs
                    optimizer.param_groups[0]["lr"] = peak * cosine(share)
                loss = loss_fn(*batch)
                optimizer.zero_grad()
                loss.sum().backward()  # a sum: each network gets the gradient of its own loss
                optimizer.step()
                mean_loss += loss.detach().mean() / n_steps
            if self.progress is not None:
                done = (METHODS.index(method) + (epoch + 1) / config.epochs) / len(METHODS)
                self.progress(Tick(method, epoch + 1, done, mean_loss.item()))

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """One pass through the data and, in equally many pieces, the out-of-domain inputs."""
        n_steps = self.config.n_steps
        rows = torch.randperm(len(self.x), generator=self.generator).tensor_split(n_steps)
        out = torch.randperm(len(self.x_out), generator=self.generator).tensor_split(n_steps)
        for i, j in zip(rows, out, strict=True):
            yield self.x[i], self.y[i], self.x_out[j]


class _Network(nn.Module):
    """Inputs to unit variance, ReLU layers, a head. The targets have unit scale as they are."""

    def __init__(self, config: Config, head: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.unit = config.train_edge / math.sqrt(3)  # standard deviation of a uniform input
        self.body = MLP(1, *config.widths)
        self.head = head(self.body.out_features)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.body(x / self.unit))


def _normal_wishart_network(config: Config, min_excess: float = 1e-4) -> _Network:
    start = config.initial_evidence

    def head(width: int) -> NormalWishartHead:
        return NormalWishartHead(
            width, initial_belief=start, initial_excess=start, min_excess=min_excess
        )

    return _Network(config, head)


def train_ensemble(trainer: _Trainer) -> tuple[dict[str, Tensor], Ensemble]:
    """Gaussian networks by likelihood, all in one batched computation.

    Returns:
        Their parameters, each with a leading axis for the member, and the ensemble that they form.
    """
    config = trainer.config
    networks = [_Network(config, GaussianHead) for _ in range(config.n_members)]
    parameters, _ = stack_module_state(networks)
    template = copy.deepcopy(networks[0]).to("meta")

    def member(parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        gaussian: Gaussian = functional_call(template, parameters, (x,))
        return gaussian.loc, gaussian.precision_tril

    def ensemble(x: Tensor) -> GaussianEnsemble:
        return GaussianEnsemble.from_precision_tril(*vmap(member, (0, None))(parameters, x))

    def loss(x: Tensor, y: Tensor, _: Tensor) -> Tensor:
        nll = losses.gaussian_nll(ensemble(x).members, y.expand(config.n_members, *y.shape))
        return nll.mean(-1)

    trainer.fit("ENSM", parameters.values(), loss)
    return parameters, ensemble


def train_student(trainer: _Trainer, members: dict[str, Tensor], ensemble: Ensemble) -> Predictor:
    """One Normal-Wishart network that distils the ensemble, from inputs with noise on them."""
    config = trainer.config
    student = _normal_wishart_network(config, config.student_min_excess)
    if config.student_start == "member":
        _copy_member(members, student)

    def loss(x: Tensor, _: Tensor, __: Tensor) -> Tensor:
        x = x + config.input_noise * torch.randn(x.shape, generator=trainer.generator)
        with torch.no_grad():
            teacher = ensemble(x)
        return losses.endd(student(x), teacher, config.temperature).mean()

    trainer.fit("EnD2", student.parameters(), loss)
    return student


@torch.no_grad()
def _copy_member(members: dict[str, Tensor], student: nn.Module) -> None:
    """Start as the first member: its layers, mean and precision; only the evidence is new.

    Both heads put the outputs for mean and precision first: those rows are the member's.
    """
    for name, parameter in student.named_parameters():
        member = members[name][0]
        parameter[: len(member)].copy_(member)


def train_prior_network(trainer: _Trainer) -> Predictor:
    """One Normal-Wishart network by reverse KL: towards the data inside, to the prior outside."""
    config = trainer.config
    network = _normal_wishart_network(config)
    prior = semi_informative_prior(
        trainer.y, config.prior_evidence, config.prior_evidence, config.prior_match
    )

    def loss(x: Tensor, y: Tensor, x_out: Tensor) -> Tensor:
        inside = losses.reverse_kl(network(x), y, prior, config.beta)
        outside = losses.reverse_kl(network(x_out), None, prior, beta=0.0)
        return losses.multi_task(inside, outside, config.gamma).total

    trainer.fit("NWPN", network.parameters(), loss)
    return network
