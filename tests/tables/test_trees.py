"""Boosted trees: folds, storage, and prediction by words of bits, all against scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from priornet.tables import boosting
from priornet.tables.boosting import fit_trees
from priornet.tables.trees import Bins, Trees

N_LABELS = (0, 0, 3, 40, 0)


def make_columns(n_rows=400, seed=0):
    """Make numbers with missing values, few and many labels, unknown ones, and a constant."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 5))
    x[:, 1] = np.where(rng.random(n_rows) < 0.2, np.nan, np.round(x[:, 1], 1))
    x[:, 2] = np.where(rng.random(n_rows) < 0.1, np.nan, rng.integers(0, 3, n_rows))
    x[:, 3] = np.where(rng.random(n_rows) < 0.1, -1, rng.integers(0, 40, n_rows))
    x[:, 4] = 7.0
    return x


def make_targets(x):
    gap, label = np.nan_to_num(x[:, 1], nan=2.0), np.nan_to_num(x[:, 2], nan=-1.0)
    first = np.sin(2 * x[:, 0]) + gap * (label == 1) + 0.5 * (x[:, 3] % 7 == 3)
    return np.stack([first, gap - x[:, 0]], 1)


@pytest.fixture(scope="module")
def columns():
    return make_columns()


@pytest.fixture(scope="module")
def fitted(columns):
    return fit_trees(columns, make_targets(columns), n_labels=N_LABELS, n_folds=3)


@pytest.fixture(scope="module")
def odd_rows(columns):
    """Make rows on thresholds, far away, and with labels that no training row had."""
    rows = make_columns(300, seed=1)
    rows[:100, 0] = columns[:100, 0]
    rows[100:110, 0] = [-1e300, 1e300, 0.0, -0.0, 5e-324, np.nan, -7, 7, -1e9, 1e9]
    rows[110:115, 2] = [-1, 3, 99, 2.0, np.nan]
    return rows


def models_of(monkeypatch, columns, **settings):
    """Fit again, and return the trees with scikit-learn's models and the matrices they read."""
    kept, made = boosting._kept, []
    monkeypatch.setattr(boosting, "_kept", lambda one, bins: made.append(one) or kept(one, bins))
    return fit_trees(columns, make_targets(columns), n_labels=N_LABELS, **settings), made


def test_trees_predict_what_scikit_learn_predicts(columns, monkeypatch):
    (trees, answers), made = models_of(monkeypatch, columns, n_folds=3)
    expected = np.stack([one.predict(slice(None)) for one in made], 1).reshape(-1, 3, 2)
    each = trees.predict_each(columns)
    assert np.abs(each - expected.swapaxes(0, 1)).max() < 1e-12
    assert np.abs(trees.predict(columns) - each.mean(0)).max() == 0
    is_own = np.abs(each - answers).max(2) < 1e-12  # (folds, rows)
    assert (is_own.sum(0) == 1).all()


def test_threshold_of_a_number_belongs_to_the_left(columns):
    trees, _ = fit_trees(columns[:, :1], columns[:, :1], n_labels=[0], n_folds=2)
    edges = trees.bins.edges
    own, below, above = (
        trees.predict(e[:, None])[:, 0]
        for e in (edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf))
    )
    assert (own == below).all()
    assert (above >= own).all()
    assert (above > own).any()


def test_bits_and_walk_find_the_same_leaves(fitted, odd_rows):
    trees, _ = fitted
    codes = trees.bins.codes(odd_rows)
    by_bits, by_walk = trees.leaves_by_bits(codes), trees.leaves_by_walk(codes)
    assert (by_bits == by_walk).all()
    assert len(np.unique(by_bits[:, 0])) > 5


def test_very_wide_tables_are_predicted_alike(fitted, odd_rows, monkeypatch):
    trees, _ = fitted
    expected = trees.predict(odd_rows)
    monkeypatch.setattr("priornet.tables.trees._MOST_WORDS", 0)
    assert (trees.predict(odd_rows) == expected).all()


def test_answers_come_from_trees_that_did_not_see_the_row(columns):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 1))
    trees, answers = fit_trees(columns, noise, n_labels=N_LABELS)
    residual = lambda found: np.mean((found - noise) ** 2)  # noqa: E731
    assert residual(answers) > 0.95 > residual(trees.predict(columns))


