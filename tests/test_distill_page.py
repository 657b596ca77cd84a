"""The commands and code of docs/distill.md work when typed."""

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from priornet.cli import app
from priornet.distill import FaithfulnessWarning
from priornet.tables.diabetes import load_diabetes

PAGE = (Path(__file__).parents[1] / "docs" / "distill.md").read_text()

MINE = """
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

table = pd.read_csv("patients.csv")
inputs = table.drop(columns="progression")
forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
forest.fit(inputs, table["progression"])
"""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("quick_students")
def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FaithfulnessWarning)  # a forest on few rows: as it may be
        for number, block in enumerate(blocks("python"), start=1):
            exec(compile(block, f"docs/distill.md block {number}", "exec"), namespace)
    student = namespace["student"]
    assert namespace["found"].inside.r2 > 0.8
    assert (student.predict_uncertainty(namespace["X"]).knowledge_variance > 0).all()
    assert len(pd.read_parquet("questions.parquet")) == 20_000
    slopes = [weight.grad for weight in namespace["network"].parameters()]
    assert all(bool(slope.isfinite().all()) for slope in slopes)
    assert any(float(slope.abs().max()) > 0 for slope in slopes)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the page names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    X, y = load_diabetes()
    table = (
        pd.DataFrame(np.asarray(X)[:120]).add_prefix("x").assign(progression=np.asarray(y)[:120])
    )
    table.to_csv("patients.csv", index=False)
    Path("mine.py").write_text(MINE)
    inputs = table.drop(columns="progression")
    means = {f"mean_{m}": inputs["x0"] * 10 + m for m in range(3)}
    answers = inputs.assign(**means, **{f"variance_{m}": 4.0 for m in range(3)})
    answers.to_parquet("answers.parquet")
    fit = "fit patients.csv --target progression --method ensemble --out ensemble/ --epochs 2"
    assert CliRunner().invoke(app, shlex.split(fit)).exit_code == 0
    return tmp_path


def test_commands_run_one_after_the_other(folder):
    lines = "".join(blocks("bash")).splitlines()
    commands = [line for line in lines if line.startswith("priornet ")]
    assert len(commands) >= 4
    for command in commands:
        arguments = shlex.split(command, comments=True)[1:]
        if arguments[0] == "distill":
            arguments += ["--epochs", "2"]  # the command as it stands, for a moment
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{command}\n{done.output}"
    assert (folder / "scored.csv").exists()
