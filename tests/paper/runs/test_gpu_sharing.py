"""Processes share a GPU through a daemon of our own, and do without where there is none.

The daemon is a stand-in here but for the last test, which runs with ``--device cuda``: these tests
are about what is started, handed to processes, put back and ended.
"""

import os
import shutil
import stat
import subprocess
import sys

import pytest

from priornet_paper.runs import gpu_sharing
from priornet_paper.runs.gpu_sharing import can_share, default_workers, shared_gpu

PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
VISIBLE = "CUDA_VISIBLE_DEVICES"
STARTED, ENDED = "-d None", "quit -t 10 None"


@pytest.fixture(autouse=True)
def nobody_shares(monkeypatch, tmp_path):
    """No daemon runs, and none is installed."""
    monkeypatch.setattr(gpu_sharing, "_DEFAULT_PIPES", tmp_path / "default")
    for name in (PIPES, LOGS, VISIBLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """A daemon that writes down what it is told; returns how to read that."""
    said = tmp_path / "said"
    path = tmp_path / "nvidia-cuda-mps-control"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"with open({str(said)!r}, 'a') as file:\n"
        f"    told = sys.argv[1:] or [sys.stdin.read().strip()]\n"
        f"    print(*told, os.environ.get({VISIBLE!r}), os.environ[{PIPES!r}], file=file)\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(gpu_sharing, "_PROBE", "")
    return lambda: [tuple(line.rsplit(" ", 1)) for line in said.read_text().splitlines()]


@pytest.mark.parametrize(("n_cores", "on_gpu"), [(4, 4), (64, 10)])
def test_workers_are_as_many_as_cores_but_on_a_gpu_not_too_many(
    installed, monkeypatch, n_cores, on_gpu
):
    monkeypatch.setattr(gpu_sharing, "available_cores", lambda: n_cores)
    assert (default_workers("cpu"), default_workers("cuda")) == (n_cores, on_gpu)


def test_a_gpu_has_one_worker_where_it_cannot_be_shared():
    assert default_workers("cuda") == 1


@pytest.mark.parametrize(("device", "workers"), [("cpu", 4), ("cuda", 1)])
def test_nothing_is_started_where_nothing_is_shared(installed, device, workers, tmp_path):
    with shared_gpu(device, workers) as shares:
        assert not shares
    assert not (tmp_path / "said").exists()


def test_work_goes_on_where_no_daemon_is_installed():
    with shared_gpu("cuda", 4) as shares:
        assert not shares
        assert PIPES not in os.environ


def test_processes_started_inside_find_the_daemon_which_then_ends(installed):
    with shared_gpu("cuda", 4) as shares:
        assert shares
        told = [sys.executable, "-c", f"import os; print(os.environ[{PIPES!r}])"]
        folder = subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()
        assert installed() == [(STARTED, folder)]
    assert installed()[1] == (ENDED, folder)
    assert PIPES not in os.environ
    assert not os.path.exists(folder)


def test_the_daemon_ends_with_work_that_fails(installed, monkeypatch):
    monkeypatch.setenv(LOGS, "/somewhere")
    with pytest.raises(ZeroDivisionError), shared_gpu("cuda", 4):
        raise ZeroDivisionError
    assert [command for command, _ in installed()] == [STARTED, ENDED]
    assert (os.environ.get(PIPES), os.environ[LOGS]) == (None, "/somewhere")


def test_the_daemon_ends_where_one_is_interrupted_before_the_work(installed, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("torch.cuda.is_available", interrupt)
    with pytest.raises(KeyboardInterrupt), shared_gpu("cuda", 4):
        pytest.fail("the work began")
    assert [command for command, _ in installed()] == [STARTED, ENDED]


def test_the_choice_of_a_gpu_is_left_to_the_processes(installed, monkeypatch):
    monkeypatch.setenv(VISIBLE, "1")
    with shared_gpu("cuda", 4):
        assert os.environ[VISIBLE] == "1"
    assert installed()[0][0] == STARTED


def test_a_daemon_that_gives_no_context_is_not_used(installed, monkeypatch, caplog):
    monkeypatch.setattr(gpu_sharing, "_PROBE", "raise SystemExit(1)")
    with shared_gpu("cuda", 4) as shares:
        assert not shares
        assert PIPES not in os.environ
    assert [command for command, _ in installed()] == [STARTED, ENDED]
    assert "4 processes take turns on the GPU" in caplog.text


def test_a_daemon_that_does_not_start_is_not_used(tmp_path):
    path = tmp_path / "nvidia-cuda-mps-control"
    path.write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    path.chmod(0o700)
    with shared_gpu("cuda", 4) as shares:
        assert not shares


def test_a_daemon_that_is_only_spoken_of_does_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv(PIPES, str(tmp_path / "nowhere"))
    assert not can_share()


@pytest.mark.parametrize("how", ["environment", "default"])
def test_a_daemon_that_runs_already_is_left_alone(installed, how, monkeypatch, tmp_path):
    folder = tmp_path / how
    folder.mkdir()
    (folder / "control").touch()
    if how == "environment":
        monkeypatch.setenv(PIPES, str(folder))
    assert can_share()
    with shared_gpu("cuda", 4) as shares:
        assert shares
    assert not (tmp_path / "said").exists()


def test_the_real_daemon_serves_a_process(device, monkeypatch):
    if device.type != "cuda":
        pytest.skip("needs --device cuda")
    monkeypatch.setenv("PATH", "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/bin")
    if shutil.which("nvidia-cuda-mps-control") is None:
        pytest.skip("NVIDIA's MPS is not installed")
    # While a process computes, the daemon knows of a server that serves it.
    script = (
        "import subprocess, torch; print(int(torch.ones(3, device='cuda').sum()), flush=True); "
        "subprocess.run(['nvidia-cuda-mps-control'], input='get_server_list', text=True)"
    )
    with shared_gpu("cuda", 2) as shares:
        assert shares
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    total, *servers = done.stdout.split()
    assert total == "3"
    assert len(servers) == 1
    assert int(servers[0]) > 0