def test_trees_learn_numbers_gaps_and_labels(fitted, columns):
    rows = make_columns(300, seed=2)
    truth = make_targets(rows)
    error = np.mean((fitted[0].predict(rows) - truth) ** 2, 0) / truth.var(0)
    assert (error < [0.2, 0.05]).all()
    error = np.mean((fitted[1] - make_targets(columns)) ** 2, 0) / truth.var(0)
    assert (error < [0.25, 0.05]).all()


def test_many_labels_pass_the_limit_of_scikit_learn():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 300, 1500)
    own = rng.normal(size=300)
    y = own[label] + 0.3 * rng.normal(size=1500)
    trees, answers = fit_trees(label[:, None], y[:, None], n_labels=[300], n_folds=2)
    assert np.mean((answers[:, 0] - own[label]) ** 2) < 0.5
    unknown = trees.predict([[np.nan], [-1.0], [300.0]])
    assert (unknown == unknown[0]).all()


def test_rows_without_weight_teach_nothing(columns):
    y, weight = make_targets(columns)[:, :1], np.ones(400)
    weight[::4] = 0
    spoilt = np.where(weight[:, None] > 0, y, 1e6)
    first, second = (
        fit_trees(columns, v, weight, n_labels=N_LABELS, n_folds=2)[1] for v in (y, spoilt)
    )
    assert (first == second).all()
    assert np.abs(first).max() < 10


def test_whole_weights_count_as_repeated_rows_in_leaves(columns):
    y = make_targets(columns)[:, :1]
    heavy = np.where(columns[:, :1] > 0, 50.0, 1.0)
    flat = np.zeros((400, 1))  # one leaf: the weighted mean
    trees, _ = fit_trees(flat, y, heavy[:, 0], n_labels=[0], n_folds=2)
    expected = np.average(y[:, 0], weights=heavy[:, 0])
    assert abs(trees.predict([[0.0]])[0, 0] - expected) < 0.1
    assert abs(expected - y.mean()) > 0.2


def test_groups_stay_in_one_fold():
    group = np.arange(400) // 10
    y = np.random.default_rng(0).normal(size=40)[group][:, None]
    known, unknown = (
        fit_trees(group[:, None] + 0.0, y, n_labels=[0], groups=names, n_folds=2)[1]
        for names in (None, group)
    )
    assert np.mean((known - y) ** 2) < 0.15 < 0.5 < np.mean((unknown - y) ** 2)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 50 rows to learn from; got 49"):
        fit_trees(np.zeros((60, 1)), np.zeros((60, 1)), np.arange(60) > 10, n_labels=[0])
    with pytest.raises(ValueError, match="at least 10 groups with weight; got 5"):
        fit_trees(np.zeros((60, 1)), np.zeros((60, 1)), n_labels=[0], groups=np.arange(60) % 5)


def test_columns_without_values_are_borne():
    y = np.random.default_rng(0).normal(size=(80, 1))
    empty = np.full((80, 2), np.nan)
    trees, answers = fit_trees(empty, y, n_labels=[0, 5], n_folds=2)
    assert np.isfinite(answers).all()
    assert np.isfinite(trees.predict([[3.0, 1.0]])).all()


