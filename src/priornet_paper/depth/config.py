"""Settings of the depth experiment: presets, changes to them, methods and their variants."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast

from priornet.methods import METHODS as ALL_METHODS
from priornet.methods import STUDENTS

METHODS = tuple(ALL_METHODS)
DATASETS = ("nyu", "kitti")

# Settings that are gone, and the value under which they did nothing: older results name them.
_GONE = {"evenness": 0.0, "student_structure": 0.0}

# Settings that came later and change what is done by default: older results were made without.
_UNNAMED = {"strange": 0.0, "structure": 0.0}

# Settings that only some methods look at: a change of the others' leaves their work standing.
_OWN: dict[str, tuple[str, ...]] = {
    "n_members": ("ENSM", *STUDENTS),
    "structure": ("Single", "ENSM", *STUDENTS),
    "temperature": ("EnD2",),
    "tempering": ("EnD2",),
    "proxy": ("EnD2",),
    "min_excess": ("EnD2",),
    "early_split": ("MD-EnD",),
    "student_epochs": STUDENTS,
    "student_start": STUDENTS,
    "student_evenness": STUDENTS,
    "transfer": STUDENTS,
    "strange": STUDENTS,
    "gamma": ("NWPN",),
    "gamma_epochs": ("NWPN",),
    "beta": ("NWPN",),
    "prior_evidence": ("NWPN",),
    "prior_match": ("NWPN",),
    "coefficient": ("DER",),
    "seeds": (),
    "gammas": (),
    "gamma_seeds": (),
    "n_test": (),
}

# Of these, what concerns the loss and the head of a student alone, not what it is shown.
_OF_LOSS = {
    "temperature",
    "tempering",
    "proxy",
    "min_excess",
    "early_split",
    "student_evenness",
}

_SMALLEST = 22  # pixels across
_CHOICES = {
    "dataset": DATASETS,
    "encoder": ("efficientnet_lite0", "densenet169"),
    "schedule": ("cosine", "constant"),
    "norm": ("frozen", "batch"),
    "precision": ("bf16", "float32"),
    "student_start": ("imagenet", "member"),
    "tempering": ("paper", "mean-preserving", "exact"),
    "prior_match": ("precision", "variance"),
}
_LEAST = {
    "encoder_rate": 0,
    "weight_decay": 0,
    "average": 0,
    "structure": 0,
    "student_evenness": 0,
    "jitter": 0,
    "zoom": 1,
    "temperature": 1,
    "transfer": 0,
    "gamma": 0,
    "gamma_epochs": 0,
    "gammas": 0,
    "coefficient": 0,
    "holdout": 0,
    "seeds": 0,
}


@dataclass(frozen=True)
class Config:
    """One data set's settings; the defaults are those of the preset "fast" on NYU."""

    dataset: Literal["nyu", "kitti"] = "nyu"
    """What is learnt; the other set serves NWPN as out-of-domain images."""
    encoder: str = "efficientnet_lite0"
    """Or densenet169, the paper's."""
    n_decoder: int | None = None
    """Width of the decoder; None for DenseDepth's rule."""
    height: int = 240
    """Of the images; depth is predicted at half the resolution."""
    width: int = 320
    """Of the images."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Everything is trained once for each."""
    n_members: int = 5
    """Networks in an ensemble; the first is Single."""
    epochs: int = 50
    """Passes through the training images."""
    student_epochs: int | None = 80
    """For networks that learn from the ensemble; None for as many."""
    student_start: Literal["imagenet", "member"] = "member"
    """First weights of such a network: those of the first member, or those that members had."""
    student_evenness: float = 0.0
    """Power of the teachers' variance, at most that of all depths, by which a pixel's loss is
    weighted for such a network: a likelihood hardly looks at the mean of noisy pixels, which are
    the far ones."""
    batch: int = 16
    """Images in a step, over all processes together."""
    learning_rate: float = 7e-4
    """Highest rate of the decoder and the head."""
    encoder_rate: float = 0.3
    """Times that for the pre-trained encoder."""
    weight_decay: float = 1e-2
    """Of AdamW, on weights but not on biases and norms."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """Of the learning rate after warming up."""
    warm_up: float = 0.05
    """Share of the steps in which it rises from zero."""
    clip: float = 1.0
    """Longest gradient."""
    average: float = 2.0
    """Epochs over which weights are averaged, exponentially; 0 for none."""
    dropout: float = 0.2
    """Share of the decoder's maps left out at random while training; students, whose teachers
    answer for every image, need none."""
    structure: float = 10.0
    """Weight of DenseDepth's loss of the predicted mean, beside the likelihood that a Gaussian
    network learns."""
    norm: Literal["frozen", "batch"] = "frozen"
    """Statistics of the encoder's batch norms: ImageNet's, or those of each batch. Frozen ones do
    not depend on who else is in the batch, so that many processes do what one does."""
    precision: Literal["bf16", "float32"] = "bf16"
    """Of the networks on a GPU; losses are float32 always, and so is everything on a CPU."""
    flip: float = 0.5
    """Chance that an image is mirrored."""
    swap: float = 0.25
    """Chance that its colour channels change places."""
    jitter: float = 0.2
    """How much brightness, contrast and colour of an image vary."""
    zoom: float = 1.25
    """Images are enlarged up to so many times, and their depth divided by as much."""
    temperature: float = 1.0
    """At which EnD2 starts, for 20 % of the epochs; 60 % lead down to 1. The paper has 10."""
    tempering: Literal["paper", "mean-preserving", "exact"] = "paper"
    """What the temperature does to the prediction: see :func:`priornet.losses.endd`."""
    proxy: bool = False
    """EnD2 by the Normal-Wishart fitted to the members, instead of by their likelihood."""
    min_excess: float = 1.0
    """Least excess that EnD2 may predict: members that differ wildly ask for less."""
    early_split: bool = False
    """MD-EnD gives every member its own last decoder block, not only its own head."""
    transfer: float = 0.3
    """How far the images at which a student asks its teachers are from training images: jitter,
    enlargement and mixing of that strength, beside the augmentation."""
    strange: float = 0.3
    """Share of those images that are made strange: see the module `strange`."""
    gamma: float = 0.01
    """Weight of NWPN's out-of-domain images."""
    gamma_epochs: float = 5.0
    """Epochs over which it rises from zero."""
    beta: float = 1e1
    """How many times each target counts for NWPN."""
    prior_evidence: float = 1e-2
    """Belief and excess of NWPN's prior."""
    prior_match: Literal["precision", "variance"] = "precision"
    """Which moment of the prior is that of the training depths."""
    gammas: tuple[float, ...] = (0.0, 0.005, 0.01, 0.025, 0.05)
    """Weights of the out-of-domain images that the ablation tries."""
    gamma_seeds: int = 1
    """With how many of the seeds."""
    coefficient: float = 0.01
    """Weight of DER's evidence regulariser."""
    n_images: int | None = None
    """Only so many training images (and out-of-domain ones); None for all."""
    n_test: int | None = None
    """Only so many test images of each set; None for all."""
    holdout: float = 0.0
    """Share of the training images, the last ones (of KITTI's roads those of each category), that
    are not learnt and take the place of the test images: for the choice of settings."""

    def __post_init__(self) -> None:
        """Refuse what cannot run."""
        _check_counts(self)
        _check_numbers(self)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f'unknown {name} "{getattr(self, name)}"; choose one of: {", ".join(choices)}.'
                )
        if not self.seeds:
            raise ValueError("`seeds` must name at least one seed.")

    def to_json(self) -> dict[str, Any]:
        """Plain data, as it comes back from a file."""
        whole = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in whole.items()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Config:
        """Settings from a file; of what an older one does not name, nothing was done yet.

        Raises:
            ValueError: A setting is unknown, or cannot be.
        """
        named = _UNNAMED | content
        content = {n: v for n, v in named.items() if n not in _GONE or v != _GONE[n]}
        unknown = content.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}.")
        given: dict[str, Any] = {}
        for name, value in content.items():
            given[name] = tuple(cast(list[Any], value)) if isinstance(value, list) else value
        return cls(**given)

    def settings_of(self, method: str) -> dict[str, Any]:
        """What the weights of one method depend on; a student also on its teachers' settings."""
        mine = {
            field.name
            for field in fields(self)
            if field.name not in _OWN or method in _OWN[field.name]
        }
        return {name: value for name, value in self.to_json().items() if name in mine}

    def settings_shared_by_students(self, method: str) -> dict[str, Any]:
        """What students must have in common to be taught together: all but head and loss."""
        own = self.settings_of(method)
        return {name: value for name, value in own.items() if name not in _OF_LOSS}

    def epochs_of(self, method: str) -> int:
        """Passes through the training images."""
        return self.student_epochs or self.epochs if method in STUDENTS else self.epochs


