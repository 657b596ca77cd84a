"""SIGTERM ends a command as Ctrl-C does: it tidies up on its way out."""

from __future__ import annotations

import os
import signal
import time
from threading import Thread

__all__ = ["Terminated", "end_on_sigterm"]


class Terminated(SystemExit):
    """SIGTERM came: everything is closed and tidied up on the way out, as after Ctrl-C."""

    status = 128 + signal.SIGTERM

    def __init__(self) -> None:
        super().__init__(self.status)


def end_on_sigterm(grace: float = 5.0) -> None:
    """Raise :class:`Terminated` in this process when it gets SIGTERM; not in those it forks.

    Args:
        grace: Seconds after which a process that is still there ends at once: Python cannot raise
            where a library waits, as Arrow does for more of a pipe. What it leaves, the next run
            tidies up.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    own = os.getpid()

    def end(*_: object) -> None:
        if os.getpid() != own:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    arrived, noted = os.pipe()
    os.set_blocking(noted, False)
    signal.set_wakeup_fd(noted, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def watch() -> None:
        while signal.SIGTERM not in os.read(arrived, 1):
            pass
        time.sleep(grace)
        os.write(2, b"Error: Terminated.\n")
        os._exit(Terminated.status)

    Thread(target=watch, daemon=True, name="sigterm").start()
