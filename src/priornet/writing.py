"""Write files and folders whole or not at all.

New content is written to a hidden folder beside its place, ``.priornet-...``, and moved from there
in one step: a reader finds the old content or the new, also after a kill. The folder's name is
random, so that two writers never share it, not even in two containers. The folder is locked while
it is in use: the first write of a later process removes folders that a killed process left, and
only those.

Linux can exchange two folders in one step. On other systems, and on file systems that cannot, the
old folder is set aside under a name that follows from its own, and readers look there too. Only
this module makes folders of that name, so it may remove them. A reader opens all files of one
folder together, even if another folder replaces it meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


__all__ = [
    "found_folder",
    "open_together",
    "state_of",
    "whole_file",
    "whole_folder",
    "whole_path",
    "write_bytes",
]

_NAME = re.compile(r"\.priornet-([0-9a-f]{8})-[0-9a-f]{16}")
_LOCK = ".priornet-lock"
_YOUNG = 24 * 3600  # seconds; a younger folder without a lock may be in use
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # of the system

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux

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
            _sync(file.fileno())
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
        _copy_mode(fresh, default)  # the library may have replaced the file by a private one
        _sync(fresh)


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


def _sync(place: int | Path) -> None:
    """Wait until an open file, a file or a folder is on the disk, if the system can tell."""
    if isinstance(place, int):
        try:
            os.fsync(place)
        except OSError as error:
            if error.errno not in _UNABLE:
                raise
        return
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        if place.is_dir():  # Windows opens no folders
            return
        raise
    try:
        _sync(handle)
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
            _copy_mode(fresh, there)
        os.replace(fresh, target)
        _sync(target.parent)


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


def _copy_mode(fresh: Path, like: os.stat_result) -> None:
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
            _sync(file)  # on the disk before the name is
            with suppress(FileNotFoundError):
                _copy_mode(file, (path / file.relative_to(fresh)).stat())
        replace_folder(fresh, path)
        _sync(path.parent)


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
