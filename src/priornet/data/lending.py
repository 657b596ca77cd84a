"""What is lent to Arrow's reader while it reads ahead, and the wait until all of it is back.

Arrow reads ahead in a thread of its own. Where Python ends while that thread is in need of it, if
only to let go of the last piece that it read, the process aborts or never ends: also after an
error, and with it goes the exit code.
"""

from __future__ import annotations

import io
import time
import weakref
from typing import IO, Any

__all__ = ["LentFile", "Loans"]

_PATIENCE_SECONDS, _PAUSE_SECONDS = 5.0, 0.001


class Loans:
    """Objects that Arrow uses, and a way to wait until it has let go of them all.

    The end is looked for, and not told by a finalizer, whose last lines Arrow's thread would still
    have to run.
    """

    def __init__(self) -> None:
        self._things: list[weakref.ref[Any]] = []

    def lend(self, thing: Any) -> Any:
        """The object itself, which its giver must not hold any longer."""
        self._things = [weakref.ref(thing), *(ref for ref in self._things if ref() is not None)]
        return thing

    def wait(self) -> None:
        """Return when none of them is left, or when Arrow has had a long time."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while any(ref() is not None for ref in self._things) and time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)


class LentFile(io.RawIOBase):
    """A file whose start was read already, from its start; its pieces are lent.

    Args:
        start: What was read.
        file: The rest.
        loans: Where pieces are noted.
    """

    def __init__(self, start: bytes, file: IO[bytes], loans: Loans) -> None:
        self._start, self._rest, self._loans = io.BytesIO(start), file, loans

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> memoryview:  # bytes take no weak references
        """The next piece."""
        return self._loans.lend(memoryview(self._start.read(size) or self._rest.read(size)))
