r"""The paper's experiment on synthetic data: three ways to know what a regression does not know.

* ENSM, ten Gaussian networks trained by likelihood from different starts;
* EnD2, one Normal-Wishart network that has learnt the distribution of the ten, Eq. (17);
* NWPN, one Normal-Wishart network trained by reverse KL on data and on out-of-domain inputs,
  Eqs. (8) and (11).

The noise is known here, so data uncertainty can be held against the truth; knowledge uncertainty
should be small where there was data and large where there was none.

Beside them run :data:`VARIANTS`, each a method with a setting changed: what mends a shortcoming of
the paper's own settings, and the forward KL, which the paper says does not work.

Paper: section 4 and its appendix, arXiv:2006.11590v2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from priornet import training
from priornet.evaluation import preset_of, provenance
from priornet_paper.synthetic.score import (
    Predictor,
    against,
    measure,
    numbers,
    summarise,
    trace,
)
from priornet_paper.synthetic.train import (
    Data,
    Ensembles,
    train_ensembles,
    train_prior_networks,
    train_students,
)

METHODS = ("ENSM", "EnD2", "NWPN")


class Variant(NamedTuple):
    """A method with some settings changed."""

    method: str
    change: Mapping[str, Any]
    why: str


VARIANTS = {
    "EnD2-bounded": Variant(
        "EnD2",
        {"student_min_excess": 1.0},
        "Far out the members ask for an excess below 0, where variances do not exist; a student "
        "bounded at 1 over-estimates them much less.",
    ),
    "NWPN-precision": Variant(
        "NWPN",
        {"prior_match": "precision"},
        "The paper's prior to the letter, Eq. (10): its mean precision is that of the targets, so "
        "that it expects 201 times their variance. Counted against beta = 100 it adds 2 % of the "
        "targets' variance to the noise everywhere: the optimum of the loss, found by any network "
        "however good, is 30 % off. NWPN has the same prior with its mean variance matched.",
    ),
    "NWPN-decayed": Variant(
        "NWPN",
        {"schedule": "cosine"},
        "With a constant learning rate, as in the paper, the last steps decide how well the noise "
        "is found; with one that decays it is found almost twice as well.",
    ),
    "NWPN-forward": Variant(
        "NWPN",
        {"divergence": "forward"},
        "The forward KL averages the posteriors of single targets, which do not know the noise: "
        "their spread becomes knowledge uncertainty, and data uncertainty stays flat.",
    ),
    "NWPN-both": Variant(
        "NWPN",
        {"prior_match": "precision", "divergence": "forward"},
        "The paper's prior and the forward KL: data uncertainty is as flat, but not ten times too "
        "small, for this prior expects much of it.",
    ),
}
_CHOICES = {
    "schedule": ("constant", "cosine"),
    "student_start": ("random", "member"),
    "prior_match": ("precision", "variance"),
    "divergence": ("reverse", "forward"),
}


@dataclass(frozen=True)
class Config:
    """Settings of one run; the defaults are the paper's, but for the prior's matched moment.

    The paper leaves open how inputs are scaled (here to unit variance), how networks begin (as
    torch's layers do, the last layer at zero), whether the noise on a student's inputs is fresh
    (here from a pool), and belief and excess at the start. What is not said of a schedule, of
    clipping or of averaging is taken to be absent.
    """

    seed: int = 0
    """Seed of the first repetition's data, weights and batches; the next count on from it."""
    n_runs: int = 3
    """Repetitions with data of their own, trained side by side."""
    n_train: int = 2048
    """Training points."""
    train_edge: float = 10.0
    """Training inputs are uniform on ``|x| <= train_edge``."""
    n_out: int = 512
    """Out-of-domain training inputs, which have no targets; NWPN alone sees them."""
    out_range: tuple[float, float] = (20.0, 25.0)
    """They are uniform on this range of ``|x|``. The text has [-25, 20], a slip for [-25, -20]."""
    widths: tuple[int, ...] = (30, 30)
    """Hidden layers of every network."""
    n_members: int = 10
    """Networks in the ensemble."""
    epochs: int = 800
    """Passes through the training data, for each method."""
    batch_size: int = 128
    """Training points in a step; the out-of-domain inputs are spread evenly over the steps."""
    learning_rate: float = 1e-2
    """Adam's learning rate, at its highest."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Whether the learning rate stays, or decays to zero along half a cosine."""
    weight_decay: float = 1e-4
    """Adam's L2 penalty."""
    student_start: Literal["random", "member"] = "random"
    """Whether the EnD2 student starts from random weights, or as a copy of the first member. From
    random weights it first gives up on the mean, and needs several hundred epochs to come back."""
    input_noise: float = 3.0
    """Standard deviation of the noise on the inputs at which the student asks the ensemble."""
    n_noises: int = 64
    """Draws of that noise for each training input; epochs take them in turn."""
    temperature: float = 1.0
    """Temperature at which the distillation starts; above 1 it is annealed."""
    student_min_excess: float = 1e-4
    """Lower bound of the student's excess. Far out the members ask for less than 0, where variances
    do not exist; 1 keeps the student's variances nearer to the ensemble's."""
    initial_evidence: float = 10.0
    """Belief and excess that a Normal-Wishart network predicts before training."""
    prior_evidence: float = 1e-2
    """Belief and excess of the prior to which NWPN returns away from the data."""
    prior_match: Literal["precision", "variance"] = "variance"
    """Which moment of that prior is the targets': see :func:`semi_informative_prior`. The one thing
    here that is not the paper's, whose prior hides the noise: see ``NWPN-precision``."""
    beta: float = 100.0
    """How often NWPN counts each target against the prior."""
    gamma: float = 0.5
    """Weight of NWPN's loss out of domain."""
    divergence: Literal["reverse", "forward"] = "reverse"
    """Which way NWPN's KL to the tempered posterior goes."""
    variants: tuple[str, ...] = tuple(VARIANTS)
    """Names of :data:`VARIANTS` to run beside the methods."""
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
        for name in set(self.variants) - set(VARIANTS):
            raise ValueError(f'unknown variant "{name}"; choose from: {", ".join(VARIANTS)}.')
        counts = ("n_runs", "n_train", "n_members", "epochs", "batch_size", "n_noises")
        for name in (*counts, "n_test", "n_curve"):
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

    @property
    def seeds(self) -> range:
        """One for each repetition."""
        return range(self.seed, self.seed + self.n_runs)


PRESETS = {
    "paper": Config(),
    "smoke": Config(
        n_runs=2,
        epochs=2,
        schedule="cosine",
        student_start="member",
        student_min_excess=1.0,
        n_members=3,
        n_noises=2,
        n_test=256,
        n_curve=51,
    ),
}


class Tick(NamedTuple):
    """Where a run stands; handed to the ``progress`` callback after every epoch."""

    method: str
    epoch: int
    done: float
    loss: float


Report = Callable[[Tick], object]


def run(config: Config, progress: Report | None = None) -> dict[str, Any]:
    """Train the methods, measure them, and trace their curves.

    Args:
        config: Settings; see :data:`PRESETS`.
        progress: Called after every epoch.

    Returns:
        The results, ready for JSON: metrics of each method and variant over the repetitions, the
        curves behind the figure and the training data of the first one, and what it took to make
        them. One seed gives one set of numbers on one processor.
    """
    started = time.perf_counter()
    data = Data(config)
    predictors, seconds = _train(data, progress)
    measured = [
        measure(config, seed, {name: each[i] for name, each in predictors.items()})
        for i, seed in enumerate(config.seeds)
    ]
    origin = {"device": "cpu", **provenance()}
    methods = {name: summarise([found[name] for found, _ in measured]) for name in predictors}
    for name, found in methods.items():
        found |= {"seconds": seconds[name], **origin}
        if _method(name) == "EnD2":
            found["against_ensemble"] = summarise(
                [
                    against(config, seed, predictors[name][i], predictors["ENSM"][i])
                    for i, seed in enumerate(config.seeds)
                ]
            )
    return {
        "dataset": "synthetic",
        "preset": preset_of(config, PRESETS),
        "config": asdict(config),
        "methods": {name: methods[name] for name in METHODS},
        "variants": {name: {**_described(name), **methods[name]} for name in config.variants},
        "truth": summarise([truth for _, truth in measured]),
        "curves": trace(config, {name: each[0] for name, each in predictors.items()}),
        "train": {"x": numbers(data.x[0]), "y": numbers(data.y[0])},
        "seconds": round(time.perf_counter() - started, 2),
        **origin,
    }


def _method(name: str) -> str:
    """The method that a variant varies; a method's own name."""
    return VARIANTS[name].method if name in VARIANTS else name


def _described(name: str) -> dict[str, Any]:
    variant = VARIANTS[name]
    return {"of": variant.method, "change": dict(variant.change), "why": variant.why}


def _train(
    data: Data, progress: Report | None
) -> tuple[dict[str, list[Predictor]], dict[str, float]]:
    """A predictor per repetition for every method and variant, and the seconds it took."""
    config = data.config
    names = (*METHODS, *config.variants)
    predictors: dict[str, list[Predictor]] = {}
    seconds: dict[str, float] = {}
    ensembles: Ensembles | None = None
    for name in names:
        began = time.perf_counter()
        own = replace(config, **VARIANTS[name].change) if name in VARIANTS else config
        report = None if progress is None else _reporter(progress, name, names)
        if ensembles is None:
            ensembles = train_ensembles(data, report)
            predictors[name] = ensembles.predictors
        elif _method(name) == "EnD2":
            predictors[name] = train_students(data, own, ensembles, report)
        else:
            predictors[name] = train_prior_networks(data, own, report)
        seconds[name] = round(time.perf_counter() - began, 2)
    return predictors, seconds


def _reporter(
    progress: Report, name: str, names: tuple[str, ...]
) -> Callable[[training.Tick], object]:
    def report(tick: training.Tick) -> None:
        done = (names.index(name) + tick.epoch / tick.n_epochs) / len(names)
        progress(Tick(name, tick.epoch, done, tick.loss))

    return report
