"""The table of patients: in natural units, under readable names."""

from typing import Any

from sklearn.datasets import load_diabetes as load

from priornet.tables.diabetes import load_diabetes


def test_columns_are_those_of_scikit_learn_under_readable_names():
    X, y = load_diabetes()
    theirs: Any = load(scaled=False)
    assert (X.to_numpy() == theirs["data"]).all()
    assert (y.to_numpy() == theirs["target"]).all()
    assert list(X.columns[:4]) == ["age", "sex", "bmi", "blood_pressure"]
    assert not any(name.startswith("s") and name[1:].isdigit() for name in X.columns)


def test_measurements_are_in_their_own_units():
    X, _ = load_diabetes()
    assert X["age"].between(18, 80).all()
    assert X["bmi"].between(15, 45).all()
