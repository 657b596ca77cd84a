"""Wrong values in any field of a saved configuration are refused, with file and field."""

from __future__ import annotations

import functools
import json
import math
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import priornet
from priornet import DistilledRegressor, GaussianRegressor, PriorNetRegressor
from priornet.distill import TransferSet
from priornet.estimators import ModelError
from priornet.estimators.config import (
    describe_hint,
    fits_hint,
    is_number,
    read_config,
    shown_value,
)

HUGE = 10**400  # JSON may hold it, a float cannot
JUNK = (None, True, -1, 0.5, HUGE, math.nan, math.inf, "x", [], [None], ["x", "x"], [[1]], {"x": 1})


@functools.cache
def config_text():
    """Save a student: it has every kind of field."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], 60)})
    student = DistilledRegressor(
        hidden=(8,),
        epochs=2,
        n_members=2,
        student_epochs=1,
        student_hidden=(8,),
        n_transfer=100,
        transfer=TransferSet(),
        random_state=0,
    ).fit(X, pd.Series(rng.normal(size=60), name="price"))
    from priornet.estimators.persistence import _config

    return json.dumps({"format": 1, **_config(student)})  # format 1 has no digest


def read(path):
    return read_config(path.read_bytes(), path)


def spoiled(tmp_path, field, value):
    """Write the file with another value in a field, or without it."""
    config = json.loads(config_text())
    *way, last = field.split(".")
    part = config
    for key in way:
        part = part[int(key) if key.isdigit() else key]
    if value is ...:
        del part[last]
    else:
        part[int(last) if last.isdigit() else last] = value
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    return path


# What of the junk is all right in a field; of the others, how the message may call the field.
FIELDS = {
    "format": (),
    "class": (),
    "parameters": (),
    "parameters.batch_size": (),
    "parameters.calibration_fraction": (0.5,),
    "parameters.epochs": (),
    "parameters.hidden": (),
    "parameters.hidden.0": (),
    "parameters.learning_rate": (0.5,),
    "parameters.n_members": (),
    "parameters.objective": (),
    "parameters.patience": (None,),
    "parameters.random_state": (None,),
    "parameters.student_hidden": (None, []),
    "parameters.student_learning_rate": (0.5,),
    "parameters.temperature": (),
    "parameters.transfer": (None,),
    "parameters.transfer.far": (),
    "parameters.transfer.far.1": (0.5,),
    "parameters.transfer.neighbours": (),
    "parameters.validation_fraction": (0.5,),
    "parameters.verbose": (True,),
    "network": (),
    "network.n_inputs": (),
    "network.widths": (),
    "network.n_targets": (),
    "network.head": (),
    "network.n_members": (),
    "network.min_excess": (0.5,),
    "network.min_belief": (0.5,),
    "network.tied_evidence": (True,),
    "n_networks": (),
    "preprocessing": (),
    "preprocessing.columns": (),
    "feature_names": (None,),
    "feature_names.0": (),
    "targets": (),
    "targets.names": (),
    "targets.names.0": ("x",),
    "targets.is_vector": (True,),
    "targets.shift": (),
    "targets.shift.0": (-1, 0.5),
    "targets.scale": (),
    "targets.scale.0": (0.5,),
    "reference_data": (0.5,),
    "training": ({"x": 1},),
    "training.epochs": (None, True, -1, 0.5, HUGE, "x", [], [None], ["x", "x"], [[1]], {"x": 1}),
    "versions": (),
}


@pytest.mark.parametrize("field", FIELDS)
def test_junk_is_refused_with_file_and_field(field, tmp_path):
    names = [name for name in field.split(".") if not name.isdigit()]
    for value in JUNK:
        path = spoiled(tmp_path, field, value)
        if any(type(one) is type(value) and one == value for one in FIELDS[field]):
            read(path)
            continue
        with pytest.raises(ModelError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(str(path)), value
        assert any(name in message for name in (names[0], names[-1])), message
        assert len(message) < 400


MISSED = """format class parameters network network.min_excess n_networks preprocessing
feature_names targets targets.shift reference_data training"""


@pytest.mark.parametrize("field", MISSED.split())
def test_a_missing_field_is_named(field, tmp_path):
    with pytest.raises(ModelError, match=f'"{field}"'):
        read(spoiled(tmp_path, field, ...))


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a"], "2 different texts"), (["a", "a"], "2 different"), (["a", "c"], "other names")],
)
def test_feature_names_are_those_of_the_preprocessing(names, message, tmp_path):
    with pytest.raises(ModelError, match=f'"feature_names" is .*{message}'):
        read(spoiled(tmp_path, "feature_names", names))


def test_edges_of_ramps_rise(tmp_path):
    for edges in ([[0, 0], []], [[1, 0], []], [[math.nan], []], "x", [1]):
        with pytest.raises(ModelError, match=r'"network.edges"'):
            read(spoiled(tmp_path, "network.edges", edges))


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, '{"format": 1', '{"format": NaN}'])
def test_text_that_is_no_configuration_is_refused(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        read(tmp_path / "config.json")


TAKEN = {
    "numpy": {"epochs": np.int32(1), "random_state": np.int64(3)},
    "whole numbers": {"learning_rate": 1, "validation_fraction": 0, "verbose": 1, "hidden": [4]},
    "words": {"weight_decay": "auto", "device": "cpu:0", "patience": None},
    "of the prior": {"prior_belief": 1},
}


@pytest.mark.parametrize("settings", TAKEN.values(), ids=TAKEN)
def test_settings_that_a_fit_takes_come_back(settings, tmp_path):
    kind = PriorNetRegressor if "prior_belief" in settings else GaussianRegressor
    model = kind(**{"hidden": (4,), "epochs": 1, **settings})
    X = np.random.default_rng(0).normal(size=(50, 2))
    model.fit(X, X[:, 0]).save(tmp_path / "model")
    again = priornet.load(tmp_path / "model")
    given = {**model.get_params(), "device": "cpu", "hidden": (4,)}
    assert again.get_params() == given


# -- values against type hints --------------------------------------------------------------------

GOOD = [
    (3, int),
    (3, float),
    (0.5, float),
    (True, bool),
    ("x", str),
    (None, int | None),
    ("auto", int | Literal["auto"]),
    ([8, 4], tuple[int, ...]),
    ([], tuple[int, ...]),
    ([0.1, 2], tuple[float, float]),
]
BAD = [
    (True, int),
    (1.0, int),
    (-1, int),
    (10**400, int),
    (True, float),
    (-0.5, float),
    (math.nan, float),
    (math.inf, float),
    (10**400, float),
    (1, bool),
    (3, str),
    (None, int),
    ("other", int | Literal["auto"]),
    (1, Literal[True]),
    ([8, True], tuple[int, ...]),
    ((8, 4), tuple[int, ...]),
    ([0.1], tuple[float, float]),
    ([0.1, 1, 2], tuple[float, float]),
    (8, tuple[int, ...]),
]


@pytest.mark.parametrize(("value", "hint"), GOOD)
def test_values_that_suit(value: object, hint: Any):
    assert fits_hint(value, hint)


@pytest.mark.parametrize(("value", "hint"), BAD)
def test_values_that_do_not_suit(value: object, hint: Any):
    assert not fits_hint(value, hint)


def test_hints_in_words():
    assert describe_hint(float | Literal["auto"] | None) == (
        'a finite number, not negative or "auto" or null'
    )
    assert describe_hint(tuple[int, ...]).startswith("a list of which each is a whole number")


def test_numbers_may_be_negative():
    assert is_number(-1.5)
    assert not is_number("1")
    assert not is_number(True)


def test_long_values_are_cut():
    assert len(shown_value(10**400)) < 30
    assert len(shown_value(["x"] * 100)) < 70
    assert shown_value("x") == "'x'"
