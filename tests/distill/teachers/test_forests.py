"""Trees as members: their means are the forest's, their variances those of their leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVR

from priornet.distill import ForestTeacher, PureLeavesWarning, TeacherError, ask_all

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (600, 3))
NOISE = 0.05 + 0.4 * (X[:, 1] > 0)
Y = X[:, 0] ** 2 + NOISE * RNG.standard_normal(600)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor])
def test_members_average_to_the_forest(kind):
    settings: dict[str, Any] = {} if kind is BaggingRegressor else {"min_samples_leaf": 5}
    model = kind(n_estimators=20, random_state=0, **settings).fit(X, Y)
    teacher = ForestTeacher(model, X, Y)
    means, _ = teacher.gaussians(X)
    assert means.shape == (20, 600, 1)
    np.testing.assert_allclose(means.mean(0)[:, 0], model.predict(X))


def test_leaf_variances_are_those_of_the_training_targets_in_a_leaf():
    model = RandomForestRegressor(5, min_samples_leaf=10, bootstrap=False, max_features=1)
    model.set_params(random_state=0).fit(X, Y)
    _, variances = ForestTeacher(model).gaussians(X)
    leaves = model.apply(X)  # (N, trees)
    for t in range(5):
        for leaf in np.unique(leaves[:, t])[:10]:
            rows = leaves[:, t] == leaf
            expected = max(Y[rows].var(), 1e-3 * Y.var())
            np.testing.assert_allclose(variances[t, rows, 0], expected, rtol=1e-9)


def test_training_rows_tell_noisy_regions_apart_even_with_pure_leaves():
    model = RandomForestRegressor(30, random_state=0).fit(X, Y)
    with pytest.warns(PureLeavesWarning, match="of the leaves are pure"):
        pure = ForestTeacher(model)
    told = ForestTeacher(model, X, Y)
    variance = told.gaussians(X)[1].mean((0, 2))
    noisy, calm = variance[X[:, 1] > 0.2], variance[X[:, 1] < -0.2]
    assert noisy.mean() > 2 * calm.mean()
    assert 0.5 * 0.45**2 < noisy.mean() < 2 * 0.45**2
    assert pure.gaussians(X)[1].mean() < 0.1 * told.gaussians(X)[1].mean()


def test_bagged_trees_see_their_own_columns():
    model = BaggingRegressor(n_estimators=10, max_features=0.67, random_state=0).fit(X, Y)
    teacher = ForestTeacher(model, X, Y)
    np.testing.assert_allclose(teacher.gaussians(X)[0].mean(0)[:, 0], model.predict(X))


def test_several_targets_need_the_training_rows():
    model = RandomForestRegressor(5, random_state=0).fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(ValueError, match="targets together; give ForestTeacher the training"):
        ForestTeacher(model)
    found = ask_all(ForestTeacher(model, X, np.column_stack([Y, -Y])), X).ensemble
    assert found.means.shape == (5, 600, 2)


def test_names_are_known_and_neither_kind_of_table_warns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(frame, Y)
    teacher = ForestTeacher(model)
    assert teacher.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(teacher.gaussians(frame)[0], teacher.gaussians(X)[0])


def test_what_is_no_forest_is_refused():
    with pytest.raises(NotFittedError):
        ForestTeacher(RandomForestRegressor())
    with pytest.raises(TypeError, match="use RegressorsTeacher"):
        ForestTeacher(BaggingRegressor(SVR(), n_estimators=2).fit(X[:50], Y[:50]))
    absolute = RandomForestRegressor(2, criterion="absolute_error").fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match='grown by "absolute_error" keep no variances'):
        ForestTeacher(absolute)
    with pytest.raises(ValueError, match="both `X` and `y`"):
        ForestTeacher(absolute, X)


@pytest.mark.parametrize("kind", [RandomForestRegressor, BaggingRegressor])
def test_columns_are_found_by_their_names(kind):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = kind(n_estimators=5, random_state=0).fit(frame, Y)
    straight = ForestTeacher(model, frame, Y).gaussians(frame)
    other = frame.assign(d=0.0)[["d", "c", "a", "b"]]
    for form in (other, {name: np.asarray(other[name]) for name in other}):
        for first, second in zip(
            ForestTeacher(model, form, Y).gaussians(form), straight, strict=True
        ):
            np.testing.assert_array_equal(first, second)
    with pytest.raises(TeacherError, match='no column "b", with which the teacher was fitted'):
        ForestTeacher(model, frame, Y).gaussians(frame.rename(columns={"b": "e"}))


def test_rows_must_fit():
    model = RandomForestRegressor(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="as many rows; got 600 and 3"):
        ForestTeacher(model, X, Y[:3])
    with pytest.raises(ValueError, match="`y` has 2 columns; the forest predicts 1"):
        ForestTeacher(model, X, np.column_stack([Y, Y]))
