"""Files are exported whole, with one line on their inputs and outputs; else exit code 2."""

import json
import sys

import onnx
import pytest

from priornet.cli.outputs import ONNX, PROGRAM


def test_export_writes_both_files_and_lists_inputs_and_outputs(call, models, tmp_path):
    graph, program = tmp_path / "new" / "m.onnx", tmp_path / "m.pt2"
    done = call("export", models / "single", "--onnx", graph, "--torch-export", program)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "Inputs: x, colour, hole"
    assert "Outputs: mean, lower, upper, total_variance" in done.stdout
    assert f"Written: {graph}\nWritten: {program}\n" in done.stdout
    assert [one.name for one in onnx.load(graph).graph.input] == ["x", "colour", "hole"]
    assert PROGRAM.is_own(program)
    assert not PROGRAM.is_own(graph)
    assert ONNX.is_own(graph)


def test_json(call, models, tmp_path):
    done = call(
        *("export", models / "two", "--onnx", tmp_path / "m.onnx", "--coverage", 0.8),
        *("--opset", 20, "--json"),
    )
    summary = json.loads(done.stdout)
    assert summary["coverage"] == 0.8
    assert summary["inputs"] == ["x", "colour", "hole"]
    assert "knowledge_variance" in summary["outputs"]
    assert onnx.load(tmp_path / "m.onnx").opset_import[0].version == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "name what to write: --onnx FILE, --torch-export FILE, or both."),
        (["--onnx", "{}", "--opset", "9"], "opset 9 is too old; choose one from 18 to "),
        (["--onnx", "{}", "--coverage", "1"], "`coverage` must lie between 0 and 1; got 1."),
        (
            ["--onnx", "{}", "--coverage", "0.999", "--interval", "conformal"],
            "/one: coverage 0.999 needs at least 999 calibration rows; 12 were held out; fit again "
            "with more rows, or with a larger --calibration.",
        ),
    ],
)
def test_wrong_export_settings_are_refused(refused, models, tmp_path, options, message):
    path = tmp_path / "m.onnx"
    assert message in refused("export", models / "one", *(o.format(path) for o in options))
    assert not path.exists()


def test_no_model_no_folder_no_permission(refused, models, tmp_path):
    assert "no such folder" in refused("export", tmp_path / "none", "--onnx", tmp_path / "m.onnx")
    assert "it is a folder" in refused("export", models / "one", "--onnx", tmp_path)


def test_missing_extra_names_the_command(refused, models, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = refused("export", models / "one", "--onnx", tmp_path / "m.onnx")
    assert message.endswith("install it with `pip install '.[onnx]'` in a checkout of priornet.")


def test_two_files_of_one_name_are_refused(refused, models, tmp_path):
    path, same = tmp_path / "m", f"{tmp_path}/./m"
    message = refused("export", models / "one", "--onnx", path, "--torch-export", same)
    assert message.endswith("--onnx and --torch-export name the same file; name two.")
    assert not path.exists()


def test_refused_export_leaves_no_folder(refused, models, tmp_path):
    refused("export", models / "one", "--onnx", tmp_path / "new" / "m.onnx", "--opset", "9")
    assert list(tmp_path.iterdir()) == []
