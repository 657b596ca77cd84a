"""Settings of the depth experiment: presets, changes to them, methods and their variants."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast

from priornet.methods import COMPARED, STUDENTS

METHODS = tuple(COMPARED)
DATASETS = ("nyu", "kitti")

# Settings that were removed, and the value under which they did nothing: older results name them.
_REMOVED = {"evenness": 0.0, "student_structure": 0.0}

# Settings that came later: older results do not name them, and were made with these values.
_ADDED = {"strange": 0.0, "structure": 0.0}

# Settings that only some methods depend on: a change keeps the finished work of the others.
_METHODS_OF: dict[str, tuple[str, ...]] = {
    "n_members": ("ENSM", *STUDENTS),
    "structure": ("Single", "ENSM", *STUDENTS),
    **dict.fromkeys(("temperature", "tempering", "proxy", "min_excess"), ("EnD2",)),
    "early_split": ("MD-EnD",),
    **dict.fromkeys(("student_epochs", "student_start", "student_evenness"), STUDENTS),
    **dict.fromkeys(("transfer", "strange"), STUDENTS),
    **dict.fromkeys(("gamma", "gamma_epochs", "beta", "prior_evidence", "prior_match"), ("NWPN",)),
    "coefficient": ("DER",),
    **dict.fromkeys(("seeds", "gammas", "gamma_seeds", "n_test"), ()),
}

# Settings of a student's loss and head, which students that train together need not share.
_OF_LOSS = {"temperature", "tempering", "proxy", "min_excess", "early_split", "student_evenness"}

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


def _at_least(least: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and least <= value < math.inf


_LISTS = ("gammas", "seeds")
# What each value of some settings must be.
_LIMITS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("epochs batch gamma_seeds", lambda n: n >= 1, "be at least 1"),
    ("n_members", lambda n: n >= 2, "be at least 2, for they are to disagree"),
    (
        "n_decoder student_epochs n_images n_test",
        lambda n: n is None or n >= 1,
        "be at least 1, or null for the default",
    ),
    (
        "height width",
        lambda n: n % 2 == 0 and n >= _SMALLEST,
        f"be even and at least {_SMALLEST}, for predictions have half the resolution and "
        "DenseDepth's loss looks at windows of 11 x 11 of them",
    ),
    ("learning_rate clip beta prior_evidence min_excess", lambda x: x > 0, "be positive"),
    ("holdout", lambda x: x < 1, "be below 1"),
    ("warm_up flip swap dropout strange", lambda x: 0 <= x <= 1, "lie in [0, 1]"),
    (
        "encoder_rate weight_decay average structure student_evenness jitter transfer gamma "
        "gamma_epochs gammas coefficient holdout seeds",
        _at_least(0),
        "be finite and at least 0",
    ),
    ("zoom temperature", _at_least(1), "be finite and at least 1"),
]


@dataclass(frozen=True)
class Config:
    """One data set's settings; the defaults are those of the preset "fast" on NYU."""

    dataset: Literal["nyu", "kitti"] = "nyu"
    """The set to learn; NWPN takes its out-of-domain images from the other one."""
    encoder: str = "efficientnet_lite0"
    """``"efficientnet_lite0"``, or the paper's ``"densenet169"``."""
    n_decoder: int | None = None
    """Width of the decoder; None for DenseDepth's rule."""
    height: int = 240
    """Pixels of an image; depth is predicted at half the resolution."""
    width: int = 320
    """Pixels of an image."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Every method is trained once with each."""
    n_members: int = 5
    """Networks in an ensemble; the first is Single."""
    epochs: int = 50
    """Passes through the training images."""
    student_epochs: int | None = 80
    """The same for students; None for as many."""
    student_start: Literal["imagenet", "member"] = "member"
    """First weights of a student: those of the first member, or ImageNet's as for members."""
    student_evenness: float = 0.0
    """A student's loss of a pixel is weighted by this power of the teachers' variance (at most that
    of all depths): a likelihood neglects the mean of noisy pixels, which are the far ones."""
    batch: int = 16
    """Images in a step, over all processes together."""
    learning_rate: float = 7e-4
    """Highest rate of the decoder and the head."""
    encoder_rate: float = 0.3
    """Factor of the learning rate for the pre-trained encoder."""
    weight_decay: float = 1e-2
    """AdamW's decay of weights; biases and norms have none."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """The learning rate after the warm-up."""
    warm_up: float = 0.05
    """Share of the steps in which the learning rate rises from zero."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    average: float = 2.0
    """Epochs over which weights are averaged, exponentially; 0 for none."""
    dropout: float = 0.2
    """Share of the decoder's maps that training leaves out at random; students have none."""
    structure: float = 10.0
    """Weight of DenseDepth's loss of the mean beside the likelihood of a Gaussian network."""
    norm: Literal["frozen", "batch"] = "frozen"
    """Statistics of the encoder's batch norms: ImageNet's, or those of each batch. Frozen ones do
    not depend on the batch, so that several processes do what one does."""
    precision: Literal["bf16", "float32"] = "bf16"
    """Precision of networks on a GPU; losses, and everything on a CPU, are float32."""
    flip: float = 0.5
    """Chance that an image is mirrored."""
    swap: float = 0.25
    """Chance that its colour channels change places."""
    jitter: float = 0.2
    """Strength of random changes of brightness, contrast and colour."""
    zoom: float = 1.25
    """Largest factor by which an image is enlarged, and its depth divided."""
    temperature: float = 1.0
    """EnD2's temperature for 20 % of the epochs; then 60 % lead down to 1. The paper has 10."""
    tempering: Literal["paper", "mean-preserving", "exact"] = "paper"
    """Effect of the temperature on the prediction: see :func:`priornet.losses.endd`."""
    proxy: bool = False
    """EnD2 learns the Normal-Wishart fitted to the members instead of their likelihood."""
    min_excess: float = 1.0
    """Least excess that EnD2 may predict; members that differ widely ask for less."""
    early_split: bool = False
    """MD-EnD gives every member its own last decoder block, not only its own head."""
    transfer: float = 0.3
    """Strength of the additional jitter, enlargement and mixing of a student's images."""
    strange: float = 0.3
    """Share of a student's images that are replaced by out-of-domain ones: see `batches`."""
    gamma: float = 0.01
    """Weight of NWPN's out-of-domain images."""
    gamma_epochs: float = 5.0
    """Epochs over which `gamma` rises from zero."""
    beta: float = 1e1
    """Evidence of each target for NWPN."""
    prior_evidence: float = 1e-2
    """Belief and excess of NWPN's prior."""
    prior_match: Literal["precision", "variance"] = "precision"
    """Moment of the prior that equals that of the training depths."""
    gammas: tuple[float, ...] = (0.0, 0.005, 0.01, 0.025, 0.05)
    """Weights of the out-of-domain images that the ablation tries."""
    gamma_seeds: int = 1
    """Number of seeds of the ablation."""
    coefficient: float = 0.01
    """Weight of DER's evidence regulariser."""
    n_images: int | None = None
    """Most training images, and out-of-domain ones of NWPN; None for all."""
    n_test: int | None = None
    """Most test images of each set; None for all."""
    holdout: float = 0.0
    """Share of the training images, the last ones (of KITTI's roads those of each category), that
    take the place of the test images, to choose settings."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot run."""
        for names, is_allowed, wanted in _LIMITS:
            for name in names.split():
                given = getattr(self, name)
                if isinstance(given, tuple) and name not in _LISTS:
                    raise ValueError(f"`{name}` takes one value; got {list(given)}.")
                for value in given if name in _LISTS else (given,):
                    if not is_allowed(value):
                        raise ValueError(f"`{name}` must {wanted}; got {value}.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f'unknown {name} "{getattr(self, name)}"; choose one of: {", ".join(choices)}.'
                )
        if not self.seeds:
            raise ValueError("`seeds` must name at least one seed.")

    def to_json(self) -> dict[str, Any]:
        """Return plain data, as it comes back from a file."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Config:
        """Read settings from a results file, also from an older one.

        Raises:
            ValueError: A setting is unknown, or its value is impossible.
        """
        named = {
            n: v for n, v in (_ADDED | content).items() if n not in _REMOVED or v != _REMOVED[n]
        }
        unknown = named.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}.")
        given: dict[str, Any] = {
            name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            for name, value in named.items()
        }
        return cls(**given)

    def settings_of(self, method: str) -> dict[str, Any]:
        """Return the settings that the weights of a method, and of its teachers, depend on."""
        return {
            name: value
            for name, value in self.to_json().items()
            if method in _METHODS_OF.get(name, METHODS)
        }

    def settings_shared_by_students(self, method: str) -> dict[str, Any]:
        """Return the settings that students must share to train together: not head and loss."""
        own = self.settings_of(method)
        return {name: value for name, value in own.items() if name not in _OF_LOSS}

    def epochs_of(self, method: str) -> int:
        """Return a method's number of passes through the training images."""
        return self.student_epochs or self.epochs if method in STUDENTS else self.epochs


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
    """Return a preset for one data set."""
    if preset not in PRESETS:
        raise ValueError(f'unknown preset "{preset}"; choose one of: {", ".join(PRESETS)}.')
    changes = _KITTI[preset] if dataset == "kitti" else {}
    return replace(PRESETS[preset], dataset=dataset, **changes)


