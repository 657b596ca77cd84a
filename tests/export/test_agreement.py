"""Differences are found at their place."""

import math

import numpy as np
import pytest

from priornet.export import Comparison, ExportError, outputs_of
from priornet.export.agreement import TOLERANCE, Jumping

ABOUT = {"coverage": 0.9, "interval": "predictive"}


@pytest.fixture(scope="module")
def outputs(model_of, rows):
    found = outputs_of(model_of("endd", 3), rows, ABOUT)
    return {name: value for name, value in found.items() if not isinstance(value, Jumping)}


@pytest.fixture(scope="module")
def jumping(model_of, rows):
    found = outputs_of(model_of("endd", 3), rows, ABOUT)
    return {name: value for name, value in found.items() if isinstance(value, Jumping)}


def compared(expected, found):
    comparison = Comparison()
    comparison.add(expected, found)
    return comparison


def test_same_numbers_agree(outputs):
    comparison = compared(outputs, outputs)
    assert comparison.holds
    assert comparison.worst[comparison.output].error == 0


@pytest.mark.parametrize("name", ["mean", "upper", "data_variance", "mutual_information", "epkl"])
def test_planted_difference_is_found_at_its_place(outputs, name):
    spoiled = {key: value.copy() for key, value in outputs.items()}
    place = (17, 1) if spoiled[name].ndim == 2 else (17,)
    spoiled[name][place] *= 1 + 1e-3
    comparison = Comparison()
    comparison.add(outputs, outputs)  # rows are counted over several pieces
    comparison.add(outputs, spoiled)
    assert not comparison.holds
    assert comparison.output == name
    worst = comparison.worst[name]
    assert worst.row == len(outputs["mean"]) + 17
    assert worst.target == (1 if len(place) == 2 else 0)
    assert worst.error == pytest.approx(1e-3, rel=1e-6)


def test_entropy_near_zero_is_measured_in_nats(outputs):
    expected = outputs | {"data_entropy": np.full(len(outputs["epkl"]), 1e-9)}
    assert compared(expected, expected | {"data_entropy": expected["data_entropy"] + 5e-5}).holds
    off = expected | {"data_entropy": expected["data_entropy"] + 2 * TOLERANCE}
    assert not compared(expected, off).holds


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_equal_only_themselves(outputs, value):
    odd = outputs | {"epkl": np.where(np.arange(len(outputs["epkl"])) == 3, value, outputs["epkl"])}
    assert compared(odd, odd).holds
    assert compared(outputs, odd).worst["epkl"].error == math.inf


def test_another_shape_is_refused(outputs):
    with pytest.raises(ExportError, match='output "mean" has shape'):
        compared(outputs, outputs | {"mean": outputs["mean"][:, :1]})


def test_scores_and_words_are_compared(outputs, jumping):
    assert jumping.keys() == {"in_domain", "verdict"}
    same = {name: value.value for name, value in jumping.items()}
    comparison = compared(outputs | jumping, outputs | same)
    assert comparison.holds
    assert comparison.worst["verdict"].expected in ("trust", "noisy", "unfamiliar")
    words = same["verdict"].copy()
    words[5] = "unfamiliar" if words[5] == "trust" else "trust"
    comparison = compared(outputs | jumping, outputs | same | {"verdict": words})
    worst = comparison.worst["verdict"]
    assert not comparison.holds
    assert (worst.row, worst.found, worst.error) == (5, words[5], 1.0)


def test_row_at_a_limit_may_fall_on_either_side():
    score = Jumping(
        np.array([0.5, 0.5, 0.5]), (np.array([0.6, 0.5, 0.5]), np.array([0.4, 0.5, 0.5]))
    )
    found = score.errors(np.array([0.55, 0.55, math.nan]))
    assert found[0] == 0
    assert found[1] == pytest.approx(0.1)
    assert found[2] == math.inf
    word = Jumping(np.array(["a", "a"], object), (np.array(["b", "a"], object),))
    assert word.errors(np.array(["b", "b"], object)).tolist() == [0.0, 1.0]
