"""Finished parts are taken from disk; damaged or foreign ones never are."""

import json

import pytest

from priornet.experiments.uci.parts import Parts
from priornet.experiments.uci.scores import SCORES


def part(folds, value=1.0):
    return {"records": [{"fold": f} | dict.fromkeys(SCORES, value) for f in folds], "seconds": 1.0}


@pytest.fixture
def parts(tmp_path):
    return Parts(tmp_path / "parts", {"seed": 0, "epochs": 2, "folds": None}, 100)


def test_what_is_written_is_read(parts):
    assert parts.read("EnD2", (0, 1)) is None
    written = parts.write("EnD2", (0, 1), part((0, 1)))
    assert parts.read("EnD2", (0, 1)) == written
    assert parts.read("EnD2", (0,)) is None
    assert parts.read("EnD", (0, 1)) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[1, 2]",
        lambda text: text.replace('"rmse"', '"other"'),
        lambda text: text.replace("1.0", "null", 1),
        lambda text: json.dumps({**json.loads(text), "records": []}),
    ],
    ids=["cut", "empty", "list", "no score", "null", "no records"],
)
def test_a_damaged_part_is_reported_and_made_again(parts, damage):
    parts.write("EnD2", (0,), part((0,)))
    path = parts.path("EnD2", (0,))
    path.write_text(damage(path.read_text()))
    with pytest.warns(UserWarning, match="made again") as caught:
        assert parts.read("EnD2", (0,)) is None
    assert str(path) in str(caught[0].message)


@pytest.mark.parametrize(("config", "n_rows"), [({"seed": 1, "epochs": 2}, 100), (None, 99)])
def test_a_part_of_other_settings_is_not_taken(parts, tmp_path, config, n_rows):
    parts.write("EnD2", (0,), part((0,)))
    other = Parts(tmp_path / "parts", config or {"seed": 0, "epochs": 2}, n_rows)
    with pytest.warns(UserWarning, match="other settings"):
        assert other.read("EnD2", (0,)) is None


def test_which_folds_are_wanted_does_not_matter(parts, tmp_path):
    parts.write("EnD2", (0,), part((0,)))
    same = Parts(tmp_path / "parts", {"seed": 0, "epochs": 2, "folds": [0, 1]}, 100)
    assert same.read("EnD2", (0,)) is not None
