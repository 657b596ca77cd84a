"""The demo: clear when refusing, and what it writes can be used."""

import base64
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from priornet import demo as studies
from priornet.cli import app
from priornet.cli.demo import Preset, demo

RUNNER = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})


def call(*arguments):
    return RUNNER.invoke(app, list(arguments))


@pytest.fixture(scope="module")
def short():
    """The smoke presets, shorter still."""
    with pytest.MonkeyPatch.context() as patch:
        few: Any = {"epochs": 1, "student_epochs": 1, "n_members": 2}
        tiny = studies.CurveConfig(n_train=64, n_out=8, n_test=32, n_curve=11, **few)
        patch.setitem(studies.CURVE_PRESETS, "smoke", tiny)
        patch.setitem(studies.TABLE_PRESETS, "smoke", studies.TableConfig(**few))
        yield


@pytest.fixture(scope="module")
def shown(short, tmp_path_factory):
    """The folder and the output of one run."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return out, call("demo", "--preset", "smoke", "--out", str(out))


def test_demo_writes_reports_figure_and_results(shown):
    out, done = shown
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "diabetes-endd.html",
        "diabetes.json",
        "synthetic.json",
        "synthetic.png",
    }
    assert (out / "synthetic.png").read_bytes().startswith(b"\x89PNG")
    for name in ("synthetic", "diabetes"):
        results = json.loads((out / f"{name}.json").read_text())
        assert (results["dataset"], results["preset"]) == (name, "smoke")


def test_demo_prints_both_tables_and_ends_with_the_path_of_the_report(shown):
    out, done = shown
    for word in ("Truth", "ENSM", "EnD2", "NWPN", "DER", "Single", "RMSE", "NLL", "AUROC"):
        assert word in done.stdout
    assert done.stdout.count("knowledge sd") == 4
    assert f"Report: {out / 'report.html'}" in done.stdout.splitlines()[-1]
    assert max(len(line.rstrip()) for line in done.stdout.splitlines()[:-3]) <= 80


def test_numbers_in_the_table_are_those_of_the_file(shown):
    out, done = shown
    method = json.loads((out / "diabetes.json").read_text())["methods"]["DER"]
    (row,) = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["DER"]]
    assert row[1:4] == [
        f"{method['rmse']['mean']:.1f}",
        f"{method['nll']['mean']:.3f}",
        f"{method['coverage']['0.9']['mean']:.0%}",
    ]
    assert row[-1] == f"{method['ood_auc']['variance_of_mean']['mean']:.3f}"
    (single,) = [line.split() for line in done.stdout.splitlines() if line.startswith("  Single")]
    assert single[4:] == ["-", "-", "-"]


def test_comparison_shows_the_methods_and_the_figure(shown):
    out, _ = shown
    page = (out / "report.html").read_text()
    for name in ("Ensemble", "EnD²", "NWPN", "DER", "Single"):
        assert f"{name}</" in page
    assert base64.b64encode((out / "synthetic.png").read_bytes()).decode() in page


def test_progress_goes_to_stderr(shown):
    _, done = shown
    for what in ("prior net", "ensemble", "endd"):
        assert what in done.stderr
    assert "epoch" not in done.stdout


def test_json_goes_to_stdout_alone_and_equals_the_files(short, tmp_path):
    done = call("demo", "--preset", "smoke", "--out", str(tmp_path), "--json", "--seed", "5")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    for name in ("synthetic", "diabetes"):
        assert found[name] == json.loads((tmp_path / f"{name}.json").read_text())
        assert found[name]["config"]["seed"] == 5
    assert Path(found["report"]) == tmp_path / "report.html"


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
    monkeypatch.setattr(studies, "run", lambda *_: pytest.fail("trained first"))
    (tmp_path / "file").write_text("")
    done = call("demo", "--out", str(tmp_path / "file" / "folder"))
    assert done.exit_code == 2
    assert (
        done.stderr
        == f"Error: {tmp_path / 'file' / 'folder'}: cannot write there: Not a directory.\n"
    )


def test_every_preset_can_be_chosen():
    assert [str(preset) for preset in Preset] == list(studies.CURVE_PRESETS)
    assert set(studies.TABLE_PRESETS) == {*studies.CURVE_PRESETS} - {"paper"}


def test_default_output_folder_is_ignored_by_git():
    default = inspect.signature(demo).parameters["out"].default
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text().splitlines()
    assert f"{default}/" in ignored
