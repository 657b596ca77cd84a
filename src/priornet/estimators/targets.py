"""Target columns: what they are called, and how to get back from standardised ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Scaling", "TargetColumns", "target_scaling"]

FloatArray = NDArray[np.float64]


class Scaling(NamedTuple):
    """Mean and standard deviation of each target column."""

    shift: FloatArray
    scale: FloatArray


@dataclass(frozen=True)
class TargetColumns:
    """What was predicted."""

    names: tuple[str, ...]
    is_vector: bool
    """Whether the targets came as ``(N,)``; predictions then do too."""
    scaling: Scaling

    def shaped(self, values: Tensor) -> Any:
        """``(N, K)`` as an array of the shape the targets had."""
        array = values.numpy()
        return array[:, 0] if self.is_vector else array


def target_scaling(y: FloatArray, weight: FloatArray | None, names: tuple[str, ...]) -> Scaling:
    """Scaling of training targets ``(N, K)``; a constant one cannot be learnt from."""
    shift = np.average(y, axis=0, weights=weight)
    scale = np.sqrt(np.average((y - shift) ** 2, axis=0, weights=weight))
    constant = scale <= 1e-12 * np.maximum(np.abs(shift), np.finfo(float).tiny)
    if constant.any():
        k = int(np.argmax(constant))
        raise ValueError(
            f"the target {names[k]!r} is constant ({y[0, k]:g} in all {len(y)} rows): there is "
            "nothing to learn."
        )
    return Scaling(shift, scale)
