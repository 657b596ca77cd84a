"""Target columns: their names, their scaling, and the way back from standardised values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from priornet.tables.column_summaries import outlier_notice
from priornet.tables.learning import find_dominant
from priornet.tables.values import FloatArray

# Squares, and sums of squares over many rows, stay far from the ends of double precision.
LARGEST, SMALLEST = 1e140, 1e-140
_ROUNDING = 4 * np.finfo(float).eps  # values closer than this, relative to their size, are equal


class Scaling(NamedTuple):
    """Mean and standard deviation of each target column."""

    shift: FloatArray
    scale: FloatArray


@dataclass(frozen=True)
class TargetColumns:
    """The targets of a model: names, shape and scaling."""

    names: tuple[str, ...]
    is_vector: bool
    """True if the targets came as ``(N,)``; predictions then do too."""
    scaling: Scaling

    def shaped(self, values: Tensor) -> Any:
        """Convert ``(N, K)`` to an array of the shape that the targets had."""
        array = values.numpy()
        return array[:, 0] if self.is_vector else array


def check_magnitude(y: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse finite targets ``(N, K)`` whose variance is no number that a computer can hold."""
    if not y.size:
        return
    for name, largest in zip(names, np.abs(y).max(axis=0), strict=True):
        if largest > LARGEST:
            raise ValueError(
                f"the target {name!r} is too large ({largest:.3g}; at most {LARGEST:g}), for its "
                "variance would be infinite: divide it by a power of ten, and fit again."
            )


def clip_targets(y: FloatArray, train: NDArray[np.int64]) -> FloatArray:
    """Clip outliers among the training targets, of ``(N, K)``; other targets stay.

    A network follows one target of 10 000 among numbers around 1 until it predicts no other.

    Args:
        y: Targets of all rows.
        train: The rows to learn from.
    """
    clipped = y
    for k in range(y.shape[1]):
        found = find_dominant(y[train, k])
        if found is not None and found.is_clipped:
            clipped = y.copy() if clipped is y else clipped
            clipped[train, k] = found.taken(y[train, k])
    return clipped


def target_notes(y: FloatArray, names: Sequence[str], row: Callable[[int], object]) -> list[str]:
    """List the targets ``(N, K)`` with outliers; ``row`` gives the user's name for a row."""
    found = [find_dominant(y[:, k]) for k in range(y.shape[1])]
    return [
        outlier_notice(f"the target {name!r}", one, row)
        for name, one in zip(names, found, strict=True)
        if one is not None
    ]


def target_scaling(y: FloatArray, weight: FloatArray | None, names: tuple[str, ...]) -> Scaling:
    """Compute the scaling of training targets ``(N, K)``; refuse a constant target."""
    shift = np.average(y, axis=0, weights=weight)
    scale = np.sqrt(np.average((y - shift) ** 2, axis=0, weights=weight))
    constant = np.ptp(y, axis=0) <= _ROUNDING * np.abs(y).max(axis=0)
    far = ~constant & (scale <= 1e-12 * np.abs(shift))
    if far.any():  # the sum of such values is rounded by more than they differ: add differences
        differences = y - y[0]
        mean = np.average(differences, axis=0, weights=weight)
        spread = np.sqrt(np.average((differences - mean) ** 2, axis=0, weights=weight))
        shift, scale = np.where(far, y[0] + mean, shift), np.where(far, spread, scale)
    apart = np.abs(y - shift).max(axis=0)
    too_close = (apart < SMALLEST) & ~constant  # their squares vanish
    if too_close.any():
        k = int(np.argmax(too_close))
        raise ValueError(
            f"the values of the target {names[k]!r} are {apart[k]:.3g} from their mean at most (at "
            f"least {SMALLEST:g} is needed), and their variance would be zero: multiply it by a "
            "power of ten, and fit again."
        )
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"the target {names[k]!r} is constant ({y[0, k]:g} in all {len(y)} rows): there is "
            "nothing to learn."
        )
    return Scaling(shift, scale)
