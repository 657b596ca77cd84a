"""The examples that train a network do what they say, each within a minute."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments):
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def after(word, line):
    """The number behind a word."""
    found = re.search(rf"{word} (-?[\d.]+)", line)
    assert found, f"no {word} in: {line}"
    return float(found[1])


def test_own_network():
    bright, dark = (line.split()[2:] for line in run("own_network").splitlines()[-2:])
    for knowledge in (2, 5):  # of the ensemble, and of its student
        assert float(dark[knowledge]) > 2 * float(bright[knowledge])
    assert abs(float(bright[4]) - 0.2) < 0.05  # the student's data sd; the ruler's is 0.2


def test_lightning_module():
    pytest.importorskip("lightning")
    score, inside, outside = run("lightning_module").splitlines()
    assert after("nll", score) < -0.8
    assert abs(after("data sd", inside) - 0.1) < 0.02
    assert after("knowledge sd", outside) > 10 * after("knowledge sd", inside)


def test_transformers_encoder():
    pytest.importorskip("transformers")
    score, known, unknown = run("transformers_encoder").splitlines()
    assert after("rmse", score) < 0.2
    assert after("knowledge sd", unknown) > 10 * after("knowledge sd", known)


def test_time_series(tmp_path):
    known, drifted, _ = run("time_series", "--out", tmp_path / "out.png").splitlines()
    assert after("rmse", known) < 0.3
    assert after("knowledge sd", drifted) > 10 * after("knowledge sd", known)
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_two_targets(tmp_path):
    *throws, _ = run("two_targets", "--out", tmp_path / "out.png").splitlines()
    *inside, outside = (after("knowledge sd", line) for line in throws)
    assert outside > 5 * max(inside)
    for line in throws[:-1]:
        assert after("of the noise", line) > 0.75
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_active_learning(tmp_path):
    lines = run("active_learning", "--seeds", 2, "--out", tmp_path / "out.png").splitlines()
    last = {line.split()[0]: float(line.split()[-1]) for line in lines[:3]}
    assert last["knowledge"] < last["random"]
    assert (tmp_path / "out.png").stat().st_size > 10_000
