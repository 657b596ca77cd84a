"""A small part of the attack on trust; `make attack` makes the whole."""

import pytest

from attack.trial import broken
from attack.trust import ATTACKS


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_promise_holds(attack, tmp_path):
    counts = attack.run(0, 140, tmp_path)
    assert counts["tries"] == 140
    assert broken(attack, counts) == {}