def test_another_form_of_scikit_learn_is_noticed(columns, monkeypatch):
    y = make_targets(columns)[:, :1]
    fit = HistGradientBoostingRegressor.fit

    def fit_otherwise(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        for (tree,) in self._predictors:
            tree.nodes["value"] *= 1.01
        self.predict = lambda rows: np.zeros(len(rows))
        return self

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", fit_otherwise)
    with pytest.raises(RuntimeError, match=r"scikit-learn .* fit without trees"):
        fit_trees(columns, y, n_labels=N_LABELS, n_folds=2)


def test_saved_trees_predict_bit_for_bit(fitted, odd_rows):
    trees, _ = fitted
    loaded = Trees.from_tensors(trees.tensors(), N_LABELS, 2)
    assert (loaded.predict(odd_rows) == trees.predict(odd_rows)).all()
    assert (pickle.loads(pickle.dumps(trees)).predict(odd_rows) == trees.predict(odd_rows)).all()
    before = len(pickle.dumps(loaded))
    loaded.predict(odd_rows)
    assert len(pickle.dumps(loaded)) == before


def changed(name, change):
    def forge(tensors):
        tensors[name] = change(tensors[name].copy())

    return forge


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


FORGERIES = {
    "missing": lambda tensors: tensors.pop("cut"),
    "kind": changed("cut", lambda a: a.astype(np.float64)),
    "axes": changed("value", lambda a: a[:, None]),
    "nan value": changed("value", put(3, np.nan)),
    "infinite edge": changed("edges", put(0, -np.inf)),
    "falling edges": changed("edges", lambda a: a[::-1].copy()),
    "edges of labels": changed("n_edges", lambda a: np.roll(a, 2)),
    "edges of another table": changed("n_edges", lambda a: a[:-1]),
    "negative count": changed("n_edges", lambda a: a + np.array([1, -1, 0, 0, 0]) * a[1] * 2),
    "column too far": changed("column", put(0, 5)),
    "cut too far": changed("cut", put(0, 10**6)),
    "cut below zero": changed("cut", put(0, -1)),
    "leaf becomes a split": lambda t: t["column"].__setitem__(np.argmin(t["column"]), 0),
    "split becomes a leaf": changed("column", put(0, -1)),
    "last split": changed("column", put(-1, 0)),
    "too few nodes": changed("column", lambda a: a[:-1]),
    "leaves": changed("value", lambda a: a[:-1]),
    "sides": changed("missing_left", lambda a: a[:-1]),
    "fewer sets": changed("sets", lambda a: a[:1]),
    "narrow sets": changed("sets", lambda a: a[:, :1]),
    "more trees": changed("n_trees", lambda a: a + 1),
    "no trees": changed("n_trees", lambda a: a * 0),
    "huge count": changed("n_trees", put((0, 0), 2**62)),
    "base": changed("base", lambda a: a[:1]),
    "another number of targets": changed("base", lambda a: a[:, :1]),
    "empty": lambda tensors: tensors.update({k: v[:0] for k, v in tensors.items()}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_trees_are_refused(name, fitted):
    tensors = {key: value.copy() for key, value in fitted[0].tensors().items()}
    FORGERIES[name](tensors)
    with pytest.raises(ValueError, match="the saved trees are damaged"):
        Trees.from_tensors(tensors, N_LABELS, 2)


def test_a_wide_tree_is_refused():
    chain = np.tile(np.array([0, -1], np.int32), 32)
    tensors = {
        "edges": np.zeros(1),
        "n_edges": np.array([1]),
        "n_trees": np.array([[1]]),
        "base": np.zeros((1, 1)),
        "column": np.append(chain, np.int32(-1)),
        "cut": np.zeros(65, np.int32),
        "missing_left": np.zeros(65, bool),
        "value": np.zeros(33),
        "sets": np.zeros((0, 0), np.uint8),
    }
    with pytest.raises(ValueError, match="a tree has more than 32 leaves"):
        Trees.from_tensors(tensors, [0], 1)
    fewer = {k: v[2:] if len(v) == 65 else v for k, v in tensors.items()}
    fewer["value"] = np.arange(32.0)
    trees = Trees.from_tensors(fewer, [0], 1)
    assert trees.predict([[-1.0], [1.0], [np.nan]]).ravel().tolist() == [0.0, 31.0, 31.0]


def test_codes_count_the_edges_below():
    bins = Bins(np.array([-1.0, 2.0]), np.array([2, 0]), np.array([0, 3]))
    rows = np.array([[-1.0, 0], [-0.9, 2], [2.0, 3], [9.0, -1], [np.nan, np.nan]])
    assert bins.codes(rows).tolist() == [[0, 1, 1, 2, 3], [0, 2, 3, 3, 3]]


def test_wrong_columns_are_refused(fitted):
    with pytest.raises(ValueError, match=r"`columns` must have shape \(rows, 5\); got \(2, 4\)"):
        fitted[0].predict(np.zeros((2, 4)))
    assert fitted[0].predict(np.zeros((0, 5))).shape == (0, 2)


def test_numbers_without_a_number_between_them_are_told_apart_and_saved():
    middle = 0.1 + 0.2  # not 0.3, but its neighbour
    values = np.array([np.nextafter(middle, 0), middle, np.nextafter(middle, 1), 0.7])
    X = np.tile(values, 60)[:, None]
    y = np.where(np.equal(X, middle), 1.0, 0.0)
    trees, _ = fit_trees(X, y, n_labels=[0])
    loaded = Trees.from_tensors(trees.tensors(), [0], 1)
    np.testing.assert_array_equal(loaded.predict(X), trees.predict(X))
    np.testing.assert_allclose(trees.predict(values[:, None])[:, 0], [0, 1, 0, 0], atol=0.1)