def file_name(dataset: str, preset: str) -> str:
    """Return the name of a results file; that of the preset "fast" does not name its preset."""
    return f"{dataset}.json" if preset == "fast" else f"{dataset}.{preset}.json"


def with_changes(config: Config, settings: Sequence[str] = (), seeds: str = "") -> Config:
    """Change a preset as a command line says.

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
        changes[name] = _parsed(name, value, known[name])
    if seeds:
        try:
            changes["seeds"] = tuple(int(seed) for seed in seeds.split(","))
        except ValueError:
            raise ValueError(f'seeds must be numbers such as 0,1; got "{seeds}".') from None
    return replace(config, **changes)


def _parsed(name: str, text: str, before: Any) -> Any:
    """Parse a setting of the kind that it has in the preset."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, list):
        return tuple(value)
    if isinstance(before, float) and type(value) is int:
        return float(value)
    if before is not None and value is not None and type(value) is not type(before):
        raise ValueError(f'`{name}` cannot be "{text}": it is {before!r} in the preset.')
    return value


# -- methods and their variants -------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A method with its settings, under its name in the results."""

    name: str
    method: str
    config: Config

    @property
    def is_default(self) -> bool:
        """True for the method as the preset has it."""
        return self.name == self.method


def variants(config: Config, names: Sequence[str], ablation: bool = False) -> list[Variant]:
    """List methods and variants of methods, in the order of :data:`METHODS`.

    Args:
        config: Settings.
        names: Methods, or variants: ``EnD2-T10`` (annealed), ``EnD2-proxy``, ``NWPN-g0.05``.
        ablation: Also NWPN with each of ``config.gammas``.

    Example:
        >>> [v.name for v in variants(Config(), ["EnD2", "Single", "EnD2-T10"])]
        ['Single', 'EnD2', 'EnD2-T10']
    """
    wanted = list(names)
    if ablation and "NWPN" in wanted:
        wanted += [f"NWPN-g{g:g}" for g in config.gammas if g != config.gamma]
    found = [_variant(config, name) for name in dict.fromkeys(wanted)]
    return sorted(found, key=lambda variant: METHODS.index(variant.method))


def _variant(config: Config, name: str) -> Variant:
    if name in METHODS:
        return Variant(name, name, config)
    method, _, change = name.partition("-")
    kind, number = change[:1], change[1:]
    if name == "EnD2-proxy":
        return Variant(name, method, replace(config, proxy=True))
    if (method, kind) == ("EnD2", "T") and _is_number(number):
        return Variant(name, method, replace(config, temperature=float(number), proxy=False))
    if (method, kind) == ("NWPN", "g") and _is_number(number):
        seeds = config.seeds[: config.gamma_seeds]
        return Variant(name, method, replace(config, gamma=float(number), seeds=seeds))
    raise ValueError(
        f'unknown method "{name}"; choose from: {", ".join(METHODS)}, EnD2-T1, EnD2-proxy, '
        "NWPN-g0.05."
    )


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
