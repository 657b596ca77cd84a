"""Finished parts are read from disk; damaged parts and those of other settings are not."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from priornet_paper.runs.scores import SCORES
from priornet_paper.runs.store import Store
from priornet_paper.uci.config import Defaults, Paper
from priornet_paper.uci.jobs import Block


def part(folds, value=1.0):
    return {"records": [{"fold": f} | dict.fromkeys(SCORES, value) for f in folds], "seconds": 1.0}


def block(folder, folds=(0,), config=None, n_rows=100) -> Block:
    table: Any = SimpleNamespace(name="table", targets=range(n_rows))
    return Block(table, config or Paper(), folds, Store(folder))


@pytest.fixture
def parts(tmp_path):
    return block(tmp_path)


def test_a_written_part_is_read(tmp_path):
    parts = block(tmp_path, (0, 1))
    assert parts.read("EnD2") is None
    written = parts.write("EnD2", part((0, 1)))
    assert parts.read("EnD2") == written
    assert block(tmp_path).read("EnD2") is None
    assert parts.read("EnD") is None


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
def test_a_damaged_part_is_reported_and_made_again(parts, tmp_path, damage):
    parts.write("EnD2", part((0,)))
    path = tmp_path / "EnD2.0.json"
    path.write_text(damage(path.read_text()))
    with pytest.warns(UserWarning, match="made again") as caught:
        assert parts.read("EnD2") is None
    assert str(path) in str(caught[0].message)


GRIDS = Paper().grids


@pytest.mark.parametrize(
    ("changes", "n_rows"),
    [
        ({"seed": 1}, 100),
        ({}, 99),
        ({"grids": {**GRIDS, "EnD2": GRIDS["EnD2"] | {"noise": (0.3,)}}}, 100),
        ({"grids": {**GRIDS, "Single": GRIDS["Single"] | {"weight_decay": (0.1,)}}}, 100),
    ],
    ids=["seed", "rows", "its grid", "its teacher's grid"],
)
def test_a_part_of_other_settings_is_not_taken(parts, tmp_path, changes, n_rows):
    parts.write("EnD2", part((0,)))
    other = block(tmp_path, (0,), replace(Paper(), **changes), n_rows)
    with pytest.warns(UserWarning, match="other settings"):
        assert other.read("EnD2") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"folds": (0, 1)},
        {"grids": {**GRIDS, "NWPN": GRIDS["NWPN"] | {"gamma": (1.0,)}}},
    ],
    ids=["folds", "another method's grid"],
)
def test_what_does_not_concern_a_part_does_not_matter(parts, tmp_path, changes):
    parts.write("EnD2", part((0,)))
    same = block(tmp_path, (0,), replace(Paper(), **changes))
    assert same.read("EnD2") is not None


@pytest.mark.parametrize(
    ("changed", "redone"),
    [("NWPN", {"NWPN"}), ("EnD2", {"EnD2"}), ("ENSM", {"ENSM", "EnD2"})],
)
def test_estimators_with_other_parameters_are_fitted_again(tmp_path, changed, redone):
    """Students follow their teacher; others do not mind."""
    before, after = (
        block(tmp_path, (0,), Defaults(changes={changed: {"learning_rate": rate}}))
        for rate in (1e-3, 1e-2)
    )
    methods = ("Single", "ENSM", "EnD2", "NWPN", "DER")
    assert {m for m in methods if before.fingerprint(m) != after.fingerprint(m)} == redone
