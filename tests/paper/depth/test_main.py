"""``python -m priornet_paper.depth``: for machines without the command line tool."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from _workers import worker_killed_after
from priornet.evaluation.results import read_results
from priornet_paper.depth.__main__ import main, parse
from priornet_paper.depth.options import Options, in_options

SMALL = ("--set", "height=32", "--set", "width=64", "--set", "n_decoder=16", "--set", "epochs=1")
UNTAUGHT = ("--weights", "none", "--set", "norm=batch")


@pytest.fixture
def call(photographs, tmp_path, capsys):
    def run(*options):
        common = ("--dataset", "nyu", "--data", str(photographs), "--out", str(tmp_path))
        code = main((*common, "--preset", "smoke", *SMALL, *UNTAUGHT, *options))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_results_are_written_and_told(call, tmp_path):
    code, out, err = call("--methods", "Single,DER")
    assert code == 0
    assert err == ""
    assert "Single.0.0         epoch   1/1  loss" in out
    assert "DER          delta1 0." in out
    assert list(read_results(tmp_path / "nyu.smoke.json")["methods"]) == ["Single", "DER"]


def test_methods_come_one_after_the_other(call, tmp_path):
    call("--methods", "DER")
    code, out, _ = call("--methods", "Single")
    assert code == 0
    assert "DER.0" not in out
    assert list(read_results(tmp_path / "nyu.smoke.json")["methods"]) == ["Single", "DER"]


def test_time_that_is_up_is_no_failure(call, tmp_path):
    code, out, _ = call("--methods", "Single", "--minutes", "0")
    assert code == 0
    assert "The time is up. What is finished is kept; the same command goes on." in out
    assert not (tmp_path / "nyu.smoke.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "Bagging"), 'unknown method "Bagging"'),
        (("--set", "epoch=1"), '"epoch=1" is not NAME=VALUE'),
        (("--seeds", "a"), "seeds must be numbers"),
        (("--devices", "2", "--workers", "2"), "not both"),
        (("--device", "tpu"), 'unknown device "tpu"; choose from: cpu, cuda'),
        (("--foreign", "church"), '--foreign must be NAME=PATH; got "church"'),
        (("--foreign", "test=church"), 'a set cannot be called "test"'),
        (("--set", "norm=frozen"), 'norm="frozen" keeps the statistics of ImageNet weights'),
        (("--weights", "nowhere.safetensors", "--methods", "Single"), "nowhere.safetensors"),
    ],
)
def test_what_cannot_be_run_is_one_line(call, options, message):
    code, _, err = call(*options)
    assert code == 2
    assert err.startswith("Error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_picture_without_depth_names_the_option(call, photographs, tmp_path):
    copy = shutil.copytree(photographs, tmp_path / "copy")
    (copy / "nyu_small" / "depth" / "0002.png").unlink()
    code, _, err = call("--methods", "DD", "--data", str(copy))
    assert code == 2
    assert "0002.png: this depth file is missing; with `--missing skip` such images are left" in err
    code, _, _ = call("--methods", "DD", "--data", str(copy), "--missing", "skip")
    assert code == 0


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('with `missing="skip"` such frames', "with `--missing skip` such frames"),
        ("Name the list with `split`.", "Name the list with `--split`."),
        ("`n_images` stays, for it is given with --set", None),
    ],
)
def test_messages_name_the_options_of_the_command_line(message, shown):
    assert in_options(message) == (shown or message)


def test_weights_are_those_of_imagenet_unless_told(call):
    assert parse(["--data", "."]).weights == "imagenet"


def test_a_failure_of_the_machine_is_another_code(call, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "nyu.json")

    monkeypatch.setattr("priornet_paper.runs.store.write_results", full)
    code, _, err = call("--methods", "DD")
    assert code == 1
    assert "No space left" in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_a_worker_that_is_killed_is_one_line(call, tmp_path):
    options = ("--methods", "DD,Single,DER", "--set", "epochs=3")
    with worker_killed_after(".parts/*/weights/*.safetensors", tmp_path) as kept:
        code, _, err = call(*options, "--workers", "2")
    assert code == 1
    assert err.startswith("Error: a worker process was lost (killed, or out of memory) during: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "nyu.smoke.json").exists()
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert before
    code, _, err = call(*options)
    assert (code, err) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in kept} == before


def test_a_gpu_that_is_not_there_is_one_line(call, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = call("--methods", "DD", "--device", "cuda")
    assert (code, err) == (2, "Error: --device cuda: torch finds no CUDA device here.\n")


BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors might"


@pytest.mark.parametrize("kind", [RuntimeError, torch.AcceleratorError])
def test_a_gpu_that_others_hold_is_one_line(call, tmp_path, monkeypatch, kind):
    class Busy:
        def __init__(self, **_):
            pass

        def launch(self):
            raise kind(BUSY)

    monkeypatch.setattr("priornet_paper.depth.machine._fabric_class", lambda: Busy)
    code, _, err = call("--methods", "DD")
    assert code == 1
    assert err.startswith("Error: the GPU is not available now (CUDA error: CUDA-capable device(s)")
    assert "other programs hold it" in err
    assert "use --device cpu" in err
    assert err.count("\n") == 1


def test_nothing_but_the_necessary_is_imported():
    """Check imports for a GPU machine with torch, NumPy, Pillow, safetensors and Lightning."""
    forbidden = ("pandas", "pyarrow", "plotly", "matplotlib", "typer", "rich", "h5py", "lmdb")
    code = (
        "import sys\n"
        "import priornet_paper.depth.run, priornet_paper.depth.__main__\n"
        "import priornet.depth.images.opening, priornet_paper.depth.train\n"
        f"print(*(m for m in {forbidden} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


WITHOUT_TOOLS = """
import sys

