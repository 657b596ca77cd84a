"""An end to what may take too long."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class OutOfTime(BaseException):
    """Not an Exception: compilers catch those and carry on."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the body after so many seconds."""

    def stop(*_: object) -> None:
        raise OutOfTime(f"not done after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
