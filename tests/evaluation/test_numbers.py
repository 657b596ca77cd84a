"""Numbers as people read them, and as JSON takes them."""

import json
import math

import numpy as np
import pytest

from priornet.evaluation.numbers import (
    json_list,
    json_number,
    shown_date,
    shown_number,
    shown_share,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1234.4, "1,234"),
        (999_999.0, "999,999"),
        (-0.00012346, "-0.0001235"),
        (3e-7, "3.000e-07"),
        (math.nan, "\u2013"),
        (None, "\u2013"),
        (math.inf, "\u221e"),
        (-math.inf, "-\u221e"),
    ],
)
def test_number_is_short(value, shown):
    assert shown_number(value) == shown


def test_columns_keep_their_zeros():
    assert [shown_number(v, is_padded=True) for v in (20.0, 0.5, 1234.0)] == [
        "20.00",
        "0.5000",
        "1,234",
    ]


def test_share_of_nothing_is_a_dash():
    assert [shown_share(0.5), shown_share(None), shown_share(math.nan)] == [
        "50.0 %",
        "\u2013",
        "\u2013",
    ]


def test_date_before_1970_is_its_own_day():
    assert [shown_date(day) for day in (-0.5, 0.0, 0.9)] == ["1969-12-31", *["1970-01-01"] * 2]


def test_json_takes_every_array():
    values = np.array([1 / 3, np.nan, np.inf, -0.0, 1e300])
    assert json.loads(json.dumps(json_list(values), allow_nan=False)) == [
        0.3333333,
        None,
        None,
        -0.0,
        1e300,
    ]
    assert json_number(np.float32(0.5)) == 0.5
    assert json_number(-math.inf) is None
