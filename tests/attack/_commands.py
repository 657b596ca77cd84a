"""Many processes for the price of one start: a server that imports everything once, and forks.

``python -m attack._commands`` reads one request a line, as JSON, and answers each with one line.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["QUICK", "Ended", "Server", "must", "prepare", "server", "write_table"]

QUICK = ("--method", "single", "--epochs", "1", "--quiet")

_HEAVY = (
    *("numpy", "onnx", "pandas", "pyarrow.csv", "pyarrow.parquet", "sklearn.utils", "torch"),
    *("priornet.cli", "priornet.distill", "priornet.estimators", "priornet.export"),
    *("priornet.report.html", "priornet.evaluation.evaluate_model", "priornet.tables.write"),
)
_PATIENCE = 300  # seconds; only ends a hang


class Ended(NamedTuple):
    """The end of a process."""

    code: int
    """Negative for a signal."""
    stderr: str
    seconds: float
    was_hit: bool
    """It was still there when the signal was sent."""


class Server:
    """Runs commands of priornet, and functions, in processes forked from a server."""

    def __init__(self) -> None:
        paths = os.pathsep.join(dict.fromkeys(filter(None, sys.path)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attack._commands"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        )
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self._process.communicate()

    def command(
        self,
        arguments: Iterable[object],
        folder: Path,
        *,
        stdin: Path | None = None,
        number: int | None = None,
        delay: float = 0.0,
        watched: Path | None = None,
    ) -> Ended:
        """Run ``priornet`` in a folder.

        Args:
            arguments: Of the command line.
            folder: Where it runs.
            stdin: A file to read as standard input.
            number: A signal to send.
            delay: Seconds until it is sent.
            watched: A folder; the delay begins when a hidden entry appears in it.
        """
        request = {
            "arguments": [str(one) for one in arguments],
            "folder": str(folder),
            "stdin": str(stdin) if stdin else os.devnull,
            "signal": number,
            "delay": delay,
            "watched": str(watched) if watched else None,
        }
        return Ended(*self._ask(request))

    def together(self, function: str, arguments: Iterable[list[Any]]) -> list[str]:
        """Run ``module:function`` in a process for each list of arguments; return what failed."""
        return self._ask({"function": function, "arguments": list(arguments)})

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with code {self._process.wait()}")
        return json.loads(line)


@cache
def server() -> Server:
    """Start the server of this process, which ends with it."""
    return Server()


def write_table(path: Path, n_rows: int, seed: int) -> None:
    """Write rows of two features and a target."""
    draw = random.Random(seed)
    lines = ["a,b,y"]
    for _ in range(n_rows):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        lines.append(f"{a:.6f},{b:.6f},{a - b + draw.gauss(0, 0.1):.6f}")
    path.write_text("\n".join(lines) + "\n")


def prepare(folder: Path, run: Server) -> Path:
    """Make a folder with tables and a model."""
    place = folder / "prepared"
    place.mkdir()
    write_table(place / "data.csv", 80, 1)
    write_table(place / "more.csv", 40, 2)
    must(run.command(("fit", "data.csv", "--target", "y", "--out", "model", *QUICK), place))
    return place


def must(ended: Ended) -> Ended:
    """Refuse a plain command that failed."""
    if ended.code != 0:
        raise RuntimeError(f"a plain command ended with {ended.code}: {ended.stderr}")
    return ended


def _serve() -> None:
    for name in _HEAVY:
        import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        answer = _together(request) if "function" in request else _command(request)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _command(request: dict[str, Any]) -> list[Any]:
    with tempfile.TemporaryFile() as stderr:
        start = time.monotonic()
        child = _forked(lambda: _run(request, stderr.fileno()))
        was_hit = _hit(child, request)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - start
        stderr.seek(0)
        return [code, stderr.read().decode(errors="replace"), seconds, was_hit]


def _run(request: dict[str, Any], stderr: int) -> int:
    os.dup2(os.open(request["stdin"], os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(stderr, 2)
    sys.stdin = open(0)  # noqa: SIM115 (for the life of the process)
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
    sys.stdout = open(1, "w")  # noqa: SIM115
    os.chdir(request["folder"])
    sys.argv = ["priornet", *request["arguments"]]
    from priornet.cli import main

    main()
    return 0


def _hit(child: int, request: dict[str, Any]) -> bool:
    """Send the signal; tell whether the process was still there."""
    if request["signal"] is None:
        return False
    deadline = time.monotonic() + _PATIENCE
    while request["watched"] and not _has_hidden(request["watched"]) and _is_there(child):
        if time.monotonic() > deadline:
            break
        time.sleep(0.0005)
    time.sleep(request["delay"])
    is_there = _is_there(child)
    os.kill(child, request["signal"])
    return is_there


def _has_hidden(folder: str) -> bool:
    return any(name.startswith(".") for name in os.listdir(folder))


def _is_there(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _together(request: dict[str, Any]) -> list[str]:
    module, _, name = request["function"].partition(":")
    function = getattr(import_module(module), name)
    with tempfile.TemporaryFile("w+") as errors:

        def call(arguments: list[Any]) -> int:
            try:
                function(*arguments)
            except BaseException as error:
                errors.write(f"{type(error).__name__}: {' '.join(str(error).split())}\n")
                errors.flush()
            return 0

        children = [_forked(lambda given=given: call(given)) for given in request["arguments"]]
        for child in children:
            os.waitpid(child, 0)
        errors.seek(0)
        return errors.read().splitlines()


def _forked(function: Callable[[], int]) -> int:
    """Run a function in a child; return its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.alarm(_PATIENCE)
        code = function()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
