"""Devices are found by name; columns are clipped in training, and described."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from priornet import DeepEnsembleRegressor, DistilledRegressor, GaussianRegressor, load
from priornet.estimators import ColumnWarning
from priornet.estimators.prepared import chosen_device

X = np.random.default_rng(0).normal(size=(60, 2))


def test_auto_is_a_gpu_where_there_is_one(monkeypatch):
    for is_there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda found=is_there: found)
        assert chosen_device("auto").type == kind


def test_auto_learns_what_its_device_learns():
    kinds = ("auto", chosen_device("auto").type)
    options = {"hidden": (8,), "epochs": 3, "random_state": 0}
    one, other = (GaussianRegressor(**options, device=kind).fit(X, X[:, 0]) for kind in kinds)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("name", ["cuda:99", "meta"])
def test_a_device_that_is_not_here_is_refused_with_the_way_out(name):
    with pytest.raises(ValueError, match=rf"`device` is '{name}', .*: give \"cpu\", or \"auto\""):
        DistilledRegressor(device=name).fit(X, X[:, 0])


@pytest.mark.parametrize("name", ["gpu", "", 1.5, None])
def test_a_name_that_torch_does_not_know_is_refused(name):
    with pytest.raises(ValueError, match=r'`device` must be "auto", "cpu", "cuda" or "cuda:1"'):
        GaussianRegressor(device=name).fit(X, X[:, 0])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named():
    with pytest.raises(ValueError, match=r"'cuda', which cannot be used here .*sees no GPU"):
        GaussianRegressor(device="cuda").fit(X, X[:, 0])


RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(300, 3))
Y = WIDE[:, 0] + WIDE[:, 1] ** 2
QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 60, "random_state": 0}
ONCE: dict[str, Any] = {**QUICK, "epochs": 1}


def mistyped(row):
    found = WIDE.copy()
    found[row, 1] = 1e4
    return found


@pytest.mark.parametrize("row", range(20, 24))  # one in ten rows is held out for calibration
def test_a_mistyped_number_is_named_wherever_it_stands(row):
    with pytest.warns(ColumnWarning, match=f"column 1, row {row}: 10000 is .*Training takes"):
        GaussianRegressor(**ONCE).fit(mistyped(row), Y)
    frame = pd.DataFrame(mistyped(row), columns=list("abc"), index=[f"r{i}" for i in range(300)])
    with pytest.warns(ColumnWarning, match=f'column "b", row r{row}: 10000'):
        GaussianRegressor(**ONCE).fit(frame, Y)


def test_a_row_keeps_its_number_behind_rows_without_weight():
    weight = np.ones(300)
    weight[:15] = 0
    with pytest.warns(ColumnWarning, match="column 1, row 20: 10000"):
        GaussianRegressor(**ONCE).fit(mistyped(20), Y, weight)


def test_one_mistyped_number_does_not_ruin_the_model():
    with pytest.warns(ColumnWarning, match="row 20: 10000"):
        model = GaussianRegressor(**QUICK, calibration_fraction=0).fit(mistyped(20), Y)
    clean = GaussianRegressor(**QUICK, calibration_fraction=0).fit(WIDE, Y)
    others = np.arange(300) != 20
    assert model.score(WIDE[others], Y[others]) > clean.score(WIDE[others], Y[others]) - 0.02
    column = model.fitted_.preprocessor.columns_[1]
    assert column.maximum == np.delete(WIDE[:, 1], 20).max()
    # A row to predict stays as far as it is.
    far = model.fitted_.preprocessor.transform(mistyped(20))[20, 1]
    assert far > 1000


def test_columns_are_described_and_half_of_it_is_kept(tmp_path):
    table = pd.DataFrame({"size": WIDE[:, 0], "colour": ["red", "blue", "red"] * 100})
    table.loc[4, "size"] = np.nan
    model = DeepEnsembleRegressor(2, **ONCE).fit(table, Y)
    size, colour = model.describe_columns()
    assert str(size).startswith('"size": number, -')
    assert (size.n_rows, size.n_missing) == (300, 1)
    assert str(colour) == '"colour": 2 labels (red, blue)'
    model.save(tmp_path / "m")
    kept, _ = load(tmp_path / "m").describe_columns()
    assert (kept.column, kept.kind, kept.n_missing) == ("size", "number", None)


def test_an_id_is_named_left_out_and_not_asked_for(tmp_path):
    table = pd.DataFrame({"name": [f"u{i}" for i in range(300)], "a": WIDE[:, 0], "b": WIDE[:, 1]})
    with pytest.warns(ColumnWarning, match='column "name" is left out: it has 300 labels in 300'):
        model = DeepEnsembleRegressor(2, **ONCE).fit(table, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert [one.kind for one in model.describe_columns()] == ["id", "number", "number"]
    model.save(tmp_path / "m")
    for one in (model, load(tmp_path / "m")):
        np.testing.assert_array_equal(one.predict(table), model.predict(table[["b", "a"]]))
    plain = DeepEnsembleRegressor(2, **ONCE).fit(table[["a", "b"]], Y)
    np.testing.assert_array_equal(plain.predict(table), model.predict(table))


def test_the_limit_of_labels_reaches_the_columns():
    table = pd.DataFrame({"a": WIDE[:, 0], "t": [f"t{i % 60}" for i in range(300)]})
    n_inputs = {
        limit: GaussianRegressor(max_labels=limit, **ONCE).fit(table, Y).fitted_.network.n_inputs
        for limit in ("auto", 70)
    }
    assert n_inputs == {"auto": 61, 70: 61}
    with pytest.warns(ColumnWarning, match='rare labels share one column in "t" .51 of 60'):
        pooled = GaussianRegressor(max_labels=10, **ONCE).fit(table, Y)
    assert pooled.fitted_.network.n_inputs == 11
    with pytest.raises(ValueError, match="`max_labels` must be a whole number of at least 2"):
        GaussianRegressor(max_labels=1).fit(table, Y)
