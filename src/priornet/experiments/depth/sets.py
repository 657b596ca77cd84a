"""The images of an experiment: training, test and foreign sets at the size that networks see."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from priornet.data.depth import DepthError, DepthImages, open_depth
from priornet.experiments.depth.batches import TrainingSet
from priornet.experiments.depth.changes import changes_for
from priornet.experiments.depth.config import Config, Recipe

__all__ = ["Sets", "Sources", "find_sources"]

# How the names of files and folders begin, by the name of the set.
_NAMES = {"nyu": "nyu", "kitti": "kitti", "lsun_bedroom": "lsun"}


@dataclass(frozen=True)
class Sources:
    """Where things are."""

    own: Path
    """The set that is learnt."""
    foreign: dict[str, Path] = field(default_factory=dict[str, Path])
    """Other sets by name: ``kitti`` or ``nyu``, ``lsun_bedroom``."""
    test: Path | None = None
    """Its test images, where they are elsewhere, as in DenseDepth's two zips."""
    weights: str | None = "imagenet"
    """ImageNet weights of the encoder: a file, ``"imagenet"`` for the package's, None for none."""

    def other(self, config: Config) -> str:
        """The set that NWPN takes its out-of-domain training images from."""
        return "kitti" if config.dataset == "nyu" else "nyu"


def find_sources(
    data: Path,
    dataset: str,
    foreign: dict[str, Path] | None = None,
    test: Path | None = None,
    weights: str | None = None,
) -> Sources:
    """Where the sets of an experiment are.

    Args:
        data: The set itself, in any form that ``open_depth`` knows; or a folder with several sets,
            one file or folder each, whose names begin with nyu, kitti and lsun.
        dataset: What is learnt.
        foreign: Other sets by name, beside those found in ``data``.
        test: Its test images, if they are not in ``data``.
        weights: ImageNet weights of the encoder.
    """
    if not data.exists():
        raise DepthError(f"{data}: there is no such file or folder.")
    found: dict[str, Path] = {}
    if data.is_dir():
        for name, start in _NAMES.items():
            fitting = sorted(p for p in data.iterdir() if p.name.startswith(start))
            if len(fitting) > 1:
                names = ", ".join(p.name for p in fitting)
                raise DepthError(f"{data}: which of these is {name}? {names}")
            if fitting:
                found[name] = fitting[0]
    own = found.pop(dataset, data if not found else None)
    if own is None:
        raise DepthError(f"{data}: nothing in it begins with {dataset}; found {', '.join(found)}.")
    return Sources(own, found | (foreign or {}), test, weights)


class Sets:
    """Reads every set once, when it is first asked for.

    Args:
        config: Size and number of the images.
        sources: Where they are.
    """

    def __init__(self, config: Config, sources: Sources) -> None:
        self.config, self.sources = config, sources
        self._foreign: dict[str, Tensor] = {}

    def check(self, foreign: bool) -> None:
        """Complain now of what is missing, not after hours of work."""
        open_depth(self.sources.own, part="train")
        open_depth(self.sources.test or self.sources.own, part="test")
        for path in self.sources.foreign.values():
            open_depth(path)
        other = self.sources.other(self.config)
        if foreign and other not in self.sources.foreign:
            raise DepthError(
                f"NWPN learns {other} images as out-of-domain ones: say where they are, or leave "
                "it out."
            )

    @cached_property
    def train(self) -> tuple[Tensor, Tensor]:
        """Training images as bytes ``(N, 3, H, W)``, and their depth ``(N, H, W)``."""
        return self._own(self.sources.own, "train", self.config.n_images)

    @cached_property
    def test(self) -> tuple[Tensor, Tensor]:
        """Test images and their depth."""
        return self._own(self.sources.test or self.sources.own, "test", self.config.n_test)

    def _own(self, path: Path, part: Any, n_most: int | None) -> tuple[Tensor, Tensor]:
        size = (self.config.height, self.config.width)
        images, depth = _first(open_depth(path, part=part), n_most).tensors(size)
        if depth is None:
            raise DepthError(f"{path}: its images have no depth to learn or to compare with.")
        return images, depth.float()

    def foreign(self, name: str) -> Tensor:
        """All images of another set, cut and scaled to the size of our own."""
        return self._prepared(name, "all", self.config.n_test)

    def _prepared(self, name: str, part: Any, n_most: int | None) -> Tensor:
        key = f"{name}/{part}"
        if key not in self._foreign:
            images = _first(open_depth(self.sources.foreign[name], part=part), n_most)
            size = (self.config.height, self.config.width)
            self._foreign[key] = images.tensors(size, crop=True)[0]
        return self._foreign[key]

    def training(self, recipe: Recipe, uses_foreign: bool, device: torch.device) -> TrainingSet:
        """What a recipe is trained on, on a device."""
        foreign = None
        if uses_foreign:
            other = self.sources.other(self.config)
            foreign = self._prepared(other, "train", self.config.n_images)
        return TrainingSet(*self.train, foreign, changes_for(recipe), device)

    def fingerprint(self, *, uses_foreign: bool) -> str:
        """Of the training images and the first weights."""
        parts = [self._own_print, _digest(self._weights.encode())]
        if uses_foreign:
            parts.append(self._foreign_print)
        return "-".join(parts)

    @cached_property
    def _own_print(self) -> str:
        return _digest(*(tensor.numpy().data for tensor in self.train))

    @cached_property
    def _foreign_print(self) -> str:
        other = self.sources.other(self.config)
        return _digest(self._prepared(other, "train", self.config.n_images).numpy().data)

    def sizes(self) -> dict[str, Any]:
        """How many images there are, for the record; nothing is decoded."""
        own, config = self.sources.own, self.config
        return {
            "n_train": len(_first(open_depth(own, part="train"), config.n_images)),
            "n_test": len(_first(open_depth(self.sources.test or own, "test"), config.n_test)),
            "foreign": {
                name: len(_first(open_depth(path), config.n_test))
                for name, path in self.sources.foreign.items()
            },
        }

    @cached_property
    def _weights(self) -> str:
        name = str(self.sources.weights)
        path = Path(name)
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else name


def _digest(*pieces: Any) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()[:12]


def _first(images: DepthImages, n_most: int | None) -> DepthImages:
    """The set, or its first images."""
    return images if n_most is None or n_most >= len(images) else images[:n_most]
