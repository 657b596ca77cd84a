"""A small part of each attack on saved models."""

from __future__ import annotations

import os

import pytest

from attack.models import ATTACKS
from attack.trial import broken

TRIES = {
    "loads-during-replacement": 100,
    "bit-flips-of-weights": 100,
    "bit-flips-of-config": 100,
    "hostile-folders": 120,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes pipes")
@pytest.mark.parametrize("name", TRIES)
def test_the_promise_holds(name, tmp_path):
    attack = next(attack for attack in ATTACKS if attack.name == name)
    counts = attack.run(1, TRIES[name], tmp_path)
    assert broken(attack, counts) == {}
    if "changes" in counts:
        assert counts["changes"] > 2  # there was a race
