"""The examples that train a network do what they say, each within a minute."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def load():
    """An example as a module: nothing is loaded again that this process has."""

    def from_file(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return from_file


@pytest.fixture
def lines_of(monkeypatch, capsys):
    """Return what an example prints when it is called with some arguments."""
    import matplotlib.pyplot as plt

    def call(example, *arguments):
        monkeypatch.setattr(sys, "argv", [example.__name__, *map(str, arguments)])
        with torch.random.fork_rng(devices=[]):
            example.main()
        return capsys.readouterr().out.splitlines()

    yield call
    plt.close("all")


def run(name, framework):
    """Return what an example prints in a process of its own, whose framework may be heavy."""
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not here")
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def after(word, line):
    """The number behind a word."""
    found = re.search(rf"{word} (-?[\d.]+)", line)
    assert found, f"no {word} in: {line}"
    return float(found[1])


def test_own_network(load, lines_of, monkeypatch):
    example = load("own_network")
    train = example.train

    def half(model, loss_of, steps=300):  # of the steps are enough
        return train(model, loss_of, steps // 2)

    monkeypatch.setattr(example, "train", half)
    bright, dark = (line.split()[2:] for line in lines_of(example)[-2:])
    for knowledge in (2, 5):  # of the ensemble, and of its student
        assert float(dark[knowledge]) > 2 * float(bright[knowledge])
    assert abs(float(bright[4]) - 0.2) < 0.05  # the student's data sd; the ruler's is 0.2


def test_lightning_module():
    score, inside, outside = run("lightning_module", "lightning")
    assert after("nll", score) < -0.8
    assert abs(after("data sd", inside) - 0.1) < 0.02
    assert after("knowledge sd", outside) > 10 * after("knowledge sd", inside)


def test_transformers_encoder():
    score, known, unknown = run("transformers_encoder", "transformers")
    assert after("rmse", score) < 0.2
    assert after("knowledge sd", unknown) > 10 * after("knowledge sd", known)


def test_time_series(load, lines_of, tmp_path, monkeypatch):
    example = load("time_series")
    monkeypatch.setattr(example.train, "__defaults__", (400,))  # half of the steps are enough
    known, drifted, _ = lines_of(example, "--out", tmp_path / "out.png")
    assert after("rmse", known) < 0.3
    assert after("knowledge sd", drifted) > 10 * after("knowledge sd", known)
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_two_targets(load, lines_of, tmp_path):
    *throws, _ = lines_of(load("two_targets"), "--out", tmp_path / "out.png")
    *inside, outside = (after("knowledge sd", line) for line in throws)
    assert outside > 5 * max(inside)
    for line in throws[:-1]:
        assert after("of the noise", line) > 0.75
    assert (tmp_path / "out.png").stat().st_size > 10_000


def test_active_learning(load, lines_of, tmp_path):
    lines = lines_of(load("active_learning"), "--seeds", 2, "--out", tmp_path / "out.png")
    last = {line.split()[0]: float(line.split()[-1]) for line in lines[:3]}
    assert last["knowledge"] < last["random"]
    assert (tmp_path / "out.png").stat().st_size > 10_000
