"""The demo: clear when refusing, and what it writes can be used."""

import inspect
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from priornet.cli import app
from priornet.cli.demo import SyntheticPreset, demo
from priornet.experiments import synthetic

RUNNER = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})


def call(*arguments):
    return RUNNER.invoke(app, list(arguments))


@pytest.fixture
def short(monkeypatch):
    """The smoke preset, shorter still."""
    tiny = synthetic.Config(epochs=1, n_train=64, n_out=8, n_members=2, n_test=32, n_curve=11)
    monkeypatch.setitem(synthetic.PRESETS, "smoke", tiny)


def test_demo_writes_figure_and_results_and_prints_the_table(short, tmp_path):
    out = tmp_path / "new" / "folder"
    done = call("demo", "--preset", "smoke", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {"synthetic.png", "synthetic.json"}
    assert (out / "synthetic.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "synthetic.json").read_text())["preset"] == "smoke"
    for word in ("Truth", "ENSM", "EnD2", "NWPN", "RMSE", "NLL", "AUROC", "knowledge sd"):
        assert word in done.stdout
    assert str(out / "synthetic.png") in done.stdout.replace("\n", "")


def test_json_goes_to_stdout_alone_and_equals_the_file(short, tmp_path):
    done = call("demo", "--preset", "smoke", "--out", str(tmp_path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads((tmp_path / "synthetic.json").read_text())


def test_seed_reaches_the_experiment(short, tmp_path):
    done = call("demo", "--preset", "smoke", "--out", str(tmp_path), "--json", "--seed", "5")
    assert json.loads(done.stdout)["config"]["seed"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--preset", "quick"], "'quick' is not one of 'demo', 'paper', 'smoke'"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--sead", "1"], "No such option"),
    ],
)
def test_mistyped_input_is_refused_with_exit_code_two(arguments, message):
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


def test_folder_that_cannot_be_made_is_refused_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "run", lambda *_: pytest.fail("trained first"))
    (tmp_path / "file").write_text("")
    done = call("demo", "--out", str(tmp_path / "file" / "folder"))
    assert done.exit_code == 2
    assert "cannot write to" in done.output


def test_every_preset_can_be_chosen():
    assert [str(preset) for preset in SyntheticPreset] == list(synthetic.PRESETS)


def test_default_output_folder_is_ignored_by_git():
    default = inspect.signature(demo).parameters["out"].default
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text().splitlines()
    assert f"{default}/" in ignored
