"""Settings of the UCI experiment: the paper's protocol, the estimators' defaults, a short run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from priornet.methods import COMPARED, STUDENTS

_OF_TABLES = tuple(method for method in COMPARED.values() if method.estimator is not None)
METHODS = tuple(method.key for method in _OF_TABLES)
"""In the order of results; the last two only the paper's preset runs unless asked."""
LIKELIHOOD = tuple(method.key for method in _OF_TABLES if method.is_likelihood)
"""Methods of Gaussian networks, which one search serves: the single network and the ensemble."""

Setting = dict[str, float]
"""One point of a grid: hyper-parameter to value."""

_RATES = (3e-4, 1e-3, 3e-3, 1e-2)
_NOISES = (0.0, 0.05, 0.1, 0.2)

_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    # The ensemble's members are single networks: one search trains for both. Slow rates are there
    # for small tables, which a likelihood over-fits within 100 epochs.
    "Single": {
        "learning_rate": (1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2),
        "weight_decay": (0.0, 1e-4, 1e-3, 1e-2),
    },
    "EnD2": {
        "learning_rate": (3e-3, 1e-2),
        "weight_decay": (0.0,),
        "temperature": (1.0, 10.0),
        "noise": (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5),
    },
    "NWPN": {
        "learning_rate": (1e-3, 1e-2),
        "weight_decay": (1e-4,),
        "prior_belief": (1e-2, 1e-1),
        "beta": (1e1, 1e2, 1e3, 1e4),
        "gamma": (0.1, 1.0),
    },
    "DER": {
        "learning_rate": _RATES,
        "weight_decay": (1e-4, 1e-2),
        "coefficient": (0.0, 0.01, 0.1, 0.5),
    },
    "EnD": {"learning_rate": _RATES, "weight_decay": (0.0, 1e-4), "noise": _NOISES},
    "MD-EnD": {"learning_rate": _RATES, "weight_decay": (0.0, 1e-4), "noise": _NOISES},
}


_SEARCHES = {"ENSM": ("Single",)} | {student: ("Single", student) for student in STUDENTS}