def _check_counts(config: Config) -> None:
    for name in ("epochs", "batch", "gamma_seeds"):
        if getattr(config, name) < 1:
            raise ValueError(f"`{name}` must be at least 1; got {getattr(config, name)}.")
    if config.n_members < 2:
        raise ValueError(
            f"`n_members` must be at least 2, for they are to disagree; got {config.n_members}."
        )
    for name in ("n_decoder", "student_epochs", "n_images", "n_test"):
        value = getattr(config, name)
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be at least 1, or null for the default; got {value}.")
    for name in ("height", "width"):
        size = getattr(config, name)
        if size % 2 or size < _SMALLEST:
            raise ValueError(
                f"`{name}` must be even and at least {_SMALLEST}, for predictions have half the "
                f"resolution and DenseDepth's loss looks at windows of 11 x 11 of them; got {size}."
            )


def _check_numbers(config: Config) -> None:
    for name in ("learning_rate", "clip", "beta", "prior_evidence", "min_excess"):
        if not getattr(config, name) > 0:
            raise ValueError(f"`{name}` must be positive; got {getattr(config, name):g}.")
    if not config.holdout < 1:
        raise ValueError(f"`holdout` must be below 1; got {config.holdout:g}.")
    for name in ("warm_up", "flip", "swap", "dropout", "strange"):
        if not 0 <= getattr(config, name) <= 1:
            raise ValueError(f"`{name}` must lie in [0, 1]; got {getattr(config, name):g}.")
    for name, least in _LEAST.items():
        given = getattr(config, name)
        for value in given if isinstance(given, tuple) else (given,):
            if not (isinstance(value, int | float) and least <= value < math.inf):
                raise ValueError(f"`{name}` must be finite and at least {least}; got {value}.")


