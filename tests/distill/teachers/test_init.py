"""The objects that people have become the teachers that fit them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression
from torch import nn

from priornet.distill import (
    DropoutTeacher,
    ForestTeacher,
    FunctionTeacher,
    GaussianProcessTeacher,
    ModulesTeacher,
    as_teacher,
)

X = np.random.default_rng(0).standard_normal((60, 2))
Y = X[:, 0] + 0.3 * X[:, 1]


def nothing(X):
    raise AssertionError


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (nothing, FunctionTeacher),
        ([nn.Linear(2, 2), nn.Linear(2, 2)], ModulesTeacher),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout()), DropoutTeacher),
        (RandomForestRegressor(3, min_samples_leaf=5).fit(X, Y), ForestTeacher),
        (GaussianProcessRegressor().fit(X, Y), GaussianProcessTeacher),
        (FunctionTeacher(nothing), FunctionTeacher),
    ],
)
def test_the_kind_is_recognised(given, kind):
    teacher = as_teacher(given)
    assert type(teacher) is kind
    assert as_teacher(teacher) is teacher


def test_catboost_is_recognised():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(
        iterations=5, loss_function="RMSEWithUncertainty", verbose=False, allow_writing_files=False
    ).fit(X, Y)
    assert len(as_teacher([model, model]).models) == 2  # pyright: ignore
    assert as_teacher(model).n_virtual == 10  # pyright: ignore


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "got int"),
        (LinearRegression().fit(X, Y), r"got LinearRegression\. RegressorsTeacher takes a list"),
        ([LinearRegression().fit(X, Y)], "make a RegressorsTeacher"),
        (BaggingRegressor(LinearRegression(), 2).fit(X, Y), "use RegressorsTeacher"),
    ],
)
def test_others_are_refused_with_the_way_out(given, message):
    with pytest.raises(TypeError, match=message):
        as_teacher(given)
