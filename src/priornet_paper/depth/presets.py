"""Named settings: presets, changes to them, and the methods and variants that are run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from priornet_paper.depth.config import METHODS, Config

__all__ = ["PRESETS", "Recipe", "config_for", "in_options", "recipes", "with_changes"]

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
class Recipe:
    """A method with its settings, under the name it has in the results."""

    name: str
    method: str
    config: Config

    @property
    def is_variant(self) -> bool:
        """Whether it stands beside the method's own recipe."""
        return self.name != self.method


def recipes(config: Config, names: Sequence[str], ablation: bool = False) -> list[Recipe]:
    """The recipes of some methods, in the order of :data:`METHODS`.

    Args:
        config: Settings.
        names: Methods, or variants: ``EnD2-T10`` (annealed), ``EnD2-proxy``, ``NWPN-g0.05``.
        ablation: Also NWPN with each of ``config.gammas``.

    Example:
        >>> [r.name for r in recipes(Config(), ["EnD2", "Single", "EnD2-T10"])]
        ['Single', 'EnD2', 'EnD2-T10']
    """
    wanted = list(dict.fromkeys(names))
    if ablation and "NWPN" in wanted:
        wanted += [f"NWPN-g{g:g}" for g in config.gammas if g != config.gamma]
    found = [_recipe(config, name) for name in dict.fromkeys(wanted)]
    return sorted(found, key=lambda recipe: METHODS.index(recipe.method))


def _recipe(config: Config, name: str) -> Recipe:
    if name in METHODS:
        return Recipe(name, name, config)
    if name == "EnD2-proxy":
        return Recipe(name, "EnD2", replace(config, proxy=True))
    method, _, warmth = name.partition("-T")
    if method == "EnD2" and _is_number(warmth):
        return Recipe(name, method, replace(config, temperature=float(warmth), proxy=False))
    method, _, gamma = name.partition("-g")
    if method == "NWPN" and _is_number(gamma):
        seeds = config.seeds[: config.gamma_seeds]
        return Recipe(name, method, replace(config, gamma=float(gamma), seeds=seeds))
    raise ValueError(
        f'unknown method "{name}"; choose from: {", ".join(METHODS)}, EnD2-T1, EnD2-proxy, '
        "NWPN-g0.05."
    )


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
