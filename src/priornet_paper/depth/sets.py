"""The images of an experiment: training, test and foreign sets at the size that networks see."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from priornet.depth import (
    DepthError,
    DepthImages,
    is_kitti_road,
    last_of_each_category,
)
from priornet.nn.dense_depth import packaged_weights
from priornet_paper.depth.augmentation import augmentation_for
from priornet_paper.depth.batches import TrainingSet, scale_of
from priornet_paper.depth.config import Config
from priornet_paper.depth.machine import is_out_of_memory, room_for
from priornet_paper.depth.methods import Scale
from priornet_paper.depth.presets import Recipe
from priornet_paper.depth.sources import Sources, digest, digest_of

__all__ = ["Sets"]

_MANY = 5000  # images that take so long to read that a message says so


class Sets:
    """Reads every set once, when it is first asked for.

    Args:
        config: Size and number of the images.
        sources: Where they are.
    """

    def __init__(self, config: Config, sources: Sources) -> None:
        self.config, self.sources = config, sources
        self._foreign: dict[str, Tensor] = {}
        self._prints: dict[str, str] = {}

    def check(
        self,
        foreign: bool,
        remark: Callable[[str], object] = lambda _: None,
        *,
        learnt: bool = False,
    ) -> None:
        """Complain now of what is missing or damaged, not after hours of work.

        Args:
            foreign: Whether images of the other set are learnt as out-of-domain ones.
            remark: Told, in one line, where this takes long.
            learnt: Whether to look at training images too, which are decoded before the first step
                in any case: where finished work is to be dropped before.
        """
        for part in ("train", "test"):
            images = self._part(part)
            if not images.has_depth:
                raise self._without_depth(part)
            if self.config.dataset != "kitti" and is_kitti_road(images.names):
                raise DepthError(
                    f"{images.name}: these are KITTI's roads, which {self.config.dataset}'s "
                    'settings do not fit; the data set is "kitti".'
                )
        self._check_apart(self._part("train"), self._part("test"))
        for name in self.sources.foreign:
            self._part(name)
        other = self.sources.other(self.config)
        if foreign and other not in self.sources.foreign:
            raise DepthError(
                f"NWPN (rkl) learns {other} images as out-of-domain ones: give a set of other "
                f"images by that name (`--foreign {other}=PATH`), or leave NWPN out of the methods."
            )
        self._check_images(self._strange_images if foreign else None, remark, learnt)

    def _check_images(
        self, strange: DepthImages | None, remark: Callable[[str], object], learnt: bool
    ) -> None:
        """Take the digests of all images, and decode those used after the first training.

        Digests are for the record, so that files are read once for both.
        """
        names = ("train", "test", *self.sources.foreign)
        n_images = sum(len(self._part(name)) for name in names)
        if n_images > _MANY:
            remark(f"Looking at {n_images} images, for damaged ones among them.")
        for name in names:
            self._print(name, check=learnt or name != "train")
        if strange is not None:  # most often they are all among those that are scored
            known = set(self._part(self.sources.other(self.config)).names)
            new = [row for row, name in enumerate(strange.names) if name not in known]
            digest_of(strange[new], with_depth=False, check=True)

    def _check_apart(self, train: DepthImages, test: DepthImages) -> None:
        """Refuse test images that were learnt, such as those of the one list that was given."""
        if self.sources.test is not None:  # of another set, whose names may be the same
            return
        known = set(train.names)
        both = [name for name in test.names if name in known]
        if both:
            raise DepthError(
                f"{self.sources.own}: {len(both)} images are to be learnt and to be tested, "
                f"{both[0]} among them; give a folder with a list for each part as `split`."
            )

    def _part(self, name: str) -> DepthImages:
        """Images as the settings want them, undecoded: ``train``, ``test``, or a foreign set."""
        config, sources = self.config, self.sources
        if name == "train" or (name == "test" and config.holdout > 0):
            whole = sources.open(sources.own, "train")
            held = _held_out(whole.names, config.holdout)
            if config.holdout > 0 and not 0 < len(held) < len(whole):
                raise DepthError(
                    f"`holdout` = {config.holdout:g} of {len(whole)} training images leaves "
                    f"{len(held)} to score and {len(whole) - len(held)} to learn."
                )
            if name == "train":
                learnt = sorted(set(range(len(whole))) - set(held))
                return _first(whole[learnt], config.n_images)
            return _first(whole[held], config.n_test)
        if name == "test":
            return _first(sources.open(sources.test or sources.own, "test"), config.n_test)
        return _first(sources.open(sources.foreign[name], "all"), config.n_test)

    @cached_property
    def train(self) -> tuple[Tensor, Tensor]:
        """Training images as bytes ``(N, 3, H, W)``, and their depth ``(N, H, W)``."""
        return self._own("train")

    @cached_property
    def scale(self) -> Scale:
        """Of all valid training pixels."""
        return scale_of(self.train[1])

    @cached_property
    def test(self) -> tuple[Tensor, Tensor]:
        """Test images and their depth."""
        return self._own("test")

    def _own(self, part: Literal["train", "test"]) -> tuple[Tensor, Tensor]:
        setting = "n_images" if part == "train" else "n_test"
        images, depth = self._tensors(self._part(part), with_depth=True, setting=setting)
        if depth is None:
            raise self._without_depth(part)
        return images, depth.float()

    def _without_depth(self, part: str) -> DepthError:
        path = (self.sources.test if part == "test" else None) or self.sources.own
        return DepthError(f"{path}: its images have no depth to learn or to compare with.")

    def foreign(self, name: str) -> Tensor:
        """All images of another set, cut and scaled to the size of our own."""
        if name not in self._foreign:
            self._foreign[name] = self._prepared(self._part(name), "n_test")
        return self._foreign[name]

    @cached_property
    def _strange(self) -> Tensor:
        """Images that a prior network learns as out-of-domain ones."""
        return self._prepared(self._strange_images, "n_images")

    @property
    def _strange_images(self) -> DepthImages:
        path = self.sources.foreign[self.sources.other(self.config)]
        return _first(self.sources.open(path, "train"), self.config.n_images)

    def _prepared(self, images: DepthImages, setting: str) -> Tensor:
        return self._tensors(images, with_depth=False, setting=setting)[0]

    def _tensors(
        self, images: DepthImages, *, with_depth: bool, setting: str
    ) -> tuple[Tensor, Tensor | None]:
        """Images at our size: our own with depth, others cut and without."""
        with room_for(images, self._size, with_depth=with_depth, setting=setting):
            return images.tensors(self._size, crop=not with_depth, with_depth=with_depth)

    @property
    def _size(self) -> tuple[int, int]:
        return self.config.height, self.config.width

    def training(self, recipe: Recipe, uses_foreign: bool, device: torch.device) -> TrainingSet:
        """What a recipe is trained on, on a device."""
        foreign, changes = self._strange if uses_foreign else None, augmentation_for(recipe)
        try:
            with room_for(self._part("train"), self._size, with_depth=True, setting="n_images"):
                return TrainingSet(*self.train, foreign, changes, device, self.scale)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            n_images, _, height, width = self.train[0].shape
            raise DepthError(
                f"{self.sources.own}: {n_images} training images of {height} x {width} pixels do "
                "not fit in the memory of the GPU; use smaller ones (`height`, `width`) or fewer "
                "(`n_images`). What is finished is kept."
            ) from error

    def fingerprint(self, *, uses_foreign: bool) -> str:
        """Of the training images and the first weights."""
        parts = [self._own_print, digest(self._weights.encode())]
        if uses_foreign:
            parts.append(self._foreign_print)
        return "-".join(parts)

    @cached_property
    def _own_print(self) -> str:
        return digest(*(tensor.numpy().data for tensor in self.train))

    @cached_property
    def _foreign_print(self) -> str:
        return digest(self._strange.numpy().data)

    def sizes(self) -> dict[str, Any]:
        """How many images there are, for the record; nothing is decoded."""
        return {
            "n_train": len(self._part("train")),
            "n_test": len(self._part("test")),
            "foreign": {name: len(self._part(name)) for name in self.sources.foreign},
        }

    def record(self) -> dict[str, Any]:
        """Which images and first weights these are, wherever they lie."""
        weights = self._weights_file
        names = ("train", "test", *self.sources.foreign)
        return {
            "sources": {name: _plain_text(self._part(name).name) for name in names},
            "weights": self.sources.weights if weights is None else weights.name,
            "digests": {
                # By which results are known from before there was one of all of them.
                "train": digest_of(self._part("train"), n_whole=16),
                "train_images": self._print("train"),
                "test": self.test_print,
                **{name: self.foreign_print(name) for name in self.sources.foreign},
                "weights": None if weights is None else digest(weights.read_bytes()),
            },
        }

    @property
    def test_print(self) -> str:
        """Digest of the test images and their depth."""
        return self._print("test")

    def foreign_print(self, name: str) -> str:
        """Digest of the images of another set."""
        return self._print(name)

    def _print(self, name: str, *, check: bool = False) -> str:
        if name not in self._prints:
            images, is_own = self._part(name), name in ("train", "test")
            self._prints[name] = digest_of(images, with_depth=is_own, check=check)
        return self._prints[name]

    @cached_property
    def _weights_file(self) -> Path | None:
        if self.sources.weights != "imagenet":
            return None if self.sources.weights is None else Path(self.sources.weights)
        try:
            return packaged_weights()
        except ImportError:
            return None

    @cached_property
    def _weights(self) -> str:
        name = str(self.sources.weights)
        path = Path(name)
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else name


def _plain_text(name: str) -> str:
    """A name for JSON: those of old file systems may hold bytes that are no text."""
    return name.encode("utf-8", "replace").decode()


def _held_out(names: Sequence[str], share: float) -> list[int]:
    """Places of the training images that stand for test images."""
    if is_kitti_road(names):
        return last_of_each_category(names, share)
    return list(range(round((1 - share) * len(names)), len(names)))


def _first(images: DepthImages, n_most: int | None) -> DepthImages:
    """The set, or its first images."""
    return images if n_most is None or n_most >= len(images) else images[:n_most]
