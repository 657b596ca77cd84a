"""Fingerprints tell a table from every other one, and hold no data."""

import numpy as np
import pandas as pd
import pytest

from _uci_files import register, small, split
from priornet_paper.uci.data.fingerprints import difference, fingerprints, measure
from priornet_paper.uci.data.registry import DATASETS


@pytest.fixture
def wine(monkeypatch):
    values = small("wine", 200)
    return register(monkeypatch, "wine", values), *split("wine", values)


def problem_of(known, inputs, targets):
    problem = difference(known, inputs, targets)
    assert problem is not None
    return problem


def test_there_is_one_for_each_table():
    assert list(fingerprints()) == list(DATASETS)
    for name, own in fingerprints().items():
        known = DATASETS[name]
        assert own.n_rows == (known.first_rows or known.n_rows)
        for numbers in (own.mean, own.std, own.trend):
            assert numbers.shape == (known.n_features + 1,)


@pytest.mark.parametrize("name", DATASETS)
def test_stored_numbers_are_those_of_the_real_table(real, name):
    known = DATASETS[name]
    suffix = f"_first{known.first_rows}" if known.first_rows else ""
    frame = pd.read_parquet(real / f"{name}{suffix}.parquet")
    frame = frame[[*known.feature_names, known.target]]
    own = fingerprints()[name]
    np.testing.assert_allclose(own.mean, frame.mean(), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(own.std, frame.std(ddof=0), rtol=1e-10, atol=1e-9)
    ramp = pd.Series(np.linspace(-1, 1, len(frame)))
    covariance = frame.apply(lambda column: column.cov(ramp, ddof=0))
    np.testing.assert_allclose(own.trend, covariance, rtol=1e-10, atol=1e-9)


def test_the_table_itself_passes_also_after_rounding_of_sums(wine):
    known, inputs, targets = wine
    assert difference(known, inputs, targets) is None
    assert difference(known, inputs * (1 + 1e-13), targets) is None


def test_missing_rows_and_columns_are_counted(wine):
    known, inputs, targets = wine
    assert "199 rows instead of 200" in problem_of(known, inputs[1:], targets[1:])
    assert "10 feature columns instead of 11" in problem_of(known, inputs[:, 1:], targets)
    assert "feature columns" in problem_of(known, inputs[:, 0], targets)
    assert "shape (200,) beside 199 rows" in problem_of(known, inputs[1:], targets)


def test_holes_are_noticed(wine):
    known, inputs, targets = wine
    inputs[17, 3] = np.nan
    assert "missing or infinite" in problem_of(known, inputs, targets)


def test_one_wrong_cell_names_its_column(wine):
    known, inputs, targets = wine
    inputs[17, 3] += 1.0
    assert '"residual_sugar" has the mean' in problem_of(known, inputs, targets)
    targets[:2] += (5.0, -5.0)  # the mean stays
    inputs[17, 3] -= 1.0
    assert '"quality" has the standard deviation' in problem_of(known, inputs, targets)


def test_another_order_of_rows_is_noticed(wine):
    known, inputs, targets = wine
    order = np.random.default_rng(0).permutation(len(targets))
    assert "another order" in problem_of(known, inputs[order], targets[order])
    assert "another order" in problem_of(known, inputs, targets[order])


def test_first_rows_are_checked_in_the_whole_table_too(monkeypatch):
    values = small("msd", 20)
    known = register(monkeypatch, "msd", values)
    inputs, targets = split("msd", values)
    assert difference(known, inputs, targets) is None
    assert difference(known, inputs[:10], targets[:10]) is None
    assert "15 rows instead of 20" in problem_of(known, inputs[:15], targets[:15])
    assert "instead of" in problem_of(known, inputs[::-1], targets[::-1])


def test_constant_columns_are_compared_by_their_size(monkeypatch):
    values = small("naval", 30)
    values[:, 8] = 288.0
    known = register(monkeypatch, "naval", values)
    inputs, targets = split("naval", values)
    assert difference(known, inputs, targets) is None
    inputs[:, 8] = 288.1
    assert '"T1" has the mean 288.1 instead of 288' in problem_of(known, inputs, targets)


def test_measure_uses_all_rows():
    own = measure(np.array([[0.0], [2.0], [4.0]]), np.array([1.0, 1.0, 1.0]))
    assert own.n_rows == 3
    assert own.mean.tolist() == [2.0, 1.0]
    np.testing.assert_allclose(own.std, [np.sqrt(8 / 3), 0.0])
    np.testing.assert_allclose(own.trend, [4 / 3, 0.0])
