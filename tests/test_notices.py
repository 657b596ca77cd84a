"""Every warning of ours names the file and line of whoever called us."""

from __future__ import annotations

import contextlib
import inspect
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_score

from priornet import DistilledRegressor
from priornet.distill import (
    AgreementWarning,
    FaithfulnessWarning,
    ForestTeacher,
    FunctionTeacher,
    PureLeavesWarning,
    as_teacher,
    ask_all,
)
from priornet.notices import warn_user

X = np.random.default_rng(0).normal(size=(120, 2))
QUICK = {"hidden": (4,), "student_hidden": (4,), "student_epochs": 1, "n_transfer": 200}


@contextlib.contextmanager
def heard_here(category):
    """Expect one kind of warning, at the line behind this one."""
    frame = inspect.currentframe()
    assert frame is not None
    frame = frame.f_back.f_back  # pyright: ignore[reportOptionalMemberAccess]
    assert frame is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    own = [w for w in caught if w.category is category]
    assert own, [str(w.message) for w in caught]
    found = {(w.filename, w.lineno) for w in own}
    assert found == {(__file__, frame.f_lineno + 1)}


def agreed(rows):
    return np.zeros((3, len(rows))), np.ones((3, len(rows)))


def failing(rows):
    means = np.random.default_rng(0).normal(size=(3, len(rows)))
    means[:, 0] = np.nan
    return means, np.ones((3, len(rows)))


def forest():
    return RandomForestRegressor(5, random_state=0).fit(X, X[:, 0])


@pytest.fixture
def student():
    return DistilledRegressor(FunctionTeacher(agreed), random_state=0, **QUICK)


def test_members_that_agree_are_told_where_the_student_is_fitted(student):
    with heard_here(AgreementWarning):
        student.fit(X)


def test_an_unfaithful_student_is_told_where_it_is_fitted():
    student = DistilledRegressor(forest_teacher(), random_state=0, **QUICK)
    with heard_here(FaithfulnessWarning):
        student.fit(X)


def forest_teacher():
    return ForestTeacher(forest(), X, X[:, 0])


def test_pure_leaves_are_told_where_the_teacher_is_made():
    trees = forest()
    with heard_here(PureLeavesWarning):
        ForestTeacher(trees)
    with heard_here(PureLeavesWarning):
        as_teacher(trees)
    with heard_here(PureLeavesWarning):
        DistilledRegressor(trees, random_state=0, **QUICK).fit(X)


def test_rows_without_answer_are_told_where_the_teacher_is_asked():
    with heard_here(UserWarning):
        ask_all(FunctionTeacher(failing), X)


def test_decorators_between_our_own_lines_are_passed_over():
    scope = {"__name__": "priornet.deep", "torch": torch, "warn_user": warn_user}
    code = "@torch.no_grad()\ndef inner():\n    warn_user('told')\ndef outer():\n    inner()\n"
    exec(code, scope)
    with heard_here(UserWarning):
        scope["outer"]()


def test_searches_of_scikit_learn_are_passed_over():
    scope = {"__name__": "priornet.deep", "warn_user": warn_user}
    exec("def fit(self, X, y):\n    warn_user('told')\n    return self\n", scope)
    methods = {"fit": scope["fit"], "predict": lambda self, X: np.zeros(len(X))}
    kind = type("Told", (RegressorMixin, BaseEstimator), methods)
    with heard_here(UserWarning):
        cross_val_score(kind(), X, X[:, 0], cv=2)


def test_without_any_user_it_still_warns():
    scope = {"__name__": "priornet.deep", "warn_user": warn_user}
    with pytest.warns(RuntimeWarning, match="told"):
        eval("warn_user('told', kind)", {**scope, "kind": RuntimeWarning})
