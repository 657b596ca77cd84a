"""Plain values against type hints, with the traps of JSON and of Python's numbers."""

import math
from typing import Any, Literal

import pytest

from priornet.estimators.files.hints import describe_hint, fits_hint, is_number, shown_value

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
def test_values_that_do_not(value: object, hint: Any):
    assert not fits_hint(value, hint)


def test_hints_in_words():
    assert describe_hint(float | Literal["auto"] | None) == (
        'a finite number, not negative or "auto" or null'
    )
    assert describe_hint(tuple[int, ...]).startswith("a list of which each is a whole number")


def test_numbers_may_be_negative_where_nothing_is_said():
    assert is_number(-1.5)
    assert not is_number("1")
    assert not is_number(True)


def test_long_values_are_cut():
    assert len(shown_value(10**400)) < 30
    assert len(shown_value(["x"] * 100)) < 70
    assert shown_value("x") == "'x'"
