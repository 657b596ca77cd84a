"""Pieces begin after what they need, in one process or several, and a lost process is reported."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import torch

from priornet_paper.runs import side_by_side
from priornet_paper.runs.side_by_side import Piece, in_order


@dataclass(frozen=True)
class Add:
    """Adds its own number to those it needs; at module level, so that it goes through pickle."""

    own: int

    def __call__(self, needed, tick):
        tick()
        return self.own + sum(needed.values())


@dataclass(frozen=True)
class Meet:
    """Waits for another process: two of them end only if they run side by side."""

    folder: str
    own: int

    def __call__(self, needed, tick):
        with open(f"{self.folder}/{self.own}", "w"):
            pass
        until = time.time() + 600  # a busy machine is slow to start the other
        while len(os.listdir(self.folder)) < 2 and time.time() < until:
            time.sleep(0.01)
        return os.getpid() if len(os.listdir(self.folder)) == 2 else None


def count_threads(needed, tick):
    return torch.get_num_threads()


def fail(needed, tick):
    raise ValueError("this one cannot be done")


def die(needed, tick):
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Oversleep:
    """Sleeps for longer than anything here takes, and leaves a file where nobody ended it."""

    woken: str

    def __call__(self, needed, tick):
        time.sleep(600)
        Path(self.woken).touch()


DIAMOND = [
    Piece("top", Add(1)),
    Piece("left", Add(10), ("top",)),
    Piece("right", Add(100), ("top",), group=1),
    Piece("bottom", Add(1000), ("left", "right"), group=1),
]


def collected(pieces, workers, **options):
    made = {}
    in_order(pieces, workers, done=lambda p, value: made.update({p.name: value}), **options)
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By workers, what the diamond and two that meet returned, and what progress was told."""
    folder, found = str(tmp_path_factory.mktemp("meeting")), {}
    for workers, extra in ((1, []), (2, [Piece(f"meet {i}", Meet(folder, i)) for i in range(2)])):
        seen = []
        made = collected([*DIAMOND, *extra], workers, progress=lambda c, s=seen: s.append(list(c)))
        found[workers] = made, seen
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_a_piece_gets_what_it_needs(runs, workers):
    made, seen = runs[workers]
    values = {"top": 1, "left": 11, "right": 101, "bottom": 1112}
    assert {piece.name: made[piece.name] for piece in DIAMOND} == values
    assert seen[-1] == [2, 2]


def test_pieces_run_side_by_side(runs):
    made, _ = runs[2]
    processes = {made["meet 0"], made["meet 1"]}
    assert len(processes) == 2
    assert None not in processes
    assert os.getpid() not in processes


def test_nothing_to_do_is_done_at_once():
    assert collected([], 4) == {}


def note_start(path):
    with open(path, "a") as file:
        file.write("started\n")


@pytest.mark.parametrize("workers", [1, 2])
def test_every_process_starts_once_and_stops_when_told(workers, tmp_path):
    made, path = {}, tmp_path / "starts"
    in_order(
        DIAMOND,
        workers,
        done=lambda piece, value: made.update({piece.name: value}),
        start=partial(note_start, str(path)),
        stop=lambda: "top" in made,
    )
    assert made == {"top": 1}  # nothing behind it was begun
    assert 1 <= len(path.read_text().splitlines()) <= workers


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_piece_is_raised_here(workers, tmp_path):
    slow = Oversleep(str(tmp_path / "woken"))
    pieces = [Piece("bad", fail), *(Piece(f"slow {i}", slow) for i in range(3))]
    with pytest.raises(ValueError, match="this one cannot be done"):
        collected(pieces, workers)
    assert not (tmp_path / "woken").exists()  # the others were ended


def test_a_killed_process_is_reported_by_what_it_did(tmp_path):
    slow = Oversleep(str(tmp_path / "woken"))
    pieces = [Piece("fine", Add(1)), Piece("doomed", die, ("fine",)), Piece("slow", slow)]
    with pytest.raises(ChildProcessError, match=r"was lost .* during: .*doomed.* Run it again"):
        collected(pieces, 2)


@dataclass(frozen=True)
class SleepHere:
    """Says where it is, and sleeps."""

    folder: str

    def __call__(self, needed, tick):
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(1200)  # longer than the test waits


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # Ended, and nobody there to take notice: as good as gone.
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    """They would work on beside the run that takes its place, and hold the GPU."""
    code = (
        "from priornet_paper.runs.side_by_side import Piece, in_order\n"
        "from test_side_by_side import SleepHere\n"
        "if __name__ == '__main__':\n"
        f"    in_order([Piece(str(i), SleepHere({str(tmp_path)!r})) for i in range(2)], 2)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        assert soon(lambda: len(os.listdir(tmp_path)) == 2)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(name) for name in os.listdir(tmp_path)]
    assert soon(lambda: not any(map(is_alive, workers)))


def soon(happened):
    until = time.monotonic() + 600  # a busy machine is slow to start processes
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def threads_of_two(n_cores, monkeypatch):
    """How many threads each of two processes has on a machine of so many cores."""
    monkeypatch.setattr(side_by_side, "available_cores", lambda: n_cores)
    found = []
    in_order([Piece(n, count_threads) for n in "ab"], 2, done=lambda _, n: found.append(n))
    assert found[0] == found[1]
    return found[0]


def test_processes_share_the_cores(monkeypatch):
    alone = threads_of_two(10**6, monkeypatch)  # as many as torch takes by itself
    assert threads_of_two(1, monkeypatch) == threads_of_two(3, monkeypatch) == 1
    assert threads_of_two(2 * alone, monkeypatch) == alone
    assert threads_of_two(4, monkeypatch) == min(2, alone)


def test_fewer_threads_that_were_asked_for_stay(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of_two(16, monkeypatch) == 1
