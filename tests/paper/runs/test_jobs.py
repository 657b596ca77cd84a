"""Jobs begin after what they need, in one process or several, and a lost process is reported."""

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

from priornet_paper.runs import jobs as module
from priornet_paper.runs.jobs import Job, Watch, run_jobs


@dataclass(frozen=True)
class Add:
    """Adds its own number to those it needs; at module level, so that it goes through pickle."""

    own: int

    def __call__(self, needed, report):
        report("step")
        return self.own + sum(needed.values())


@dataclass(frozen=True)
class Meet:
    """Waits for another process: two of them end only if they run side by side."""

    folder: str
    own: int

    def __call__(self, needed, report):
        with open(f"{self.folder}/{self.own}", "w"):
            pass
        until = time.time() + 600  # a busy machine is slow to start the other
        while len(os.listdir(self.folder)) < 2 and time.time() < until:
            time.sleep(0.01)
        return os.getpid() if len(os.listdir(self.folder)) == 2 else None


def count_threads(needed, report):
    return torch.get_num_threads()


def fail(needed, report):
    raise ValueError("this one cannot be done")


def die(needed, report):
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Oversleep:
    """Sleeps for longer than anything here takes, and leaves a file where nobody ended it."""

    woken: str

    def __call__(self, needed, report):
        time.sleep(600)
        Path(self.woken).touch()


DIAMOND = [
    Job("top", Add(1)),
    Job("left", Add(10), ("top",)),
    Job("right", Add(100), ("top",)),
    Job("bottom", Add(1000), ("left", "right")),
]


def collected(jobs, workers, **options):
    made = {}
    run_jobs(jobs, workers, Watch(done=lambda j, value: made.update({j.name: value}), **options))
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """By workers: the results of the diamond and of two that meet, and the reported events.

    Workers start as the experiments start them: see ``tests/paper/conftest.py``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_START_METHOD", "spawn")
        return run_all(tmp_path_factory)


def run_all(tmp_path_factory):
    folder, found = str(tmp_path_factory.mktemp("meeting")), {}
    for workers, extra in ((1, []), (2, [Job(f"meet {i}", Meet(folder, i)) for i in range(2)])):
        seen = []

        def note(job, event, seen=seen):
            seen.append((job.name, event))

        made = collected([*DIAMOND, *extra], workers, event=note)
        found[workers] = made, seen
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_gets_what_it_needs(runs, workers):
    made, seen = runs[workers]
    values = {"top": 1, "left": 11, "right": 101, "bottom": 1112}
    assert {job.name: made[job.name] for job in DIAMOND} == values
    assert sorted(seen) == sorted((job.name, "step") for job in DIAMOND)  # none is lost


def test_jobs_run_side_by_side(runs):
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


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("workers", [1, 2])
def test_every_process_starts_once_and_stops_when_told(workers, tmp_path):
    made, path = {}, tmp_path / "starts"
    watch = Watch(
        done=lambda job, value: made.update({job.name: value}),
        start=partial(note_start, str(path)),
        stop=lambda: "top" in made,
    )
    run_jobs(DIAMOND, workers, watch)
    assert made == {"top": 1}  # nothing behind it was begun
    assert 1 <= len(path.read_text().splitlines()) <= workers


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_job_is_raised_here(workers, tmp_path):
    slow = Oversleep(str(tmp_path / "woken"))
    jobs = [Job("bad", fail), *(Job(f"slow {i}", slow) for i in range(3))]
    with pytest.raises(ValueError, match="this one cannot be done"):
        collected(jobs, workers)
    assert not (tmp_path / "woken").exists()  # the others were ended


@pytest.mark.usefixtures("forked_workers")
def test_a_killed_process_is_reported_by_what_it_did(tmp_path):
    slow = Oversleep(str(tmp_path / "woken"))
    jobs = [Job("fine", Add(1)), Job("doomed", die, ("fine",)), Job("slow", slow)]
    with pytest.raises(ChildProcessError, match=r"was lost .* during: .*doomed.* Run it again"):
        collected(jobs, 2)


@dataclass(frozen=True)
class SleepHere:
    """Says where it is, and sleeps."""

    folder: str

    def __call__(self, needed, report):
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
        "from priornet_paper.runs.jobs import Job, run_jobs\n"
        "from test_jobs import SleepHere\n"
        "if __name__ == '__main__':\n"
        f"    run_jobs([Job(str(i), SleepHere({str(tmp_path)!r})) for i in range(2)], 2)\n"
    )
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
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
    """Count the threads of each of two processes on a machine of so many cores."""
    monkeypatch.setattr(module, "available_cores", lambda: n_cores)
    found = []
    run_jobs([Job(n, count_threads) for n in "ab"], 2, Watch(done=lambda _, n: found.append(n)))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.usefixtures("forked_workers")
def test_processes_share_the_cores(monkeypatch):
    alone = threads_of_two(10**6, monkeypatch)  # as many as torch takes by itself
    assert threads_of_two(3, monkeypatch) == 1
    assert threads_of_two(4, monkeypatch) == min(2, alone)


def test_fewer_threads_that_were_asked_for_stay(monkeypatch):
    monkeypatch.setattr(module, "_START_METHOD", "spawn")  # where torch is imported anew
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of_two(16, monkeypatch) == 1
