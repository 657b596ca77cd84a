"""Putting a folder in the place of another, so that a kill at any moment leaves one of them there.

Linux can exchange two folders in one step. Elsewhere, and on file systems that cannot, the old one
is set aside under a name that follows from its own: whoever finds nothing in its place looks there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["found_folder", "replace_folder", "temporary_folder"]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def temporary_folder(path: Path) -> Path:
    """A new, hidden folder beside a path."""
    return Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))


def replace_folder(fresh: Path, path: Path) -> None:
    """Move a folder into the place of another, which is deleted; or into an empty place.

    Args:
        fresh: The new one, from :func:`temporary_folder`.
        path: The place, no symbolic link.
    """
    if not path.exists():
        fresh.rename(path)
    elif _exchange(fresh, path):
        shutil.rmtree(fresh, ignore_errors=True)  # that is the old one now
    else:
        _replace_in_two_steps(fresh, path)
    _discard(_aside(path))  # what an interrupted save left


def found_folder(path: Path) -> Path:
    """Where the folder of a path is: there, or set aside by a replacement that was interrupted."""
    if path.exists():
        return path
    aside = _aside(Path(os.path.realpath(path)))
    return aside if aside.is_dir() else path


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


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
    """Delete a folder that was set aside; while it has that name it is whole."""
    if not aside.is_dir():
        return
    doomed = temporary_folder(aside)
    aside.rename(doomed / aside.name)
    shutil.rmtree(doomed, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot."""
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
    """The system's call, or None: only Linux has it, and Python does not offer it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, an old library, Windows
        return None
    path = ctypes.c_char_p
    call.argtypes = (ctypes.c_int, path, ctypes.c_int, path, ctypes.c_uint)
    return call
