"""The program as a whole: answers without heavy imports, clear refusals, commands of every name."""

import subprocess
import sys
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
        (("fit", "--no-such"), "No such option: --no-such. See `priornet fit --help`."),
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
