"""Recipes: variants of a method, their names and their settings."""

import pytest

from priornet_paper.depth.config import Config
from priornet_paper.depth.recipe import recipes


def test_recipes_of_variants():
    names = ["NWPN", "EnD2-T10", "EnD2-proxy"]
    found = {r.name: r for r in recipes(Config(), names, ablation=True)}
    assert list(found) == [
        "EnD2-T10",
        "EnD2-proxy",
        "NWPN",
        "NWPN-g0",
        "NWPN-g0.005",
        "NWPN-g0.025",
        "NWPN-g0.05",
    ]
    assert found["EnD2-T10"].config.temperature == 10
    assert found["EnD2-proxy"].config.proxy
    assert found["NWPN-g0"].config.gamma == 0
    assert found["NWPN-g0"].config.seeds == (0,)  # an ablation need not be run with all
    assert found["NWPN"].config.seeds == (0, 1, 2)
    assert [r.name for r in found.values() if not r.is_variant] == ["NWPN"]


@pytest.mark.parametrize("name", ["end2", "NWPN-gmany", "NWPN-g-1", "Single-g1"])
def test_unknown_methods_are_refused(name):
    with pytest.raises(ValueError, match=f'unknown method "{name}"; choose from: DD, Single'):
        recipes(Config(), [name])
