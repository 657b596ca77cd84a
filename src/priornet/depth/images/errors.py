"""What is wrong with a set of images, in one line that names the file; and packages to read it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from priornet._lazy import need_for

__all__ = ["DepthError", "need", "reading"]


class DepthError(ValueError):
    """A set of images is missing, damaged, or not what it should be; the message is one line."""


need = partial(need_for, extra="depth", error=DepthError)


@contextmanager
def reading(where: object, what: str) -> Generator[None]:
    """Turn whatever a library says of a damaged file into one line that names it.

    Args:
        where: The file.
        what: Ends the sentence "this cannot be read as ...".
    """
    try:
        yield
    except (DepthError, MemoryError):
        raise
    except Exception as error:  # decoders meet damaged files in many ways of their own
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DepthError(f"{where}: this cannot be read as {what}: {reason}") from error
