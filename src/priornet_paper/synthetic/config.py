"""Settings of the synthetic experiment: the methods, their variants, the presets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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
    (here from a pool), and belief and excess at the start. It names no schedule, clipping or
    averaging, so there is none.
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
    """The learning rate stays, or decays to zero along half a cosine."""
    weight_decay: float = 1e-4
    """Adam's L2 penalty."""
    student_start: Literal["random", "member"] = "random"
    """The EnD2 student starts from random weights, or as a copy of the first member. From random
    weights it first gives up on the mean, and needs several hundred epochs to come back."""
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
    """Moment of that prior that is the targets': see :func:`semi_informative_prior`. Only this
    default differs from the paper, whose prior hides the noise: see ``NWPN-precision``."""
    beta: float = 100.0
    """Weight of each target in NWPN's posterior; that of the prior is 1."""
    gamma: float = 0.5
    """Weight of NWPN's loss out of domain."""
    divergence: Literal["reverse", "forward"] = "reverse"
    """Direction of NWPN's KL to the tempered posterior."""
    variants: tuple[str, ...] = tuple(VARIANTS)
    """Names of :data:`VARIANTS` to run beside the methods."""
    n_test: int = 4096
    """Fresh points for the metrics, in domain and out of it."""
    test_out_range: tuple[float, float] = (15.0, 25.0)
    """Range of ``|x|`` that counts as out of domain for the metrics."""
    n_curve: int = 401
    """Grid points of the curves, from ``-curve_edge`` to ``curve_edge``."""
    curve_edge: float = 25.0
    """Largest ``|x|`` of the curves."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot run."""
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
        """Return the steps of an epoch."""
        return math.ceil(self.n_train / self.batch_size)

    @property
    def seeds(self) -> range:
        """Return a seed for each repetition."""
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
