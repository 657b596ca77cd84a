"""Files in a zip or in a folder, read one by one under the same names."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from priornet.depth.images.errors import DepthError, reading

__all__ = ["Members"]


class Members:
    """What a zip or a folder holds; a zip is opened once and never unpacked.

    Args:
        path: The zip or the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = None
        if not path.is_dir():
            with reading(path, "a zip"):
                self._zip = zipfile.ZipFile(path)
        self._names = None if self._zip is None else frozenset(self._zip.namelist())

    def where(self, name: str) -> str:
        """What errors call a file."""
        return str(self.path / name) if self._zip is None else f"{self.path}: {name}"

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file() if self._names is None else name in self._names

    def check(self, names: Iterable[str]) -> None:
        """Refuse a set of which a file is missing."""
        for name in names:
            if name not in self:
                raise DepthError(f"{self.where(name)}: this file is missing.")

    def home_of(self, ending: str) -> str | None:
        """The folder, with its slash, under which a name with this ending lies; None if nowhere.

        An archive may hold everything in a folder of its own.
        """
        if ending in self:
            return ""
        if self._names is None:
            return None
        found = [name for name in self._names if name.endswith(f"/{ending}")]
        return min(found, key=len).removesuffix(ending) if found else None

    def read(self, name: str) -> bytes:
        """The bytes of a file, checked against its checksum in a zip."""
        with reading(self.where(name), "a file"):
            return (self.path / name).read_bytes() if self._zip is None else self._zip.read(name)

    def open(self, name: str) -> IO[bytes]:
        """A file to read from piece by piece."""
        with reading(self.where(name), "a file"):
            return (self.path / name).open("rb") if self._zip is None else self._zip.open(name)
