"""The shared network as an estimator: its witness, its members, its held-out rows."""

import numpy as np
import pandas as pd
import pytest

import priornet
from priornet import SharedPriorRegressor
from priornet.distributions import NormalWishart
from priornet.nn.shared import SharedNetwork

QUICK = {"hidden": (16,), "random_state": 0}


def steps(n=400):
    """Make a table that trees learn and small networks do not: steps in two columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 8, (n, 2))
    return X, np.floor(X[:, 0]) * (-1) ** np.floor(X[:, 1]) + rng.normal(0, 0.1, n)


def waves(n=400):
    """Make a table that networks learn and trees do not: a steep line."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    return X, X.sum(1) + rng.normal(0, 0.05, n)


@pytest.fixture(scope="module")
def stepped():
    return SharedPriorRegressor(8, epochs=15, **QUICK).fit(*steps())


@pytest.fixture(scope="module")
def wavy():
    return SharedPriorRegressor(8, epochs=40, **QUICK).fit(*waves())


def test_trees_stay_where_they_help(stepped):
    n_seeing, _ = stepped.fitted_.training["members"]
    assert n_seeing == 4
    alone = SharedPriorRegressor(8, trees=False, epochs=15, **QUICK).fit(*steps())
    X, y = steps(1000)
    X, y = X[400:], y[400:]
    error, without = (np.mean((model.predict(X) - y) ** 2) for model in (stepped, alone))
    assert error < 0.5 * without


def test_trees_go_where_they_hurt(wavy):
    assert wavy.fitted_.training["members"][0] <= 2
    always = SharedPriorRegressor(8, trees=True, epochs=2, **QUICK).fit(*waves(100))
    assert always.fitted_.trees is not None
    assert always.fitted_.training["members"][0] >= 1


def test_without_trees_there_are_none():
    model = SharedPriorRegressor(4, trees=False, epochs=2, **QUICK).fit(*waves(100))
    assert model.fitted_.trees is None
    assert model.fitted_.training["members"] == [0, 4]
    few = SharedPriorRegressor(4, trees=True, epochs=2, **QUICK).fit(*waves(30))
    assert few.fitted_.trees is None  # too few rows for trees


def test_it_answers_with_a_normal_wishart(stepped):
    X, _ = steps()
    belief = stepped.predict_belief(X[:5])
    assert isinstance(belief, NormalWishart)
    assert (belief.excess >= 1).all()  # its variances exist
    part = stepped.predict_uncertainty(X[:5])
    np.testing.assert_allclose(part.total_variance, part.data_variance + part.knowledge_variance)


def test_members_disagree_outside_of_the_training_rows(wavy):
    X, _ = waves()
    moved = X + 10 * X.std(0)
    inside, outside = (wavy.predict_uncertainty(x).knowledge_variance for x in (X, moved))
    assert np.mean(outside > np.quantile(inside, 0.9)) > 0.9


def test_validation_rows_calibrate_unless_a_share_is_given(stepped):
    assert len(stepped.fitted_.calibration_scores) == 50
    assert stepped.fitted_.training["n_rows"] == 350
    strict = SharedPriorRegressor(4, calibration_fraction=0.25, epochs=2, **QUICK).fit(*waves(80))
    assert len(strict.fitted_.calibration_scores) == 20
    assert strict.fitted_.training["n_rows"] == 52


def test_labels_and_missing_values_reach_trees_and_members(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.choice(list("abcdefghijkl"), 300), "x": rng.random(300)})
    table.loc[::5, "x"] = np.nan
    y = table["code"].map(ord) + table["x"].fillna(3.0)
    model = SharedPriorRegressor(8, epochs=30, **QUICK).fit(table, y)
    assert np.mean((model.predict(table) - y) ** 2) < 0.1 * y.var()
    assert isinstance(model.fitted_.network, SharedNetwork)
    assert model.fitted_.network.label_columns == ((0, 12),)
    model.save(tmp_path / "model")
    loaded = priornet.load(tmp_path / "model")
    shuffled = table[["x", "code"]]
    np.testing.assert_array_equal(loaded.predict(shuffled), model.predict(table))


def test_the_same_seed_gives_the_same_model(stepped):
    again = SharedPriorRegressor(8, epochs=15, **QUICK).fit(*steps())
    X, _ = steps()
    np.testing.assert_array_equal(again.predict(X), stepped.predict(X))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"n_members": 3}, "at least 4; got 3"), ({"trees": "yes"}, "or \"auto\"; got 'yes'")],
)
def test_parameters_that_cannot_work_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        SharedPriorRegressor(**wrong).fit(*waves(60))
