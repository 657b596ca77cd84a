"""LSUN's categories in the form of their authors: an LMDB with one encoded picture a key.

Yu et al., "LSUN: Construction of a Large-scale Image Dataset using Deep Learning with Humans in the
Loop", 2015. There is no depth: they serve as out-of-domain images.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from priornet.depth.images.decoding import DepthError, Picture, StoredDepth, need, reading

# A process may open one LMDB once at a time only; opening it costs little.
_ONE_AT_A_TIME = Lock()


class LsunLmdb:
    """An LMDB of pictures in the order of its keys.

    Args:
        path: The folder with ``data.mdb``, or that file.
    """

    crop, parts = None, None
    has_depth = False

    def __init__(self, path: Path) -> None:
        self._path = path.parent if path.name == "data.mdb" else path
        self.name = self._path.resolve().name
        with self._transaction() as transaction:
            keys = list(transaction.cursor().iternext(keys=True, values=False))
        if not keys:
            raise DepthError(f"{self._path}: this LMDB is empty.")
        self._keys: list[bytes] = keys
        self.names = tuple(key.decode("utf-8", "backslashreplace") for key in keys)

    def picture(self, index: int) -> Picture:
        """Read a photograph."""
        with self._transaction() as transaction:
            data = bytes(transaction.get(self._keys[index]))
        return Picture(data, f"{self._path}: {self.names[index]}")

    def depth(self, index: int) -> StoredDepth:
        """Refuse: LSUN has no depth."""
        raise DepthError(f"{self._path}: this set has no depth.")

    @contextmanager
    def _transaction(self) -> Generator[Any]:
        lmdb = need("lmdb", "read LSUN's LMDB files")
        is_folder = self._path.is_dir()
        with _ONE_AT_A_TIME, reading(self._path, "an LMDB"):
            environment = lmdb.open(
                str(self._path), subdir=is_folder, readonly=True, lock=False, readahead=False
            )
            with environment:
                self._check_whole(environment)
                with environment.begin() as transaction:
                    yield transaction

    def _check_whole(self, environment: Any) -> None:
        """Refuse a truncated file: reading past its end would kill the process."""
        file = self._path / "data.mdb" if self._path.is_dir() else self._path
        needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        if file.stat().st_size < needed:
            raise DepthError(
                f"{file}: it is truncated, {file.stat().st_size} of {needed} bytes are there."
            )
