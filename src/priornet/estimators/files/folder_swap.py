"""Replace a folder by another, so that a kill at any moment leaves one of the two.

Linux can exchange two folders in one step. On other systems, and on file systems that cannot, the
old folder is set aside under a name that follows from its own, and readers look there too. Only
this module makes folders of that name, so it may remove them. A reader opens all files of one
folder together, even if another folder replaces it meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from priornet.writing import copy_mode, sync, workplace

__all__ = ["found_folder", "open_together", "replace_folder", "state_of", "whole_folder"]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


@contextmanager
def whole_folder(path: Path) -> Generator[Path]:
    """Open a new folder that takes its place when it is filled, and not after an error.

    It and its files get the permissions of those they replace.

    Args:
        path: The place, no symbolic link.
    """
    with workplace(path) as place:
        fresh = place / path.name
        fresh.mkdir()
        yield fresh
        for file in (*fresh.iterdir(), fresh):
            sync(file)  # on the disk before the name is
            with suppress(FileNotFoundError):
                copy_mode(file, (path / file.relative_to(fresh)).stat())
        replace_folder(fresh, path)
        sync(path.parent)


def replace_folder(fresh: Path, path: Path) -> None:
    """Move a folder into the place of another one, or into an empty place.

    Args:
        fresh: The new one, in a :func:`~priornet.writing.workplace`, which removes the old one.
        path: The place, no symbolic link.
    """
    try:
        fresh.rename(path)  # over nothing, or an empty folder
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not _exchange(fresh, path):
            _replace_in_two_steps(fresh, path)
    _discard(_aside(path))  # left by an interrupted save


def found_folder(path: Path) -> Path:
    """Find the folder of a path: there, or set aside by an interrupted replacement.

    Earlier versions set it aside as ``.NAME.old``, a name that other programs use too.
    """
    if path.exists():
        return path
    real = Path(os.path.realpath(path))
    places = (_aside(real), real.with_name(f".{real.name}.old")) if real.name else ()
    return next((place for place in places if os.path.isdir(place)), path)


@contextmanager
def open_together(folder: Path, names: Iterable[str]) -> Generator[tuple[BinaryIO, ...]]:
    """Open files of one folder, even if it is replaced between the first and the last.

    The names are looked up in the folder itself, not by its path, if the system can do so.

    Raises:
        OSError: A file cannot be opened; the error carries its path.
    """
    with ExitStack() as stack:
        place: int | None = None
        if os.open in os.supports_dir_fd:
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, place)

        def opener(name: str, flags: int) -> int:
            path = name if place is not None else folder / name
            return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), dir_fd=place)  # of a pipe

        opened: list[BinaryIO] = []
        for name in names:
            try:
                opened.append(stack.enter_context(open(name, "rb", opener=opener)))
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(folder / name)) from error
        yield tuple(opened)


def state_of(folder: Path, names: Iterable[str]) -> tuple[Any, ...]:
    """Return the state of a folder and its files; equal states mean that nothing was replaced."""

    def one(path: Path) -> tuple[int, ...] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    return one(folder), *(one(folder / name) for name in names)


def _aside(path: Path) -> Path:
    return path.with_name(f".priornet-old-{path.name}")


def _replace_in_two_steps(fresh: Path, path: Path) -> None:
    aside = _aside(path)
    _discard(aside)
    path.rename(aside)
    try:
        fresh.rename(path)
    except BaseException:
        if not path.exists():
            aside.rename(path)
        raise


def _discard(aside: Path) -> None:
    """Delete a folder that was set aside; under that name it is always whole."""
    if os.path.isdir(aside):  # also false where the name is too long
        with workplace(aside) as place, suppress(FileNotFoundError):  # another save was faster
            aside.rename(place / aside.name)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system cannot."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _renameat2() -> Any:
    """Return the system's call; only Linux has it, and Python does not offer it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, an old library, Windows
        return None
    path = ctypes.c_char_p
    call.argtypes = (ctypes.c_int, path, ctypes.c_int, path, ctypes.c_uint)
    return call
