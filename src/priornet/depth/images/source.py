"""What a reader of one form provides, and how its images are divided into training and test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from priornet.depth.images.decoding import Picture, StoredDepth
from priornet.depth.images.errors import DepthError

__all__ = ["Missing", "Part", "Source", "rows_of"]

Part = Literal["train", "test", "all"]
Missing = Literal["error", "skip"]
"""Whether an image whose depth file is not there is an error, or left out."""
_PARTS = ("train", "test", "all")


class Source(Protocol):
    """Images in files. Reading is done from one thread at a time, decoding from many."""

    @property
    def name(self) -> str:
        """What the set is called."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each image is called."""
        ...

    @property
    def parts(self) -> Sequence[str] | None:
        """``"train"`` or ``"test"`` for each image; None where the set is not divided."""
        ...

    @property
    def has_depth(self) -> bool:
        """Whether the images have depth."""
        ...

    @property
    def crop(self) -> tuple[int, int, int, int] | None:
        """First and last row, first and last column that the set's authors score, if they say."""
        ...

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        ...

    def depth(self, index: int) -> StoredDepth:
        """Read its depth."""
        ...


def rows_of(source: Source, part: Part) -> list[int]:
    """Which images belong to a part; a set that is not divided serves for tests as a whole."""
    if part not in _PARTS:
        raise DepthError(f'unknown part "{part}"; choose one of: {", ".join(_PARTS)}.')
    n_images = len(source.names)
    if source.parts is None:
        if part == "train":
            raise DepthError(
                f"{source.name}: this set is not divided into training and test images, as a "
                'folder of pairs is by its split.csv; only part "all" is there.'
            )
        return list(range(n_images))
    rows = [row for row in range(n_images) if part in ("all", source.parts[row])]
    if not rows:
        raise DepthError(
            f"{source.name}: it has no {part} images; a folder names them in its split.csv, and "
            "test images may lie elsewhere (`test`)."
        )
    return rows
