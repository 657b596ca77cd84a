"""The shared network as an estimator: its witness, its members, its held-out rows."""

import numpy as np
import pandas as pd
import pytest
import torch

import priornet
from priornet import SharedPriorRegressor
from priornet.distributions import NormalWishart
from priornet.estimators import shared
from priornet.nn.shared import SharedNetwork, score_knots
from priornet.tables.boosting import fit_trees
from priornet.training import Rows
from priornet.training.stack_training import train_stack

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


def test_too_few_rows_have_no_trees():
    few = SharedPriorRegressor(4, epochs=2, **QUICK).fit(*waves(30))
    assert few.fitted_.trees is None
    with pytest.raises(ValueError, match="at least 50 rows to learn from; got 30"):
        SharedPriorRegressor(4, trees=True, epochs=2, **QUICK).fit(*waves(30))


def test_members_learn_from_answers_to_rows_that_trees_have_not_seen(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, weight = rng.random((100, 2)), rng.standard_normal(100), rng.random(100)
    fits, trainings = [], []

    def fit_and_note(columns, targets, weight, **settings):
        found = fit_trees(columns, targets, weight, **settings)
        fits.append((columns, weight, found[1]))
        return found

    def train_and_note(stack, rows, *others):
        trainings.append(rows)
        return train_stack(stack, rows, *others)

    monkeypatch.setattr(shared, "fit_trees", fit_and_note)
    monkeypatch.setattr(shared, "train_stack", train_and_note)
    model = SharedPriorRegressor(4, trees=True, epochs=1, **QUICK).fit(X, y, weight)
    ((columns, used, answers),), (rows,) = fits, trainings
    np.testing.assert_allclose(columns, X)
    np.testing.assert_allclose(used, weight / weight.mean(), rtol=1e-6)
    np.testing.assert_allclose(rows.data.inputs[:, 2:], answers, rtol=1e-5)
    assert model.fitted_.trees is not None
    seen = model.fitted_.trees.predict(columns)
    assert np.abs(seen - answers).mean() > 0.05  # noise: trees know the rows that they have seen


@pytest.mark.parametrize("is_right", [True, False])
def test_the_weight_of_held_out_rows_chooses_members(is_right):
    rng = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 1, generator=rng)
    knots = score_knots(inputs, [True])
    network = SharedNetwork(2, (4,), 1, 8, knots, witnessed=4)
    stack = network.build([0], inputs)
    with torch.no_grad():
        stack.pieces()["head.weight"].zero_()  # blind members answer 0, the others the witness
    witness = 3 * torch.randn(200, 1, generator=rng)
    follows = torch.arange(200) < 100
    targets = torch.where(follows[:, None], witness, 0.0)
    weight = torch.where(follows == is_right, 1.0, 0.0)
    data = Rows(torch.cat([inputs, witness], 1), targets, weight)
    chosen = shared._chosen(stack, data, torch.arange(200), may_drop=True).network
    assert (chosen.witnessed, chosen.n_members) == ((4, 4) if is_right else (0, 4))


def test_a_table_of_labels_only_has_members_too():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.choice(["u", "v"], 120), "b": rng.choice(list("xyz"), 120)})
    y = (table["a"] == "u") + rng.normal(0, 0.1, 120)
    for trees in ("auto", False):
        model = SharedPriorRegressor(4, trees=trees, epochs=20, **QUICK).fit(table, y)
        assert np.mean((model.predict(table) - y) ** 2) < 0.5 * y.var()


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