@dataclass(frozen=True)
class Paper:
    """One hidden layer, Adam, and a grid search for every method, as far as the paper says.

    What it leaves open is chosen here: a learning rate that falls (``schedule``), settings that
    the NLL cannot tell apart chosen by generated rows (``selection``), one output for belief and
    excess (``tied_evidence``), students that start as a member (``student_start``), and clipped
    gradients (``clip``).
    """

    seed: int = 0
    """Seed of the folds, of the validation rows, of first weights, batches and noise."""
    n_folds: int = 10
    """Each row is a test row once."""
    folds: tuple[int, ...] | None = None
    """Which of them to run; None for all."""
    hidden: int = 50
    """Units of the hidden layer, ReLU; 100 for MSD and protein."""
    epochs: int = 100
    """Passes through the rows."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Of the learning rate, of which the paper gives no more than that it was searched. At a rate
    that stays what it was, the last few batches decide where a network ends."""
    batch_size: int = 32
    """Rows in a step, and as many out-of-domain inputs for NWPN."""
    n_members: int = 10
    """Networks in the ensemble."""
    n_tried: int = 3
    """Networks per setting in the search for the ensemble, which is judged as an ensemble: what is
    best for one network over-fits less and agrees more than members should."""
    validation_share: float = 0.2
    """Rows of the training fold on which settings are chosen, by NLL; the chosen setting is then
    trained on the whole fold."""
    grids: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=lambda: _GRIDS)
    """Values tried per method: every combination, the same number for each method."""
    selection: Literal["nll", "one-se"] = "one-se"
    """How a setting is chosen: by the NLL of validation rows alone; or, where a method has
    knowledge uncertainty of its own, among those no worse than the best by one standard error, by
    how well V[mu] tells generated inputs from validation rows. The NLL says nothing about the
    outside, and many settings differ by less than its noise."""
    prior_match: Literal["precision", "variance"] = "precision"
    """Which moment of NWPN's prior is the targets': see :func:`semi_informative_prior`."""
    ood_spread: float = 3.0
    """Out-of-domain inputs for NWPN: factor on the covariance of the factor analysis."""
    n_out: int = 10_000
    """How many of them."""
    n_asked: int = 200_000
    """Noisy inputs at which a teacher is asked, at most; a row gets at most one per epoch."""
    tempering: Literal["paper", "mean-preserving", "exact"] = "paper"
    """What EnD2's temperature does: see :func:`priornet.losses.endd`."""
    tied_evidence: bool = True
    """One output for belief and excess of EnD2 and NWPN, as in the paper's public code for depth;
    its mutual information and EPKL agree in every printed cell, which says the same of its UCI
    networks."""
    student_start: Literal["random", "member"] = "member"
    """First weights of EnD2, EnD and MD-EnD: their own, or those of the ensemble's first member.
    The paper does not say; from random weights 100 epochs are too few to learn the evidence."""
    clip: float = 10.0
    """Longest gradient of a network; the paper does not say."""
    folds_per_stack: int = 5
    """Folds that train as one stack. It changes results only as far as float32 rounding does."""

    def points(self, method: str) -> list[Setting]:
        """List the settings tried for a method."""
        axes = self.grids["Single" if method == "ENSM" else method]
        return [
            dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as they come back from a file."""
        return json.loads(json.dumps(asdict(self)))

    @property
    def is_canonical(self) -> bool:
        """Return False: the paper has folds."""
        return False


@dataclass(frozen=True)
class Defaults:
    """The estimators with their own defaults: the same for every table, nothing searched."""

    seed: int = 0
    """Seed of the folds and of every fit."""
    splits: Literal["folds", "canonical"] = "folds"
    """Cross-validation, or the published splits of Hernandez-Lobato and Adams (2015)."""
    n_folds: int = 10
    """For cross-validation."""
    folds: tuple[int, ...] | None = None
    """Which of the folds or splits to run; None for all."""
    n_members: int = 10
    """Networks in the ensemble, which is also the teacher of EnD2, EnD and MD-EnD."""
    changes: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Parameters of estimators that are not the defaults, by method; for trials."""
    folds_per_stack: int = 1
    """Folds in one part of the work."""

    def to_json(self) -> dict[str, Any]:
        """Return the settings and the estimators' parameters as they come back from a file."""
        from priornet_paper.uci.defaults import parameters

        return json.loads(json.dumps({**asdict(self), "estimators": parameters(self)}))

    @property
    def is_canonical(self) -> bool:
        """Tell if rows are held out by the published splits."""
        return self.splits == "canonical"


Config = Paper | Defaults


def own_settings(config: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Drop from a config in JSON the settings that only other methods look at."""
    searched = set(_SEARCHES.get(method, (method,)))
    built = {method, "EnD2", "ENSM"} if method in STUDENTS else {method}
    found = dict(config)
    for part, names in (("grids", searched), ("estimators", built), ("changes", built)):
        if part in found:
            found[part] = {name: v for name, v in found[part].items() if name in names}
    return found


_TINY_GRIDS = {
    "Single": {"learning_rate": (3e-3, 1e-2), "weight_decay": (1e-4,)},
    "EnD2": {
        "learning_rate": (1e-2,),
        "weight_decay": (0.0,),
        "temperature": (1.0, 10.0),
        "noise": (0.05,),
    },
    "NWPN": {
        "learning_rate": (1e-2,),
        "weight_decay": (1e-4,),
        "prior_belief": (1e-2,),
        "beta": (1e2, 1e3),
        "gamma": (0.5,),
    },
    "DER": {"learning_rate": (1e-2,), "weight_decay": (0.0,), "coefficient": (0.01, 0.1)},
    "EnD": {"learning_rate": (1e-2,), "weight_decay": (0.0,), "noise": (0.0, 0.05)},
    "MD-EnD": {"learning_rate": (1e-2,), "weight_decay": (0.0,), "noise": (0.0, 0.05)},
}

PRESETS: dict[str, Config] = {
    "paper": Paper(),
    "beyond": Defaults(),
    "smoke": Paper(folds=(0, 1), epochs=2, n_members=2, n_asked=2000, n_out=500, grids=_TINY_GRIDS),
}


def default_methods(config: Config) -> tuple[str, ...]:
    """Return the methods that are run unless others are named: those that a preset is about."""
    if isinstance(config, Paper):
        return METHODS
    return ("ENSM", "EnD2") if config.is_canonical else METHODS[:5]


def config_for(dataset: str, preset: str) -> Config:
    """Return a preset for one data set."""
    config = PRESETS[preset]
    if isinstance(config, Paper) and dataset in ("msd", "protein"):
        return replace(config, hidden=100)
    return config
