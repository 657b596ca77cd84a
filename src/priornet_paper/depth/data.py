"""Training, test and out-of-domain images at the size that networks see, and their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from priornet.depth import (
    DepthError,
    DepthImages,
    Picture,
    StoredDepth,
    check_shapes,
    is_kitti,
    is_kitti_road,
    is_pair_folder,
    last_of_each_category,
    open_depth,
)
from priornet.nn.dense_depth import packaged_weights
from priornet_paper.depth.batches import TrainingSet, augmentation_for, scale_of
from priornet_paper.depth.config import Config, Variant
from priornet_paper.depth.machine import is_out_of_memory, room_for
from priornet_paper.depth.methods import Scale

_LENGTH = 12
_AHEAD = 32  # images that wait in memory: of KITTI's size, 90 MB
_MANY = 5000  # images that take so long to read that a message says so
# Names of files and folders begin like this, by the name of the set.
_NAMES = {"nyu": "nyu", "kitti": "kitti", "lsun_bedroom": "lsun"}


@dataclass(frozen=True)
class Sources:
    """Paths of images and weights."""

    own: Path
    """The set that is learnt."""
    ood: dict[str, Path] = field(default_factory=dict[str, Path])
    """Out-of-domain sets by name: ``kitti`` or ``nyu``, ``lsun_bedroom``."""
    test: Path | None = None
    """Test images, if they are not in ``own``, as in DenseDepth's two zips."""
    weights: str | None = "imagenet"
    """ImageNet weights of the encoder: a file, ``"imagenet"`` for the package's, None for none."""
    split: Path | None = None
    """Split list of raw KITTI drives, or a folder with lists; None if it lies beside them."""
    missing: Literal["error", "skip"] = "error"
    """A picture without its depth file is an error, or left out."""

    def open(self, path: Path, part: Literal["train", "test", "all"]) -> DepthImages:
        """Open a part of one of the sets; nothing is decoded."""
        return open_depth(path, part, split=self.split, missing=self.missing)

    def other(self, config: Config) -> str:
        """Name the set that NWPN takes its out-of-domain training images from."""
        return "kitti" if config.dataset == "nyu" else "nyu"


def named_paths(given: Sequence[str]) -> dict[str, Path]:
    """Parse sets of a command line, each as ``NAME=PATH``.

    Example:
        >>> list(named_paths(["church=photos/church"]))
        ['church']
    """
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ValueError(f'--foreign must be NAME=PATH; got "{text}".')
        if name in ("train", "train_images", "test", "weights"):
            raise ValueError(f'--foreign: a set cannot be called "{name}".')
        found[name] = Path(path)
    return found


def find_sources(
    data: Path,
    dataset: str,
    ood: Mapping[str, Path] | None = None,
    test: Path | None = None,
    weights: str | None = None,
    split: Path | None = None,
    missing: Literal["error", "skip"] = "error",
) -> Sources:
    """Find the sets of an experiment.

    Args:
        data: The set itself, in any form that ``open_depth`` knows; or a folder with several sets,
            one file or folder each, whose names begin with nyu, kitti and lsun.
        dataset: The set to learn.
        ood: Other sets by name, beside those found in ``data``.
        test: See :class:`Sources`, as for the following ones.
        weights: ImageNet weights of the encoder.
        split: Split list of raw KITTI drives.
        missing: Treatment of a picture without its depth file.
    """
    if not data.exists():
        raise DepthError(f"{data}: there is no such file or folder.")
    others = dict(ood or {})
    if dataset in others:
        raise DepthError(
            f"{dataset} is what is learnt: call the out-of-domain set by another name."
        )
    found = _sets_in(data)
    own = found.pop(dataset, data if not found else None)
    if own is None:
        raise DepthError(f"{data}: nothing in it begins with {dataset}; found {', '.join(found)}.")
    return Sources(own, found | others, test, weights, split, missing)


def _sets_in(data: Path) -> dict[str, Path]:
    """Find sets in a folder by name; none if it is a set itself, whatever its parts are called."""
    if not data.is_dir() or is_pair_folder(data):
        return {}
    fitting = {
        name: sorted(path for path in data.iterdir() if path.name.startswith(start))
        for name, start in _NAMES.items()
    }
    fitting = {name: paths for name, paths in fitting.items() if paths}
    if fitting.keys() <= {"kitti"} and is_kitti(data) and any(data.glob("*.txt")):
        return {}  # drives in a folder "kitti_raw", say, and their lists beside it
    for name, paths in fitting.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise DepthError(
                f"{data}: which of these is {name}? {names} (name the sets one by one: what is "
                "learnt, its test images, out-of-domain ones)"
            )
    return {name: path for name, (path,) in fitting.items()}


# -- digests --------------------------------------------------------------------------------------


def digest(*pieces: Any) -> str:
    """Hash bytes, one piece after the other."""
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()[:_LENGTH]


