r"""From the numbers in a file to metres.

A code :math:`c > 0` stands for :math:`(c + s)\,u / n` metres; the unit :math:`u`, the number of
levels :math:`n` and the shift :math:`s` belong to the set. Code 0 says that nothing was measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["KITTI", "MILLIMETRES", "NYU_CODES", "TEN_METRE_CODES", "Encoding", "metres"]

Codes = NDArray[np.uint8] | NDArray[np.uint16]


class Encoding(NamedTuple):
    """What a code means; see the module.

    Example:
        >>> Encoding(1.0, 256).metres(np.array([[0, 512]], dtype=np.uint16))
        array([[0., 2.]], dtype=float32)
    """

    unit: float
    """Metres of a whole unit."""
    levels: int
    """Codes in a unit."""
    shift: float = 0.0
    """Added to a code: half a level where codes were truncated."""

    def metres(self, codes: Codes) -> NDArray[np.float32]:
        """Depth of each pixel; 0 where nothing was measured."""
        return _table(self, codes.dtype).take(codes)


NYU_CODES = Encoding(9.99547, 255, 0.5)
"""8-bit codes over the largest depth of the labelled NYU set, truncated."""
TEN_METRE_CODES = Encoding(10.0, 255)
"""DenseDepth's 8-bit training depth: 255 levels over ten metres, of 3.9 cm each."""
MILLIMETRES = Encoding(1.0, 1000)
"""16-bit depth of many indoor sets."""
KITTI = Encoding(1.0, 256)
"""16-bit depth of KITTI's depth completion benchmark."""


def metres(values: NDArray[Any], encoding: Encoding | None) -> NDArray[np.float32]:
    """Depth in metres, from codes or from metres in which no measurement may also be NaN."""
    if encoding is not None:
        return encoding.metres(values)
    depth = np.asarray(values, dtype=np.float32)
    return np.where(np.isfinite(depth) & (depth > 0), depth, np.float32(0))


@lru_cache(maxsize=16)
def _table(encoding: Encoding, dtype: np.dtype[Any]) -> NDArray[np.float32]:
    """Metres of every code, each rounded once."""
    codes = np.arange(np.iinfo(dtype).max + 1, dtype=np.float64)
    table = ((codes + encoding.shift) * encoding.unit / encoding.levels).astype(np.float32)
    table[0] = 0
    return table
