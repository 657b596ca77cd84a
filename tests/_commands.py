"""A table, models trained on it in a moment, and a way to call the program."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from _depth_files import write_sets
from priornet.cli import app

RUNNER = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
_NOBODY = 65534


def make_table(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    x, colour = rng.normal(size=n_rows), rng.choice(["red", "blue", "green"], n_rows)
    hole = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
    y = np.sin(x) + (colour == "red") + 0.1 * rng.normal(size=n_rows)
    return pd.DataFrame(
        {"x": x, "colour": colour, "hole": hole, "strength": y, "weight": 3 * y + x}
    )


@pytest.fixture
def call():
    """Run the program in this process; gives exit code, stdout and stderr."""

    def run(*arguments, stdin=None):
        return RUNNER.invoke(app, [str(argument) for argument in arguments], input=stdin)

    return run


@pytest.fixture
def refused(call):
    """Run it, expect one line on stderr and exit code 2."""

    def run(*arguments, stdin=None):
        done = call(*arguments, stdin=stdin)
        assert done.exit_code == 2, done.output
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("Error: ").strip()

    return run


@pytest.fixture(scope="session")
def table():
    return make_table(120)


@pytest.fixture
def csv(table, tmp_path):
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def models(table, tmp_path_factory):
    """Folders of models: of one target, of two, without knowledge uncertainty."""
    from priornet.estimators import EvidentialRegressor, GaussianRegressor

    folder = tmp_path_factory.mktemp("models")
    X, one, two = table[["x", "colour", "hole"]], table["strength"], table[["strength", "weight"]]
    evidential = EvidentialRegressor(hidden=(16,), epochs=3, random_state=0)
    single = GaussianRegressor(hidden=(16,), epochs=3, random_state=0)
    evidential.fit(X, one).save(folder / "one")
    single.fit(X, two).save(folder / "two")
    single.fit(X, one).save(folder / "single")
    return folder


@pytest.fixture
def closed_folder():
    """A folder that may not be written, beside copies of a model and a table.

    Nothing is closed to root, so that root gives its rights away meanwhile.
    """

    @contextmanager
    def make(model, data, mode=0o555):
        with tempfile.TemporaryDirectory() as name:  # others may not enter pytest's own folders
            place = Path(name)
            place.chmod(0o755)
            shutil.copytree(model, place / "model")
            shutil.copy(data, place / "data.csv")
            for file in place.rglob("*.*"):
                file.chmod(0o644)
            folder = place / "closed"
            folder.mkdir()
            folder.chmod(mode)
            is_root = os.geteuid() == 0
            if is_root:
                os.seteuid(_NOBODY)
            try:
                yield folder, place / "model", place / "data.csv"
            finally:
                if is_root:
                    os.seteuid(0)
                folder.chmod(0o755)

    return make


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Photographs that look like NYU, KITTI and LSUN, for the depth experiment."""
    return write_sets(tmp_path_factory.mktemp("sets"))