def digest_of(
    images: DepthImages,
    *,
    with_depth: bool = True,
    n_whole: int | None = None,
    check: bool = False,
) -> str:
    """Hash the names of images, and the content of all of them, or of the first.

    Args:
        images: Read one after the other, so that few are in memory at a time.
        with_depth: True to include depth.
        n_whole: Number of images to read; all by default.
        check: True decodes the photographs too, which refuses damaged ones. The digest is the
            same: it is of their bytes.

    Raises:
        DepthError: An image is damaged; it is named.
    """
    found = hashlib.sha256("\n".join(images.names).encode("utf-8", "surrogateescape"))
    n_read = len(images) if n_whole is None else min(n_whole, len(images))
    content = partial(_content, check=check)
    for piece in images.map(content, range(n_read), ahead=_AHEAD, with_depth=with_depth):
        found.update(piece)
    return found.hexdigest()[:_LENGTH]


def same_digests(known: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Check if results are of these images and weights.

    Results from before there was a digest of all training images are compared by the one that they
    have, of the names of all and the content of the first.

    Args:
        known: Digests of the results.
        asked: Digests of the images and weights.

    Example:
        >>> same_digests({"train": "a"}, {"train": "a", "train_images": "b"})
        True
    """
    compared = {n: value for n, value in asked.items() if n in known or n != "train_images"}
    return known == compared


def _content(encoded: tuple[Picture, StoredDepth | None], *, check: bool) -> bytes:
    """Return a photograph's file, and after it its depth in metres."""
    picture, stored = encoded
    content = picture.data if isinstance(picture.data, bytes) else picture.data.tobytes()
    depth = None if stored is None else stored.decode()
    if check:
        pixels = picture.decode(has_depth=stored is not None)
        if stored is not None and depth is not None:
            check_shapes(pixels, stored, depth)
    return content if depth is None else content + depth.tobytes()


# -- images ---------------------------------------------------------------------------------------


class Sets:
    """Images of an experiment; every set is read once, when it is first needed.

    Args:
        config: Size and number of the images.
        sources: Their paths.
    """

    def __init__(self, config: Config, sources: Sources) -> None:
        self.config, self.sources = config, sources
        self._ood: dict[str, Tensor] = {}
        self._digests: dict[str, str] = {}

    def check(
        self, ood: bool, message: Callable[[str], object] = lambda _: None, trained: bool = False
    ) -> None:
        """Refuse missing or damaged images now, not after hours of work.

        Args:
            ood: True if images of the other set are learnt as out-of-domain ones.
            message: Called with one line if this takes long.
            trained: True to decode training images too: before finished work is dropped. Otherwise
                the first step decodes them.
        """
        train, test = self._part("train"), self._part("test")
        for part, images in (("train", train), ("test", test)):
            if not images.has_depth:
                raise self._without_depth(part)
            if self.config.dataset != "kitti" and is_kitti_road(images.names):
                raise DepthError(
                    f"{images.name}: these are KITTI's roads, which {self.config.dataset}'s "
                    'settings do not fit; the data set is "kitti".'
                )
        both = set(train.names).intersection(test.names)
        if both and self.sources.test is None:  # names of another set may be the same
            first = next(name for name in test.names if name in both)
            raise DepthError(
                f"{self.sources.own}: {len(both)} images are to be learnt and to be tested, "
                f"{first} among them; give a folder with a list for each part as `split`."
            )
        n_images = sum(len(self._part(name)) for name in ("train", "test", *self.sources.ood))
        other = self.sources.other(self.config)
        if ood and other not in self.sources.ood:
            raise DepthError(
                f"NWPN (rkl) learns {other} images as out-of-domain ones: give a set of other "
                f"images by that name (`--foreign {other}=PATH`), or leave NWPN out of the methods."
            )
        if n_images > _MANY:
            message(f"Looking at {n_images} images, for damaged ones among them.")
        self._check_files(ood, trained)

    def _check_files(self, ood: bool, trained: bool) -> None:
        """Read all files once: for their digests, and to find damaged ones."""
        learnt = self._ood_to_learn if ood else None  # a set without parts is refused at once
        for name in ("train", "test", *self.sources.ood):
            self.set_digest(name, check=trained or name != "train")
        if learnt is not None:  # most often they are all among those that are scored
            known = set(self._part(self.sources.other(self.config)).names)
            new = [row for row, name in enumerate(learnt.names) if name not in known]
            digest_of(learnt[new], with_depth=False, check=True)

    def _part(self, name: str) -> DepthImages:
        """Open ``train``, ``test`` or an out-of-domain set as the settings want it, undecoded."""
        config, sources = self.config, self.sources
        if name == "train" or (name == "test" and config.holdout > 0):
            whole = sources.open(sources.own, "train")
            held = _held_out(whole.names, config.holdout)
            if config.holdout > 0 and not 0 < len(held) < len(whole):
                raise DepthError(
                    f"`holdout` = {config.holdout:g} of {len(whole)} training images leaves "
                    f"{len(held)} to score and {len(whole) - len(held)} to learn."
                )
            if name == "test":
                return _first(whole[held], config.n_test)
            learnt = sorted(set(range(len(whole))) - set(held))
            return _first(whole[learnt], config.n_images)
        if name == "test":
            return _first(sources.open(sources.test or sources.own, "test"), config.n_test)
        return _first(sources.open(sources.ood[name], "all"), config.n_test)

    @cached_property
    def train(self) -> tuple[Tensor, Tensor]:
        """Return training images as bytes ``(N, 3, H, W)``, and their depth ``(N, H, W)``."""
        return self._own("train", "n_images")

    @cached_property
    def test(self) -> tuple[Tensor, Tensor]:
        """Return test images and their depth."""
        return self._own("test", "n_test")

    @cached_property
    def scale(self) -> Scale:
        """Return the scale of all valid training pixels."""
        return scale_of(self.train[1])

    def _own(self, part: Literal["train", "test"], setting: str) -> tuple[Tensor, Tensor]:
        images, depth = self._tensors(self._part(part), setting, with_depth=True)
        if depth is None:
            raise self._without_depth(part)
        return images, depth.float()

    def _without_depth(self, part: str) -> DepthError:
        path = (self.sources.test if part == "test" else None) or self.sources.own
        return DepthError(f"{path}: its images have no depth to learn or to compare with.")

    def ood(self, name: str) -> Tensor:
        """Return all images of an out-of-domain set, cut and scaled to the size of the own set."""
        if name not in self._ood:
            self._ood[name] = self._tensors(self._part(name), "n_test")[0]
        return self._ood[name]

    @property
    def _ood_to_learn(self) -> DepthImages:
        """Open the images that a prior network learns as out-of-domain ones."""
        path = self.sources.ood[self.sources.other(self.config)]
        return _first(self.sources.open(path, "train"), self.config.n_images)

    @cached_property
    def _learnt_ood(self) -> Tensor:
        return self._tensors(self._ood_to_learn, "n_images")[0]

    def _tensors(
        self, images: DepthImages, setting: str, *, with_depth: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Read images at the size of the own set: with depth, or cut and without."""
        with room_for(images, self._size, with_depth=with_depth, setting=setting):
            return images.tensors(self._size, crop=not with_depth, with_depth=with_depth)

    @property
    def _size(self) -> tuple[int, int]:
        return self.config.height, self.config.width

    def training(self, variant: Variant, uses_ood: bool, device: torch.device) -> TrainingSet:
        """Prepare the training images of a variant on a device."""
        ood, changes = self._learnt_ood if uses_ood else None, augmentation_for(variant)
        try:
            with room_for(self._part("train"), self._size, with_depth=True, setting="n_images"):
                return TrainingSet(*self.train, ood, changes, device, self.scale)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            n_images, _, height, width = self.train[0].shape
            raise DepthError(
                f"{self.sources.own}: {n_images} training images of {height} x {width} pixels do "
                "not fit in the memory of the GPU; use smaller ones (`height`, `width`) or fewer "
                "(`n_images`). What is finished is kept."
            ) from error

    def fingerprint(self, *, uses_ood: bool) -> str:
        """Return the fingerprint of the training images and the first weights."""
        ood = [self._learnt_ood_digest] if uses_ood else []
        return "-".join([self._train_digest, digest(self._weights.encode()), *ood])

    @cached_property
    def _train_digest(self) -> str:
        return digest(*(tensor.numpy().data for tensor in self.train))

    @cached_property
    def _learnt_ood_digest(self) -> str:
        return digest(self._learnt_ood.numpy().data)

    def set_digest(self, name: str, *, check: bool = False) -> str:
        """Return the digest of ``train``, ``test`` (both with depth) or an out-of-domain set."""
        if name not in self._digests:
            with_depth = name in ("train", "test")
            self._digests[name] = digest_of(self._part(name), with_depth=with_depth, check=check)
        return self._digests[name]

    def sizes(self) -> dict[str, Any]:
        """Count the images, for the record; nothing is decoded."""
        return {
            "n_train": len(self._part("train")),
            "n_test": len(self._part("test")),
            "foreign": {name: len(self._part(name)) for name in self.sources.ood},
        }

    def record(self) -> dict[str, Any]:
        """Describe images and first weights by names and digests, not by paths."""
        weights, ood = self._weights_file, self.sources.ood
        return {
            "sources": {
                name: _plain_text(self._part(name).name) for name in ("train", "test", *ood)
            },
            "weights": self.sources.weights if weights is None else weights.name,
            "digests": {
                # Results from before there was a digest of all images have this one.
                "train": digest_of(self._part("train"), n_whole=16),
                "train_images": self.set_digest("train"),
                **{name: self.set_digest(name) for name in ("test", *ood)},
                "weights": None if weights is None else digest(weights.read_bytes()),
            },
        }

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
    """Return a name for JSON: those of old file systems may hold bytes that are no text."""
    return name.encode("utf-8", "replace").decode()


def _held_out(names: Sequence[str], share: float) -> list[int]:
    """List the places of the training images that stand for test images."""
    if is_kitti_road(names):
        return last_of_each_category(names, share)
    return list(range(round((1 - share) * len(names)), len(names)))


def _first(images: DepthImages, n_most: int | None) -> DepthImages:
    """Return the set, or its first images."""
    return images if n_most is None or n_most >= len(images) else images[:n_most]
