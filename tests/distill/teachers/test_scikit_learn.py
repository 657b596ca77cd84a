"""Regressors get a variance from rows that they did not see."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from priornet.distill import RegressorsTeacher, ask_all

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