PRESETS: dict[str, Config] = {
    "fast": Config(),
    # Alhashim and Wonka (2018): Adam at a constant 1e-4, batches of 8, their augmentation.
    "paper": Config(
        encoder="densenet169",
        height=480,
        width=640,
        seeds=(0, 1, 2, 3),
        gamma_seeds=4,
        epochs=20,
        student_epochs=None,
        batch=8,
        learning_rate=1e-4,
        encoder_rate=1.0,
        weight_decay=0.0,
        schedule="constant",
        warm_up=0.0,
        clip=5.0,
        average=0.0,
        dropout=0.0,
        structure=0.0,
        jitter=0.0,
        zoom=1.0,
        student_start="imagenet",
        temperature=10.0,
        transfer=0.0,
        strange=0.0,
        norm="batch",
        precision="float32",
        min_excess=1e-4,
    ),
    "smoke": Config(
        n_decoder=64,
        height=64,
        width=96,
        seeds=(0,),
        n_members=2,
        epochs=2,
        student_epochs=None,
        batch=4,
        n_images=8,
        n_test=4,
        gamma_epochs=1.0,
        gammas=(0.0, 0.01),
    ),
}

# KITTI's images are twice as wide: less than half of their height has depth. There are a third as
# many of them as of NYU's: it takes more epochs for a like number of steps, and models differ more
# from seed to seed. Members learn DenseDepth's loss of the mean as on NYU: on images held out it
# helps here more than there. Students have 1.6 times their members' epochs, as on NYU.
# NWPN's beta was chosen by the likelihood of training images held out (benchmarks/README.md): its
# prior adds twice the variance of all depths to beta times that of a pixel, which is more where
# depths reach farther.
# Evenness was chosen by how far students are from their ensembles, on the last training images of
# every category.
_KITTI: dict[str, dict[str, Any]] = {
    "fast": {
        "height": 192,
        "width": 640,
        "seeds": (0, 1, 2, 3),
        "epochs": 100,
        "student_epochs": 160,
        "student_evenness": 0.5,
        "beta": 300.0,
    },
    "paper": {"height": 192, "width": 640, "seeds": (0, 1)},
    "smoke": {"height": 64, "width": 160},
}


