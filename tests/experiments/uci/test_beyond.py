"""Costs of models, measured side by side."""

from types import SimpleNamespace

from priornet.experiments.uci.beyond import latencies


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
