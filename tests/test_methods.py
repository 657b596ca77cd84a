"""The table of methods agrees with itself and with the estimators."""

from __future__ import annotations

import subprocess
import sys

import pytest

from priornet import estimators
from priornet.estimators import DistilledRegressor, make_estimator
from priornet.evaluation.evaluate_model import describe
from priornet.methods import COLOURS, LABELS, METHODS, STUDENTS, TABULAR, method_named

DATA = [[float(i), float(i % 7)] for i in range(60)], [float(i % 5) for i in range(60)]


def test_names_and_colours_are_unique():
    for field in ("key", "label", "paper", "spelling", "colour"):
        assert len({getattr(method, field) for method in METHODS.values()}) == len(METHODS)
    assert list(COLOURS) == list(LABELS) == list(METHODS)


def test_a_method_is_found_by_its_name_on_the_command_line():
    assert [method_named(method.spelling).key for method in METHODS.values()] == list(METHODS)


def test_students_are_named_by_their_objective():
    assert STUDENTS == ("EnD2", "EnD", "MD-EnD")
    assert all(METHODS[name].spelling == METHODS[name].objective for name in STUDENTS)


@pytest.mark.parametrize("method", TABULAR, ids=lambda method: method.key)
def test_every_tabular_method_makes_its_estimator(method):
    model = make_estimator(method.key, random_state=3)
    assert type(model) is getattr(estimators, method.estimator)
    assert model.random_state == 3
    if isinstance(model, DistilledRegressor):
        assert model.objective == method.objective


@pytest.mark.parametrize("method", TABULAR, ids=lambda method: method.key)
def test_a_fitted_estimator_is_described_as_its_method(method):
    model = make_estimator(method.key, random_state=0, epochs=1)
    if isinstance(model, DistilledRegressor):
        model.set_params(student_epochs=1, n_transfer=10)
    found = describe(model.fit(*DATA))
    assert (found.method, found.label, found.colour) == (method.key, method.label, method.colour)


@pytest.mark.parametrize("name", ["DD", "foo"])
def test_a_method_without_estimator_is_refused(name):
    with pytest.raises(ValueError, match=f'no estimator for method "{name}"; choose one of: Sing'):
        make_estimator(name)


def test_the_table_loads_without_torch():
    code = "import sys, priornet.methods; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
