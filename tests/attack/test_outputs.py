"""A few tries of the attack on outputs."""

import os

import pytest

from attack.outputs import ATTACKS
from attack.trial import broken

FEW = 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_promise_holds(tmp_path):
    counts = ATTACKS[0].run(1, FEW, tmp_path)
    assert counts["tries"] == FEW
    assert broken(ATTACKS[0], counts) == {}
