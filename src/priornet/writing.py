"""Write files whole or not at all.

New content is written to a hidden folder beside its place, ``.priornet-...``, and moved from there
in one step: a reader finds the old content or the new, also after a kill. The folder's name is
random, so that two writers never share it, not even in two containers. The folder is locked while
it is in use: the first write of a later process removes folders that a killed process left, and
only those.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["copy_mode", "sweep", "sync", "whole_file", "whole_path", "workplace", "write_bytes"]

_NAME = re.compile(r"\.priornet-([0-9a-f]{8})-[0-9a-f]{16}")
_LOCK = ".priornet-lock"
_YOUNG = 24 * 3600  # seconds; a younger folder without a lock may be in use
_UNSYNCABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

_swept: set[str] = set()


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file whole, make its folder if there is none, and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content)
    return path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """Open a new file that replaces ``path`` at the end, unless there is an error.

    It gets the permissions of the old file; a symbolic link stays, and leads to the new file.

    Raises:
        OSError: The file cannot be written, as on a full disk; the error names ``path``.
    """
    with _replacing(path) as fresh:
        file = open(fresh, "xb")  # noqa: SIM115 (closed below, in two ways)
        try:
            yield file
            file.flush()
            sync(file.fileno())
        except BaseException:
            with suppress(OSError):  # a full disk is full for the last bytes too
                file.close()
            raise
        file.close()


@contextmanager
def whole_path(path: str | os.PathLike[str]) -> Generator[Path]:
    """Give a path to a library that writes by name; else like :func:`whole_file`."""
    with _replacing(path) as fresh:
        fresh.touch()
        default = fresh.stat()
        yield fresh
        copy_mode(fresh, default)  # the library may have replaced the file by a private one
        sync(fresh)


@contextmanager
def workplace(target: Path, shown: str | os.PathLike[str] | None = None) -> Generator[Path]:
    """Make a locked, hidden folder beside a path, and remove it afterwards.

    Args:
        target: The path, no symbolic link.
        shown: The path's name in errors; by default the path.
    """
    sweep(target.parent)
    with _naming(shown or target):
        place, lock = _make(target.parent)
        try:
            yield place
        finally:
            _remove(place, lock)


def sync(place: int | Path) -> None:
    """Wait until an open file, a file or a folder is on the disk, if the system can tell."""
    if isinstance(place, int):
        try:
            os.fsync(place)
        except OSError as error:
            if error.errno not in _UNSYNCABLE:
                raise
        return
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        if place.is_dir():  # Windows opens no folders
            return
        raise
    try:
        sync(handle)
    finally:
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the folders that killed processes left beside, once in the life of a process.

    Without knowledge about their use (a file system without locks, a writer on another machine),
    they are removed when they are a day old.
    """
    key = os.path.realpath(folder)
    if key in _swept:
        return
    _swept.add(key)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name)
            if named and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _sweep_one(Path(entry.path), is_near=named[1] == _machine())


def _sweep_one(place: Path, *, is_near: bool) -> None:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        lock = os.open(place / _LOCK, flags)
    except FileNotFoundError:  # its process was killed before it made a lock, or anything else
        place.rmdir()
        return
    is_free = False
    try:
        is_held = _is_held_by_another(lock)
        is_free = not is_held and ((is_near and is_held is not None) or _age(place) > _YOUNG)
    finally:
        if is_free:
            _remove(place, lock)
        else:
            os.close(lock)


def _age(place: Path) -> float:
    """Return the seconds since a change in a folder."""
    return time.time() - max(path.stat().st_mtime for path in (place, *place.rglob("*")))


def _make(folder: Path) -> tuple[Path, int]:
    """Make a hidden folder, with a file in it that this process holds locked."""
    while True:
        place = folder / f".priornet-{_machine()}-{secrets.token_hex(8)}"
        place.mkdir(mode=0o700)
        try:
            lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:  # another process swept the folder, which had no lock yet
            continue
        except BaseException:
            with suppress(OSError):
                place.rmdir()
            raise
        with suppress(OSError):
            if not _is_held_by_another(lock) and os.path.samestat(
                os.fstat(lock), (place / _LOCK).stat()
            ):
                return place, lock
        os.close(lock)  # it was swept before it was locked


def _is_held_by_another(lock: int) -> bool | None:
    """Lock a file unless another process has; None where the system cannot."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _remove(place: Path, lock: int) -> None:
    """Remove a folder whose lock is held; the next sweep removes files that stay."""
    with suppress(OSError):
        for path in place.iterdir():
            if path.name == _LOCK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    os.close(lock)
    with suppress(OSError):
        if [path.name for path in place.iterdir()] == [_LOCK]:
            (place / _LOCK).unlink()
        place.rmdir()


@cache
def _machine() -> str:
    """Name the running system, whose processes see each other's locks across containers."""
    try:
        own = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        own = platform.node()
    return hashlib.sha256(own.encode()).hexdigest()[:8]


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """Give the path of a new file, which replaces ``path`` unless there is an error."""
    target, there = Path(os.path.realpath(path)), _there(path)
    with workplace(target, path) as place:
        fresh = place / target.name
        yield fresh
        if there is not None:
            copy_mode(fresh, there)
        os.replace(fresh, target)
        sync(target.parent)


def _there(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Look up the file to be replaced; refuse other things, and files that are read-only."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    number, reason = None, ""
    if stat.S_ISDIR(found.st_mode):
        number = errno.EISDIR
    elif not stat.S_ISREG(found.st_mode):
        number, reason = errno.EINVAL, "it is a device or a pipe, not a file"
    elif not os.access(path, os.W_OK):
        number = errno.EACCES
    if number is not None:
        raise OSError(number, reason or os.strerror(number), os.fspath(path))
    return found


def copy_mode(fresh: Path, like: os.stat_result) -> None:
    """Copy permissions from one file or folder to another, and its owner if allowed."""
    own = fresh.stat()
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        with suppress(OSError):
            os.chown(fresh, like.st_uid, like.st_gid)
    with suppress(OSError):  # some file systems know no permissions
        fresh.chmod(stat.S_IMODE(like.st_mode))


@contextmanager
def _naming(target: str | os.PathLike[str]) -> Generator[None]:
    """Turn errors about an unfinished file into errors about its target."""
    try:
        yield
    except OSError as error:
        own = error.filename is None or _NAME.search(os.fspath(error.filename))
        if own and error.errno is not None and not isinstance(error, BrokenPipeError):
            error.filename, error.filename2 = os.fspath(target), None
        raise
