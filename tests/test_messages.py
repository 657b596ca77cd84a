"""Every warning of the library names the file and line of its caller."""

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
from priornet.messages import warn_user

X = np.random.default_rng(0).normal(size=(120, 2))
QUICK = {"hidden": (4,), "student_hidden": (4,), "student_epochs": 1, "n_transfer": 200}


class Heard:
    """The places of warnings of one kind, and the line that they should name."""

    def __init__(self, category, line):
        self.category, self.expected = category, {(__file__, line)}
        self.places = set()


@contextlib.contextmanager
def listening(category):
    """Listen for one kind of warning; it should name the line behind this one."""
    frame = inspect.currentframe()
    assert frame is not None
    frame = frame.f_back.f_back  # pyright: ignore[reportOptionalMemberAccess]
    assert frame is not None
    heard = Heard(category, frame.f_lineno + 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield heard
    heard.places = {(w.filename, w.lineno) for w in caught if w.category is category}


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


def test_a_warning_about_equal_members_names_the_fit(student):
    with listening(AgreementWarning) as heard:
        student.fit(X)
    assert heard.places == heard.expected


def test_a_warning_about_an_unfaithful_student_names_the_fit():
    student = DistilledRegressor(forest_teacher(), random_state=0, **QUICK)
    with listening(FaithfulnessWarning) as heard:
        student.fit(X)
    assert heard.places == heard.expected


def forest_teacher():
    return ForestTeacher(forest(), X, X[:, 0])


def test_a_warning_about_pure_leaves_names_the_teacher():
    trees = forest()
    with listening(PureLeavesWarning) as heard:
        ForestTeacher(trees)
    assert heard.places == heard.expected
    with listening(PureLeavesWarning) as heard:
        as_teacher(trees)
    assert heard.places == heard.expected
    with listening(PureLeavesWarning) as heard:
        DistilledRegressor(trees, random_state=0, **QUICK).fit(X)
    assert heard.places == heard.expected


def test_a_warning_about_rows_without_answer_names_the_fit():
    with listening(UserWarning) as heard:
        ask_all(FunctionTeacher(failing), X)
    assert heard.places == heard.expected


def test_decorators_between_library_lines_are_skipped():
    scope = {"__name__": "priornet.deep", "torch": torch, "warn_user": warn_user}
    code = "@torch.no_grad()\ndef inner():\n    warn_user('told')\ndef outer():\n    inner()\n"
    exec(code, scope)
    with listening(UserWarning) as heard:
        scope["outer"]()
    assert heard.places == heard.expected


def test_searches_of_scikit_learn_are_skipped():
    scope = {"__name__": "priornet.deep", "warn_user": warn_user}
    exec("def fit(self, X, y):\n    warn_user('told')\n    return self\n", scope)
    methods = {"fit": scope["fit"], "predict": lambda self, X: np.zeros(len(X))}
    kind = type("Told", (RegressorMixin, BaseEstimator), methods)
    with listening(UserWarning) as heard:
        cross_val_score(kind(), X, X[:, 0], cv=2)
    assert heard.places == heard.expected


def test_a_warning_without_a_user_line_is_still_raised():
    scope = {"__name__": "priornet.deep", "warn_user": warn_user}
    with pytest.warns(RuntimeWarning, match="told"):
        eval("warn_user('told', kind)", {**scope, "kind": RuntimeWarning})
