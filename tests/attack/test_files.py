"""A few tries of each attack on files that are being written."""

import os

import pytest

from attack.files import ATTACKS
from attack.trial import broken

FEW = {"kills": 2, "two-writers": 5}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_promise_holds(attack, tmp_path):
    counts = attack.run(1, FEW[attack.name], tmp_path)
    assert counts["tries"] == FEW[attack.name]
    assert broken(attack, counts) == {}
