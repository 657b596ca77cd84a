"""Schedules at the points where they bend."""

from __future__ import annotations

import itertools

import pytest

from priornet.training.schedules import cosine, linear_ramp, temperature


@pytest.mark.parametrize(
    ("share", "value"), [(0, 10), (0.2, 10), (0.35, 7.75), (0.5, 5.5), (0.8, 1), (1, 1)]
)
def test_temperature_holds_falls_and_rests(share, value):
    assert temperature(share, 10.0) == pytest.approx(value)


def test_cosine_falls_to_its_final_value():
    values = [cosine(i / 10, final=0.1) for i in range(11)]
    assert values[0] == 1
    assert values[-1] == pytest.approx(0.1)
    assert all(a > b for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("share", "until", "value"), [(0, 0.5, 0), (0.25, 0.5, 0.5), (0, 0, 1)])
def test_ramp_rises_to_one(share, until, value):
    assert linear_ramp(share, until) == value
