"""Costs of models, measured side by side."""

from types import SimpleNamespace

import numpy as np

from priornet_paper.uci import defaults
from priornet_paper.uci.config import Defaults
from priornet_paper.uci.defaults import latencies
from priornet_paper.uci.folds import make_fold


class Recorder:
    """Stands for a stack, and writes down whose turn it was."""

    in_features = 3

    def __init__(self, name, turns):
        self.name, self.turns = name, turns

    def select(self, networks):
        assert networks == [0]
        return self

    def together(self, x):
        assert x.shape == (1, 3)
        self.turns.append(self.name)


def test_models_take_turns_at_the_clock():
    turns = []
    models = {
        name: SimpleNamespace(fitted_=SimpleNamespace(stack=Recorder(name, turns)))
        for name in ("ENSM", "EnD2")
    }
    found = latencies(models, repeats=3)
    assert turns == ["ENSM", "EnD2"] * 3
    assert list(found) == ["ENSM", "EnD2"]
    assert min(found.values()) > 0


def test_estimators_see_the_training_rows_alone(monkeypatch):
    seen = []

    class Listener:
        def set_params(self, **_):
            return self

        def fit(self, X, y):
            seen.append((X, y))
            return self

    monkeypatch.setattr(defaults, "_make", lambda *_: Listener())
    inputs, targets = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    fold = make_fold(0, np.array([3, 7]), 10)
    defaults.fit_methods(inputs, targets, fold, Defaults(), ["Single"])
    ((X, y),) = seen
    assert y.tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert X[:, 0].tolist() == [0, 2, 4, 8, 10, 12, 16, 18]
