"""Regressors get a variance from rows that they did not see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from priornet.distill import (
    ForestTeacher,
    PureLeavesWarning,
    RegressorsTeacher,
    TeacherError,
    ask_all,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (1500, 3))
NOISE = np.where(X[:, 1] > 0, 0.6, 0.1)
Y = X[:, 0] + 0.5 * X[:, 2] + NOISE * RNG.standard_normal(1500)


def noise_found(teacher):
    variance = teacher.gaussians(X)[1][0, :, 0]
    return [np.sqrt(variance[rows].mean()) for rows in (X[:, 1] > 0.2, X[:, 1] < -0.2)]


def test_the_noise_of_a_list_is_found():
    members = [Ridge(alpha).fit(X, Y) for alpha in (0.1, 1.0, 10.0)]
    teacher = RegressorsTeacher(members, X, Y)
    means, _ = teacher.gaussians(X)
    np.testing.assert_allclose(means[1, :, 0], members[1].predict(X))
    assert noise_found(teacher) == pytest.approx([0.6, 0.1], rel=0.15)


def test_members_that_learnt_rows_by_heart_do_not_hide_the_noise():
    members = [DecisionTreeRegressor(random_state=s).fit(X, Y) for s in range(3)]
    assert all(member.score(X, Y) == 1.0 for member in members)
    noisy, calm = noise_found(RegressorsTeacher(members, X, Y))
    assert noisy > 0.6
    assert calm > 0.1
    assert noisy > 2 * calm


def test_bagged_members_that_overfit_their_bags_do_not_hide_the_noise():
    """Use members without errors inside their bags; outside, their errors add to the noise."""
    bag = BaggingRegressor(DecisionTreeRegressor(), n_estimators=10, random_state=0).fit(X, Y)
    noisy, calm = noise_found(RegressorsTeacher(bag, X, Y))
    assert noisy > 0.6
    assert calm > 0.1


def test_bagged_members_predict_rows_outside_their_bags():
    bag = BaggingRegressor(KNeighborsRegressor(15), n_estimators=10, max_features=2)
    bag.set_params(random_state=0).fit(X, Y)
    teacher = RegressorsTeacher(bag, X, Y)
    np.testing.assert_allclose(teacher.gaussians(X)[0].mean(0)[:, 0], bag.predict(X))
    noisy, calm = noise_found(teacher)
    assert noisy > calm


def test_several_targets_have_a_noise_each():
    y = np.column_stack([Y, 10 * X[:, 0] + RNG.standard_normal(1500)])
    teacher = RegressorsTeacher([Ridge(a).fit(X, y) for a in (1.0, 100.0)], X, y)
    found = ask_all(teacher, X).ensemble
    variances = found.data_covariance().diagonal(dim1=-2, dim2=-1).mean(0)
    assert variances.sqrt().tolist() == pytest.approx([0.43, 1.0], rel=0.15)


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    teacher = RegressorsTeacher([Ridge(a).fit(frame, Y) for a in (1.0, 100.0)], frame, Y)
    assert teacher.feature_names == ("a", "b", "c")
    assert teacher.gaussians(frame[:5])[0].shape == (2, 5, 1)


def test_rows_must_fit():
    with pytest.raises(ValueError, match="as many rows; got 1500 and 3"):
        RegressorsTeacher([Ridge().fit(X, Y)], X, Y[:3])
    with pytest.raises(TypeError, match="filled list"):
        RegressorsTeacher([], X, Y)


def test_columns_are_found_by_their_names():
    frame = pd.DataFrame(X[:300], columns=["a", "b", "c"])
    other = frame[["c", "a", "b"]]
    bag = BaggingRegressor(Ridge(), n_estimators=3, random_state=0).fit(frame, Y[:300])
    members = [Ridge(a).fit(frame, Y[:300]) for a in (1.0, 100.0)]
    for regressors in (bag, members):
        straight = RegressorsTeacher(regressors, frame, Y[:300])
        np.testing.assert_allclose(
            straight.gaussians(other)[0], straight.gaussians(frame)[0], rtol=1e-12
        )
        turned = RegressorsTeacher(regressors, other, Y[:300])
        np.testing.assert_allclose(turned.gaussians(frame)[0], straight.gaussians(frame)[0])


FOREST_RNG = np.random.default_rng(0)
FOREST_X = FOREST_RNG.uniform(-2, 2, (600, 3))
FOREST_NOISE = 0.05 + 0.4 * (FOREST_X[:, 1] > 0)
FOREST_Y = FOREST_X[:, 0] ** 2 + FOREST_NOISE * FOREST_RNG.standard_normal(600)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor, BaggingRegressor])
def test_members_average_to_the_forest(kind):
    settings: dict[str, Any] = {} if kind is BaggingRegressor else {"min_samples_leaf": 5}
    model = kind(n_estimators=20, random_state=0, **settings).fit(FOREST_X, FOREST_Y)
    teacher = ForestTeacher(model, FOREST_X, FOREST_Y)
    means, _ = teacher.gaussians(FOREST_X)
    assert means.shape == (20, 600, 1)
    np.testing.assert_allclose(means.mean(0)[:, 0], model.predict(FOREST_X))


def test_leaf_variances_are_those_of_the_training_targets_in_a_leaf():
    model = RandomForestRegressor(5, min_samples_leaf=10, bootstrap=False, max_features=1)
    model.set_params(random_state=0).fit(FOREST_X, FOREST_Y)
    _, variances = ForestTeacher(model).gaussians(FOREST_X)
    leaves = model.apply(FOREST_X)  # (N, trees)
    for t in range(5):
        for leaf in np.unique(leaves[:, t])[:10]:
            rows = leaves[:, t] == leaf
            expected = max(FOREST_Y[rows].var(), 1e-3 * FOREST_Y.var())
            np.testing.assert_allclose(variances[t, rows, 0], expected, rtol=1e-9)


def test_training_rows_tell_noisy_regions_apart_even_with_pure_leaves():
    model = RandomForestRegressor(30, random_state=0).fit(FOREST_X, FOREST_Y)
    with pytest.warns(PureLeavesWarning, match="of the leaves are pure"):
        pure = ForestTeacher(model)
    told = ForestTeacher(model, FOREST_X, FOREST_Y)
    variance = told.gaussians(FOREST_X)[1].mean((0, 2))
    noisy, calm = variance[FOREST_X[:, 1] > 0.2], variance[FOREST_X[:, 1] < -0.2]
    assert noisy.mean() > 2 * calm.mean()
    assert 0.5 * 0.45**2 < noisy.mean() < 2 * 0.45**2
    assert pure.gaussians(FOREST_X)[1].mean() < 0.1 * told.gaussians(FOREST_X)[1].mean()


def test_bagged_trees_see_their_own_columns():
    model = BaggingRegressor(n_estimators=10, max_features=0.67, random_state=0).fit(
        FOREST_X, FOREST_Y
    )
    teacher = ForestTeacher(model, FOREST_X, FOREST_Y)
    np.testing.assert_allclose(
        teacher.gaussians(FOREST_X)[0].mean(0)[:, 0], model.predict(FOREST_X)
    )


def test_several_targets_need_the_training_rows():
    model = RandomForestRegressor(5, random_state=0).fit(
        FOREST_X, np.column_stack([FOREST_Y, -FOREST_Y])
    )
    with pytest.raises(ValueError, match="targets together; give ForestTeacher the training"):
        ForestTeacher(model)
    found = ask_all(
        ForestTeacher(model, FOREST_X, np.column_stack([FOREST_Y, -FOREST_Y])), FOREST_X
    ).ensemble
    assert found.means.shape == (5, 600, 2)


def test_names_are_known_and_neither_kind_of_table_warns():
    frame = pd.DataFrame(FOREST_X, columns=["a", "b", "c"])
    model = RandomForestRegressor(5, min_samples_leaf=5, random_state=0).fit(frame, FOREST_Y)
    teacher = ForestTeacher(model)
    assert teacher.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(teacher.gaussians(frame)[0], teacher.gaussians(FOREST_X)[0])


def test_what_is_no_forest_is_refused():
    with pytest.raises(NotFittedError):
        ForestTeacher(RandomForestRegressor())
    with pytest.raises(TypeError, match="use RegressorsTeacher"):
        ForestTeacher(BaggingRegressor(SVR(), n_estimators=2).fit(FOREST_X[:50], FOREST_Y[:50]))
    absolute = RandomForestRegressor(2, criterion="absolute_error").fit(
        FOREST_X[:50], FOREST_Y[:50]
    )
    with pytest.raises(ValueError, match='grown by "absolute_error" keep no variances'):
        ForestTeacher(absolute)
    with pytest.raises(ValueError, match="both `X` and `y`"):
        ForestTeacher(absolute, FOREST_X)


@pytest.mark.parametrize("kind", [RandomForestRegressor, BaggingRegressor])
def test_forests_find_columns_by_their_names(kind):
    frame = pd.DataFrame(FOREST_X, columns=["a", "b", "c"])
    model = kind(n_estimators=5, random_state=0).fit(frame, FOREST_Y)
    straight = ForestTeacher(model, frame, FOREST_Y).gaussians(frame)
    other = frame.assign(d=0.0)[["d", "c", "a", "b"]]
    for form in (other, {name: np.asarray(other[name]) for name in other}):
        for first, second in zip(
            ForestTeacher(model, form, FOREST_Y).gaussians(form), straight, strict=True
        ):
            np.testing.assert_array_equal(first, second)
    with pytest.raises(TeacherError, match='no column "b", with which the teacher was fitted'):
        ForestTeacher(model, frame, FOREST_Y).gaussians(frame.rename(columns={"b": "e"}))


def test_training_rows_of_a_forest_must_fit():
    model = RandomForestRegressor(2, random_state=0).fit(FOREST_X, FOREST_Y)
    with pytest.raises(ValueError, match="as many rows; got 600 and 3"):
        ForestTeacher(model, FOREST_X, FOREST_Y[:3])
    with pytest.raises(ValueError, match="`y` has 2 columns; the forest predicts 1"):
        ForestTeacher(model, FOREST_X, np.column_stack([FOREST_Y, FOREST_Y]))
