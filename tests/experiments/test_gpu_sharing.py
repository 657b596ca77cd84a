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

from priornet.experiments import gpu_sharing
from priornet.experiments.gpu_sharing import can_share, shared_gpu, usual_workers

PIPES = "CUDA_MPS_PIPE_DIRECTORY"


@pytest.fixture(autouse=True)
def nobody_shares(monkeypatch, tmp_path):
    """No daemon runs, and none is installed."""
    monkeypatch.setattr(gpu_sharing, "_USUAL_PIPES", tmp_path / "usual")
    monkeypatch.delenv(PIPES, raising=False)
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
        f"    print(*told, os.environ[{PIPES!r}], file=file)\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(gpu_sharing, "_PROBE", "")
    return lambda: [tuple(line.rsplit(" ", 1)) for line in said.read_text().splitlines()]


def test_a_cpu_has_a_worker_for_every_core():
    assert usual_workers("cpu", 7) == 7


def test_a_gpu_has_one_worker_unless_it_can_be_shared(installed, tmp_path):
    assert (usual_workers("cuda", 4), usual_workers("cuda", 64)) == (4, 10)
    (tmp_path / "nvidia-cuda-mps-control").unlink()
    assert usual_workers("cuda", 4) == 1


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
        assert installed() == [("-d", folder)]
    assert installed()[1] == ("quit -t 10", folder)
    assert PIPES not in os.environ
    assert not os.path.exists(folder)


def test_the_daemon_ends_with_work_that_fails(installed):
    with pytest.raises(ZeroDivisionError), shared_gpu("cuda", 4):
        raise ZeroDivisionError
    assert [command for command, _ in installed()] == ["-d", "quit -t 10"]
    assert PIPES not in os.environ


def test_a_daemon_that_gives_no_context_is_not_used(installed, monkeypatch):
    monkeypatch.setattr(gpu_sharing, "_PROBE", "raise SystemExit(1)")
    with shared_gpu("cuda", 4) as shares:
        assert not shares
        assert PIPES not in os.environ
    assert [command for command, _ in installed()] == ["-d", "quit -t 10"]


def test_a_daemon_that_does_not_start_is_not_used(tmp_path):
    path = tmp_path / "nvidia-cuda-mps-control"
    path.write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    path.chmod(0o700)
    with shared_gpu("cuda", 4) as shares:
        assert not shares


@pytest.mark.parametrize("how", ["environment", "usual place"])
def test_a_daemon_that_runs_already_is_left_alone(installed, how, monkeypatch, tmp_path):
    if how == "environment":
        monkeypatch.setenv(PIPES, "/somewhere")
    else:
        (tmp_path / "usual").mkdir()
        (tmp_path / "usual" / "control").touch()
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
    script = "import torch; print(int(torch.ones(3, device='cuda').sum()))"
    with shared_gpu("cuda", 2) as shares:
        assert shares
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "3"
