"""Attacks on files while they are written: kills, and writers side by side."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attack._commands import QUICK, must, prepare, server, write_table
from attack.trial import Attack, Counts

__all__ = ["ATTACKS", "write_again_and_again"]


# -- kills ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Write:
    """A command that writes ``made`` into the folder ``out``, and how to see that it is whole."""

    arguments: tuple[str, ...]
    made: tuple[str, ...]
    is_whole: Callable[[Path], bool]


def _is_page(path: Path) -> bool:
    content = path.read_bytes()
    return content.startswith(b"<!doctype html>") and content.endswith(b"</html>\n")


def _is_model(path: Path) -> bool:
    """Read as the formats are published, not by the library."""
    config = json.loads((path / "config.json").read_bytes())
    content = (path / "weights.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name[0] != "_"]
    return bool(config["format"]) and 8 + size + max(ends) == len(content)


def _is_table(path: Path) -> bool:
    lines = path.read_bytes().split(b"\n")
    return len(lines) == 20_002 and len({line.count(b",") for line in lines[:-1]}) == 1


def _is_parquet(path: Path) -> bool:
    import pyarrow.parquet as pq

    return pq.read_table(path).num_rows == 20_000


def _is_onnx(path: Path) -> bool:
    import onnx

    onnx.checker.check_model(onnx.load(path))
    return True


_WRITES = (
    _Write(
        ("fit", "data.csv", "--target", "y", "--out", "out/model", *QUICK),
        ("model", "model-report.html"),
        lambda path: _is_model(path) if path.is_dir() else _is_page(path),
    ),
    _Write(("predict", "model", "big.csv", "-q", "--out", "out/a.csv"), ("a.csv",), _is_table),
    _Write(
        ("predict", "model", "big.csv", "-q", "--out", "out/a.parquet"), ("a.parquet",), _is_parquet
    ),
    _Write(("export", "model", "--onnx", "out/m.onnx"), ("m.onnx",), _is_onnx),
    _Write(("evaluate", "model", "more.csv", "--report", "out/r.html"), ("r.html",), _is_page),
)


def _kills(seed: int, tries: int, folder: Path) -> Counts:
    """Kill commands at random moments, half of them while they write; then run them again."""
    draw, run = random.Random(seed), server()
    place = prepare(folder, run)
    write_table(place / "big.csv", 20_000, 3)
    out = place / "out"
    seconds: dict[_Write, float] = {}
    found: Counter[str] = Counter(
        dict.fromkeys(("killed", "killed_writing", "left_by_kills", "tries"), 0)
    )
    found.update(dict.fromkeys(_ZERO_OF_KILLS, 0))
    for _ in range(tries):
        write = draw.choice(_WRITES)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        has_old = draw.random() < 0.7
        if has_old or write not in seconds:
            seconds[write] = must(run.command(write.arguments, place)).seconds
        if not has_old:
            for path in list(out.iterdir()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        number = draw.choice((signal.SIGKILL, signal.SIGTERM))
        is_writing = draw.random() < 0.5
        delay = draw.uniform(0, 0.03) if is_writing else draw.uniform(0, seconds[write])
        ended = run.command(
            write.arguments,
            place,
            number=number,
            delay=delay,
            watched=out if is_writing else None,
        )
        found["tries"] += 1
        found["killed"] += ended.was_hit
        found["killed_writing"] += ended.was_hit and is_writing
        _look(write, out, has_old, found)
        # Before the program has begun SIGTERM is the system's, -15; at its end the work is done.
        if number == signal.SIGTERM and ended.code not in (143, -signal.SIGTERM, 0):
            found["wrong_codes"] += 1
            logging.getLogger(__name__).error("%s, code %s: %s", write.arguments, *ended[:2])
        found["left_by_kills"] += bool(set(os.listdir(out)) - set(write.made))
        found["failed_next_runs"] += run.command(write.arguments, place).code != 0
        found["leftovers"] += len(set(os.listdir(out)) - set(write.made))
        _look(write, out, True, found)
    return dict(found)


def _look(write: _Write, out: Path, has_old: bool, found: Counter[str]) -> None:
    """Count outputs that are lost or half-written."""
    for name in write.made:
        path = out / name
        if not path.exists():
            found["lost_old_outputs"] += has_old
            continue
        try:
            is_whole = write.is_whole(path)
        except Exception:  # whatever a reader says of half a file
            is_whole = False
        found["half_written"] += not is_whole


_ZERO_OF_KILLS = (
    *("failed_next_runs", "half_written", "leftovers", "lost_old_outputs", "wrong_codes"),
)


# -- writers side by side -------------------------------------------------------------------------

_WRITERS, _TIMES = 4, 5


def _two_writers(seed: int, tries: int, folder: Path) -> Counts:
    """Let processes with one process id, as in two containers, write one file at a time."""
    draw, run = random.Random(seed), server()
    found: Counter[str] = Counter(dict.fromkeys(("reads", "tries", "writes"), 0))
    found.update(dict.fromkeys(_ZERO_OF_WRITERS, 0))
    kinds = tuple(_WRITE)
    for number in range(tries):
        kind = kinds[number % len(kinds)]
        place = folder / f"{number}"
        place.mkdir()
        target = place / f"a.{kind}"
        own = [[kind, str(target), writer, draw.randrange(1 << 30)] for writer in range(_WRITERS)]
        reader = ["read", str(target), _WRITERS, 0]
        failed = run.together("attack.files:write_again_and_again", [*own, reader])
        found["tries"] += 1
        found["writes"] += _WRITERS * _TIMES
        found["torn"] += sum(line.startswith("Torn") for line in failed)
        found["failed_writes"] += sum(not line.startswith(("Torn", "Read")) for line in failed)
        found["reads"] += sum(int(line.split()[-1]) for line in failed if line.startswith("Read"))
        found["lost"] += not target.exists()
        found["torn"] += target.exists() and _writer_of(target) is None
        found["leftovers"] += len(os.listdir(place)) - target.exists()
        shutil.rmtree(place)
    return dict(found)


class Torn(Exception):
    """A reader found something that no writer wrote."""


class Read(Exception):
    """The number of reads of a reader."""


def write_again_and_again(kind: str, path: str, writer: int, seed: int) -> None:
    """Write one file some times, with pauses in between; or read it meanwhile."""
    target = Path(path)
    os.getpid = lambda: 7  # what every container's first process is called, or so
    if kind == "read":
        n_torn, n_reads = _read(target)
        raise Torn(n_torn) if n_torn else Read(n_reads)
    draw = random.Random(seed)
    write = _WRITE[kind]
    for _ in range(_TIMES):
        time.sleep(draw.uniform(0, 0.01))
        write(target, writer, lambda: time.sleep(draw.uniform(0, 0.01)))


def _read(target: Path) -> tuple[int, int]:
    n_torn = n_reads = 0
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        if target.exists():
            n_reads += 1
            n_torn += _writer_of(target) is None
        time.sleep(0.001)
    return n_torn, n_reads


# How the library writes each kind of file, each writer with content of its own length.


def _write_csv(path: Path, writer: int, pause: Callable[[], None]) -> None:
    import pyarrow as pa

    from priornet.tables.write import TableWriter

    with TableWriter(path) as table:
        for _ in range(3 + writer):
            table.write(pa.RecordBatch.from_pydict({"writer": [writer] * 200}))
            pause()


def _write_json(path: Path, writer: int, pause: Callable[[], None]) -> None:
    from priornet.evaluation.results import write_results

    write_results(path, {"rows": [writer] * 200 * (3 + writer)})
    pause()


def _write_html(path: Path, writer: int, pause: Callable[[], None]) -> None:
    from priornet.report.page import write_page

    write_page(f"{writer}\n" * 200 * (3 + writer), path)
    pause()


def _write_tensors(path: Path, writer: int, pause: Callable[[], None]) -> None:
    import torch

    from priornet.nn.weights import write_tensors

    write_tensors(path, {"rows": torch.full((200 * (3 + writer),), float(writer))}, {})
    pause()


def _write_model(path: Path, writer: int, pause: Callable[[], None]) -> None:
    import numpy as np

    from priornet import GaussianRegressor

    x = np.linspace(0, 1, 20).reshape(-1, 1)
    model = GaussianRegressor(hidden=(3 + writer,), epochs=1, random_state=writer).fit(x, x[:, 0])
    pause()
    model.save(path)


_WRITE = {
    "csv": _write_csv,
    "json": _write_json,
    "html": _write_html,
    "safetensors": _write_tensors,
    "model": _write_model,
}


def _writer_of(path: Path) -> int | None:
    """Find the writer of a whole file; None where nobody wrote all of it."""
    try:
        values = list(_values(path))
    except FileNotFoundError:
        # In the moment between looking and reading a model may be exchanged for another; the file
        # is then that of a folder which is gone. All other files stay where they are.
        return 0 if path.suffix == ".model" else None
    except (OSError, ValueError, KeyError):
        return None
    is_one = len(set(values)) == 1 and len(values) == 200 * (3 + values[0])
    return values[0] if is_one else None


def _values(path: Path) -> Iterator[int]:
    """Read a file as its format is published."""
    if path.suffix == ".csv":
        header, *lines = path.read_text().splitlines()
        if header != "writer":
            raise ValueError(header)
        yield from map(int, lines)
    elif path.suffix == ".json":
        yield from json.loads(path.read_text())["rows"]
    elif path.suffix == ".html":
        yield from map(int, path.read_text().split())
    elif path.suffix == ".safetensors":
        import numpy as np

        content = path.read_bytes()
        size = 8 + int.from_bytes(content[:8], "little")
        json.loads(content[8:size])
        yield from map(int, np.frombuffer(content[size:], np.float32))
    else:
        config = json.loads((path / "config.json").read_text())
        writer = config["parameters"]["hidden"][0] - 3
        yield from [writer] * 200 * (3 + writer)


_ZERO_OF_WRITERS = ("failed_writes", "leftovers", "lost", "torn")

ATTACKS = (
    Attack(
        "kills",
        "A killed command leaves the old output or the new one, whole, and the next run leaves no "
        "other file behind.",
        _kills,
        100,
        _ZERO_OF_KILLS,
    ),
    Attack(
        "two-writers",
        "Processes of one process id that write one file leave it whole, lose no write, and never "
        "touch each other's unfinished file.",
        _two_writers,
        200,
        _ZERO_OF_WRITERS,
    ),
)
