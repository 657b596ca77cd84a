"""One row of a NumPy file at a time, be the file in a folder or in a zip."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from priornet.depth.images.errors import DepthError, reading
from priornet.depth.images.members import Members

__all__ = ["ArrayFile"]


class ArrayFile:
    """A ``.npy`` file of which only the rows that are asked for are read.

    Args:
        members: Where the file is.
        name: Its name there.

    Attributes:
        where: What errors call it.
        shape: Shape of the array.
        dtype: Its numbers.
    """

    def __init__(self, members: Members, name: str) -> None:
        self.where = members.where(name)
        self._file = members.open(name)
        weakref.finalize(self, self._file.close)
        with reading(self.where, "a NumPy array"):
            version = npy.read_magic(self._file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, is_fortran, self.dtype = header(self._file)
        if is_fortran and len(self.shape) > 1:
            raise DepthError(f"{self.where}: arrays in the order of Fortran are not supported.")
        if self.dtype.hasobject or not self.shape:
            raise DepthError(f"{self.where}: this array does not hold rows of numbers.")
        self._start = self._file.tell()
        self._row = math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(self, index: int) -> NDArray[Any]:
        """A row; cheap in order, for a stream in a zip goes forward only."""
        with reading(self.where, "a NumPy array"):
            self._file.seek(self._start + index * self._row)
            data = self._file.read(self._row)
        if len(data) != self._row:
            raise DepthError(f"{self.where}: the file ends before row {index}.")
        return np.frombuffer(data, self.dtype).reshape(self.shape[1:])
