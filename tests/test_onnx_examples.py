"""The commands and code of docs/export.md work when typed; the examples score as the model does."""

import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import priornet
from _onnx import short_encoder
from priornet.cli import app
from priornet.export import Comparison, outputs_of, to_onnx

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "export.md").read_text()
NODE = shutil.which("node")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model of numbers, missing values, labels, dates, decimal commas; its file; and rows."""
    folder = tmp_path_factory.mktemp("exported")
    rng = np.random.default_rng(0)
    n = 150
    table = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "colour": rng.choice(["red", "blue, light", 'so-called "green"'], n),
            "day": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 50, n), "D"),
            "is_new": rng.random(n) < 0.5,
            "weight": [f"{kg:.2f}".replace(".", ",") for kg in rng.normal(70, 9, n)],
        }
    )
    y = pd.DataFrame({"a": rng.normal(size=n), "b": 1e4 + rng.normal(size=n)})
    model = priornet.EvidentialRegressor(hidden=(16,), epochs=3, random_state=0).fit(table, y)
    to_onnx(model, folder / "model.onnx")
    rows = table.head(40).astype({"colour": object})
    rows.loc[3, "colour"] = "unheard of"
    rows.loc[4:7, "weight"] = ["-", "#N/A", " . ", "71"]
    rows.to_csv(folder / "rows.csv", index=False)
    return model, rows, folder


def assert_scores(exported, command):
    model, rows, folder = exported
    done = subprocess.run(
        [*command, folder / "model.onnx", folder / "rows.csv"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    scored = pd.read_csv(io.StringIO(done.stdout))
    expected = outputs_of(model, rows, {"coverage": 0.9, "interval": "predictive"})
    found: dict[str, Any] = {}
    for name in expected:
        of_target = [column for column in scored if column.startswith(f"{name}_")]
        found[name] = scored[name if name in scored else of_target].to_numpy()
    comparison = Comparison()
    comparison.add(expected, found)
    assert comparison.n_rows == 40
    assert comparison.holds, comparison.worst


def test_python(exported):
    assert_scores(exported, [sys.executable, EXAMPLES / "onnx_python.py"])


def test_python_of_a_table_without_rows(exported):
    _, rows, folder = exported
    rows.head(0).to_csv(folder / "empty.csv", index=False)
    command = [sys.executable, EXAMPLES / "onnx_python.py", "model.onnx", "empty.csv"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("mean_0,mean_1,lower_0,")
    assert len(done.stdout.splitlines()) == 1


def test_node(exported):
    folder = EXAMPLES / "onnx_node"
    if NODE is None:
        pytest.skip("node is not installed")
    if not (folder / "node_modules" / "onnxruntime-node").is_dir():
        pytest.skip("run `npm install --ignore-scripts` in examples/onnx_node first")
    assert_scores(exported, [NODE, folder / "score.mjs"])


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_python_blocks_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]), short_encoder():
        for number, block in enumerate(blocks("python"), start=1):
            exec(compile(block, f"docs/export.md block {number}", "exec"), namespace)
    written = {"model.onnx", "model.pt2", "depth.onnx", "net.safetensors"}
    assert {path.name for path in tmp_path.iterdir()} == written
    expected: Any = namespace["scores"]
    found: Any = namespace["again"]
    np.testing.assert_allclose(found.detach(), expected["mean"], rtol=1e-6)


def test_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"area": rng.normal(size=200), "town": rng.choice(["Graz", "Linz"], 200)})
    table.to_csv("new.csv", index=False)
    table.assign(price=table["area"]).to_csv("houses.csv", index=False)
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("priornet ")]
    assert {command[0] for command in commands} == {"fit", "export", "verify"}
    for command in commands:
        quick = ["--method", "single"] if command[0] == "fit" else []
        done = CliRunner().invoke(app, [*command, *quick])
        assert done.exit_code == 0, done.output