sys.modules.update(dict.fromkeys({blocked}))  # importing these fails
from priornet_paper.depth.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_smoke_preset_runs_without_the_tools_of_the_command_line(photographs, tmp_path):
    blocked = ["typer", "click", "rich", "plotly", "pandas", "pyarrow", "matplotlib", "sklearn"]
    options = ["--data", str(photographs), "--preset", "smoke", "--methods", "single,endd"]
    options += [*SMALL, *UNTAUGHT, "--out", str(tmp_path)]
    command = [sys.executable, "-c", WITHOUT_TOOLS.format(blocked=blocked), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(read_results(tmp_path / "nyu.smoke.json")["methods"]) == ["Single", "EnD2"]


def test_both_command_lines_show_the_same_options(capsys):
    from _commands import RUNNER
    from priornet.cli import app

    with pytest.raises(SystemExit):
        main(["--help"])
    shown = [capsys.readouterr().out, RUNNER.invoke(app, ["reproduce", "depth", "--help"]).output]
    words = ["".join(filter(str.isalnum, text)) for text in shown]
    for option in fields(Options):
        for text in words:
            assert "".join(filter(str.isalnum, option.metadata["help"])) in text


@pytest.mark.slow
def test_two_processes_share_every_batch(photographs, tmp_path, capsys):
    options = ["--dataset", "nyu", "--data", str(photographs), "--preset", "smoke", *SMALL]
    options += ["--methods", "Single", "--out"]
    assert main((*options, str(tmp_path / "1"), "--devices", "1")) == 0
    alone = capsys.readouterr().out
    command = [sys.executable, "-m", "priornet_paper.depth", *options]
    together = subprocess.run(
        [*command, str(tmp_path / "2"), "--devices", "2"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert together.returncode == 0, together.stderr
    found = []
    for n, out in (("1", alone), ("2", together.stdout)):
        assert out.count("results:") == 1
        assert out.count("epoch   1/1") == 1
        results = read_results(tmp_path / n / "nyu.smoke.json")
        found.append(results["methods"]["Single"]["training"][0][0]["losses"])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def losses_of(folder):
    methods = read_results(folder / "nyu.smoke.json")["methods"]
    return {name: scores["training"][0][0]["losses"] for name, scores in methods.items()}


def on_machines(*commands):
    """Run a command on each of several "machines" that share every batch; what they said.

    They cannot hang: all are killed when one of them takes too long.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    running = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | common | {"NODE_RANK": str(rank)},
        )
        for rank, command in enumerate(commands)
    ]
    try:
        said = [process.communicate(timeout=600)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert [process.returncode for process in running] == [0] * len(running), "\n".join(said)
    return said


@pytest.mark.slow
def test_two_machines_share_every_batch(photographs, tmp_path, capsys):
    """Run on one machine with a folder and a finished method, and on one with nothing."""
    options = ["--dataset", "nyu", "--data", str(photographs), "--preset", "smoke", *SMALL]
    options += ["--methods", "Single,DER,EnD", "--set", "student_start=imagenet", "--out"]
    alone, first, second = (tmp_path / name for name in ("alone", "first", "second"))
    assert main((*options, str(alone))) == 0
    capsys.readouterr()
    kept = Path(".parts", "nyu.smoke")
    (first / kept / "weights").mkdir(parents=True)
    for name in ("Single.0.json", "weights/Single.0.0.safetensors"):
        shutil.copy(alone / kept / name, first / kept / name)
    command = [sys.executable, "-m", "priornet_paper.depth", "--nodes", "2", *options]
    said = on_machines([*command, str(first)], [*command, str(second)])
    assert said[0].count("epoch   1/1") == 3
    assert "Single.0.0" not in said[0]
    assert "epoch" not in said[1]
    assert "results:" not in said[1]
    assert not second.exists()
    expected = losses_of(alone)
    assert list(expected) == ["Single", "DER", "EnD"]
    for name, losses in losses_of(first).items():
        assert losses == pytest.approx(expected[name], rel=1e-5)
