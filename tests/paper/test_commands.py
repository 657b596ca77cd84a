"""The paper's experiments from the command line: what they write can be used."""

import json

import pytest

from priornet_paper.synthetic import config, run
from priornet_paper.synthetic.command import Preset


@pytest.fixture
def short(monkeypatch):
    """The smoke preset, shorter still."""
    tiny = config.Config(
        n_runs=2, epochs=1, n_train=64, n_out=8, n_members=2, n_noises=1, n_test=32, n_curve=11
    )
    monkeypatch.setitem(config.PRESETS, "smoke", tiny)


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_synthetic_writes_results_and_figure_and_prints_what_it_measured(short, call, tmp_path):
    done = call("reproduce", "synthetic", "--preset", "smoke", "--out", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert files(tmp_path / "new") == {
        "synthetic.json",
        "synthetic-panels.png",
        "synthetic-panels.svg",
    }
    results = json.loads((tmp_path / "new/synthetic.json").read_text())
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.split()}
    for name, found in {**results["methods"], **results["variants"]}.items():
        assert lines[name][1:4] == [
            f"{found['rmse']['mean']:.3f}",
            f"{found['nll']['mean']:.3f}",
            f"{found['data_std_error_median']['mean']:.0%}",
        ]
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()[:-2]) <= 80
    assert f"Results: {tmp_path / 'new/synthetic.json'}" in done.stdout
    assert "100%" in done.stderr  # the bar


def test_json_goes_to_stdout_alone_and_equals_the_file(short, call, tmp_path):
    arguments = ("--preset", "smoke", "--seed", "5", "--out", tmp_path, "--json")
    done = call("reproduce", "synthetic", *arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found == json.loads((tmp_path / "synthetic.json").read_text())
    assert (found["preset"], found["config"]["seed"]) == ("smoke", 5)


def test_figures_may_have_a_folder_of_their_own(call, tmp_path):
    done = call("reproduce", "behaviours", "--out", tmp_path / "a", "--figures", tmp_path / "b")
    assert done.exit_code == 0, done.output
    assert files(tmp_path / "a") == {"behaviours.json"}
    assert files(tmp_path / "b") == {"behaviours.png", "behaviours.svg"}
    assert json.loads((tmp_path / "a/behaviours.json").read_text())["figure"] == "behaviours"


def test_presets_are_those_of_the_experiment():
    assert {str(preset) for preset in Preset} == set(config.PRESETS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["synthetic", "--preset", "demo"], "'demo' is not one of 'paper', 'smoke'"),
        (["synthetic", "--seed", "-1"], "--seed"),
        (["sythetic"], "No such command"),
    ],
)
def test_mistyped_input_is_refused_with_exit_code_two(call, arguments, message):
    done = call("reproduce", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


def test_folder_that_cannot_be_made_is_refused_before_training(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "run", lambda *_: pytest.fail("trained first"))
    (tmp_path / "file").write_text("")
    said = refused("reproduce", "synthetic", "--out", tmp_path / "file" / "folder")
    assert said == f"{tmp_path / 'file' / 'folder'}: cannot write there: Not a directory."