def config_for(dataset: str, preset: str) -> Config:
    """A preset for one data set."""
    if preset not in PRESETS:
        raise ValueError(f'unknown preset "{preset}"; choose one of: {", ".join(PRESETS)}.')
    if dataset != "kitti":
        return replace(PRESETS[preset], dataset=dataset)
    return replace(PRESETS[preset], dataset="kitti", **_KITTI[preset])


# -- changes on a command line --------------------------------------------------------------------


# Arguments that messages advise, and what they are called on a command line.
_OPTIONS = {'`missing="skip"`': "`--missing skip`", "`split`": "`--split`", "`test`": "`--test`"}


def with_changes(config: Config, settings: Sequence[str] = (), seeds: str = "") -> Config:
    """A preset with the changes of a command line.

    Args:
        config: The preset.
        settings: Each as ``NAME=VALUE``, the value as in JSON.
        seeds: Such as ``"0,1"``; empty for those of the preset.

    Example:
        >>> with_changes(Config(), ["epochs=3", "norm=batch"], "5,6").epochs
        3
    """
    changes: dict[str, Any] = {}
    known = {field.name: getattr(config, field.name) for field in fields(config)}
    for text in settings:
        name, equals, value = text.partition("=")
        if name not in known or not equals:
            raise ValueError(
                f'"{text}" is not NAME=VALUE with one of these names: {", ".join(sorted(known))}.'
            )
        changes[name] = _read(name, value, known[name])
    if seeds:
        try:
            changes["seeds"] = tuple(int(seed) for seed in seeds.split(","))
        except ValueError:
            raise ValueError(f'seeds must be numbers such as 0,1; got "{seeds}".') from None
    return replace(config, **changes)


def in_options(message: str) -> str:
    """What an error says, with the options of the command line in place of Python's arguments.

    Example:
        >>> in_options('with `missing="skip"` such images are left out')
        'with `--missing skip` such images are left out'
    """
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message


def _read(name: str, value: str, before: Any) -> Any:
    """A setting as it stands on a command line, of the kind that it had before."""
    try:
        read: Any = json.loads(value)
    except ValueError:
        read = value
    if isinstance(read, list):
        return tuple(read)
    if isinstance(before, float) and type(read) is int:
        return float(read)
    if before is not None and read is not None and type(read) is not type(before):
        raise ValueError(f'`{name}` cannot be "{value}": it is {before!r} in the preset.')
    return read


# -- methods and variants -------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A method with its settings, under the name it has in the results."""

    name: str
    method: str
    config: Config

    @property
    def is_variant(self) -> bool:
        """Whether it stands beside the method's own variant."""
        return self.name != self.method


def variants(config: Config, names: Sequence[str], ablation: bool = False) -> list[Variant]:
    """The variants of some methods, in the order of :data:`METHODS`.

    Args:
        config: Settings.
        names: Methods, or variants: ``EnD2-T10`` (annealed), ``EnD2-proxy``, ``NWPN-g0.05``.
        ablation: Also NWPN with each of ``config.gammas``.

    Example:
        >>> [r.name for r in variants(Config(), ["EnD2", "Single", "EnD2-T10"])]
        ['Single', 'EnD2', 'EnD2-T10']
    """
    wanted = list(dict.fromkeys(names))
    if ablation and "NWPN" in wanted:
        wanted += [f"NWPN-g{g:g}" for g in config.gammas if g != config.gamma]
    found = [_variant(config, name) for name in dict.fromkeys(wanted)]
    return sorted(found, key=lambda variant: METHODS.index(variant.method))


def _variant(config: Config, name: str) -> Variant:
    if name in METHODS:
        return Variant(name, name, config)
    if name == "EnD2-proxy":
        return Variant(name, "EnD2", replace(config, proxy=True))
    method, _, warmth = name.partition("-T")
    if method == "EnD2" and _is_number(warmth):
        return Variant(name, method, replace(config, temperature=float(warmth), proxy=False))
    method, _, gamma = name.partition("-g")
    if method == "NWPN" and _is_number(gamma):
        seeds = config.seeds[: config.gamma_seeds]
        return Variant(name, method, replace(config, gamma=float(gamma), seeds=seeds))
    raise ValueError(
        f'unknown method "{name}"; choose from: {", ".join(METHODS)}, EnD2-T1, EnD2-proxy, '
        "NWPN-g0.05."
    )


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
