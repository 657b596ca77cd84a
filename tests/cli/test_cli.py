"""The program as a whole: quick to answer, clear when refusing, names kept for what will come."""

import resource
import subprocess
import sys

import pytest

import priornet

# A program of one command that does nothing, with an option before it as ours has: --version.
EMPTY = """
import typer
app = typer.Typer()
app.command("nothing")(lambda: None)

@app.callback()
def main(version: bool = False):
    pass

app(["nothing", "--help"], standalone_mode=False)
"""


def processor_seconds(code):
    """What a process of its own uses for the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def is_quick(seconds):
    """Half a second, or half as much again as an empty program takes now.

    Processor time grows too where a machine is so busy that its caches are cold.
    """
    return seconds < 0.5 or seconds < 1.5 * processor_seconds(EMPTY)


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
def test_help_and_version_answer_at_once_without_heavy_imports(arguments):
    code = (
        "import sys; from priornet.cli import app\n"
        f"app({arguments}, standalone_mode=False)\n"
        "heavy = {'torch', 'numpy', 'pandas', 'pyarrow', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    # The best of several: other work on the machine only ever adds to it.
    seconds = [processor_seconds(code)]
    while len(seconds) < 5 and not is_quick(seconds[-1]):
        seconds.append(processor_seconds(code))
    assert is_quick(seconds[-1]), seconds


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
