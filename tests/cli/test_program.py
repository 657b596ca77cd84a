"""The program as a whole: no heavy imports, clear refusals, every command, tidy ends."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from typer.main import get_command

import priornet
from priornet.cli import app

# What a program needs a second or more to load; `benchmarks/startup.py` measures the time itself.
HEAVY = {"matplotlib", "numpy", "onnx", "pandas", "plotly", "pyarrow", "scipy", "sklearn", "torch"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["fit", "--help"],
        ["predict", "--help"],
        ["evaluate", "--help"],
        ["datasets", "--help"],
        ["export", "--help"],
        ["verify", "--help"],
    ],
)
def test_help_and_version_load_nothing_heavy(arguments):
    code = (
        "import sys; from priornet.cli import app\n"
        f"app({arguments}, standalone_mode=False)\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_imports_no_other():
    code = (
        "import sys; from priornet.cli import app\n"
        "app(['predict', '--help'], standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "priornet.cli.predict" in loaded
    others = {f"priornet.cli.{name}" for name in ("fit", "evaluate", "distill", "demo", "export")}
    assert not loaded & {*others, "priornet.demo", "priornet_paper"}


@pytest.mark.parametrize("arguments", [(), ("reproduce",)])
def test_lines_of_the_list_are_those_of_the_commands(arguments):
    group: Any = get_command(app)
    for name in arguments:
        group = group.commands[name].load()
    for name, command in group.commands.items():
        found = command.load().help
        assert command.help in (None, " ".join(found.split("\n\n")[0].split())), name
        assert command.name == name


def test_module_runs_as_a_program():
    command = [sys.executable, "-m", "priornet", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"priornet {priornet.__version__}\n"


def test_without_a_command_it_shows_the_help(call):
    done = call()
    assert done.exit_code == 2
    for name in ("fit", "predict", "evaluate", "distill", "demo"):
        assert name in done.output


def test_unknown_command_is_refused(call):
    done = call("fti")
    assert done.exit_code == 2
    assert "No such command" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "--qqq"), "No such option: --qqq. See `priornet fit --help`."),
        (("frobnicate",), "No such command 'frobnicate'. See `priornet --help`."),
        (("predict",), "Missing argument 'model'. See `priornet predict --help`."),
        (
            ("reproduce", "uci", "--preset", "nope"),
            "'nope' is not one of 'paper', 'beyond', 'smoke'. See `priornet reproduce uci --help`.",
        ),
    ],
)
def test_wrong_usage_is_one_line(call, arguments, message):
    done = call(*arguments)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    # Called through the program itself the path begins with its name, here with the test's.
    assert message.split(" See ")[0] in done.stderr
    assert "--help`" in done.stderr


def test_a_group_without_a_command_shows_its_help(call):
    done = call("reproduce")
    assert "uci" in done.output
    assert "Error" not in done.output


WRITING = """
import os, signal, sys
from priornet.cli.program import end_on_sigterm
from priornet.writing import whole_file

end_on_sigterm()
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    if os.fork() == 0:  # a process that is forked ends at once: it has nothing to tidy up
        os.kill(os.getpid(), signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.wait()[1]), *os.listdir("."), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
"""

STUCK = """
import ctypes, os, signal
from priornet.cli.program import end_on_sigterm

end_on_sigterm(grace=0.1)
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
libc.pthread_mutex_lock(mutex)
while True:
    try:
        print("waiting", flush=True)
        libc.pthread_mutex_lock(mutex)  # for ever
    except SystemExit:  # it came before that
        pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a lock of Linux's C library")
def test_sigterm_ends_a_process_that_waits_in_a_library():
    program = [sys.executable, "-c", STUCK]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 143
        assert process.stderr.read() == b"Error: Terminated.\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_sigterm_unwinds_this_process_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WRITING, "a"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout.startswith(f"{-signal.SIGTERM} .priornet-")
    assert os.listdir(tmp_path) == []


def test_sigterm_ends_a_command_as_an_interruption_does(models, table, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("prediction,lower,upper,total,data,knowledge,in_domain,verdict\n")
    program = [sys.executable, "-m", "priornet", "predict", models / "one", "-", "--out", out, "-q"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        header, *rows = table.to_csv(index=False).encode().splitlines(keepends=True)
        process.stdin.write(header + b"".join(rows) * 800)  # more than it reads at once; no end
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while len(os.listdir(tmp_path)) == 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(signal.SIGTERM)
        process.stdin.close()  # until then it waits in Arrow, which cannot be interrupted
        assert process.wait(120) == 143
        assert process.stderr.read() == b"Error: Terminated.\n"
    assert os.listdir(tmp_path) == ["out.csv"]
    assert out.read_text() == "prediction,lower,upper,total,data,knowledge,in_domain,verdict\n"
