"""Dates, moments and durations as days, one by one and as arrays."""

import datetime

import numpy as np
import pytest

from priornet.tables.days import as_days, as_moments, days_of

EAST = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "days"),
    [
        (datetime.date(1970, 1, 3), 2),
        (datetime.datetime(1970, 1, 2, 12), 1.5),
        (datetime.datetime(1970, 1, 2, 14, tzinfo=EAST), 1.5),
        (np.datetime64("1969-12-31T06", "h"), -0.75),
        (datetime.timedelta(hours=-36), -1.5),
    ],
)
def test_one_value(value, days):
    assert days_of(value) == days


@pytest.mark.parametrize("unit", ["h", "s", "us", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_arrays_of_every_unit(kind, unit):
    hours = np.array([36, -6, "NaT"], f"{kind}[h]")
    np.testing.assert_array_equal(as_days(hours.astype(f"{kind}[{unit}]")), [1.5, -0.25, np.nan])


def test_moments_come_back_to_the_microsecond():
    moments = np.array(["1969-12-31T23:59:59.999999", "2024-02-29T12:34:56.789012"], "M8[us]")
    np.testing.assert_array_equal(as_moments(as_days(moments)), moments)
