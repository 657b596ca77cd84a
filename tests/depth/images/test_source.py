"""Which images belong to which part."""

from types import SimpleNamespace
from typing import Any

import pytest

from priornet.depth import DepthError
from priornet.depth.images.source import rows_of


def divided(parts, n=4) -> Any:
    return SimpleNamespace(name="rooms", names=[str(k) for k in range(n)], parts=parts)


def test_parts_are_disjoint_and_complete():
    source = divided(["train", "test", "train", "test"])
    assert rows_of(source, "train") == [0, 2]
    assert rows_of(source, "test") == [1, 3]
    assert rows_of(source, "all") == [0, 1, 2, 3]


def test_a_set_that_is_not_divided_is_all_test():
    assert rows_of(divided(None), "test") == rows_of(divided(None), "all") == [0, 1, 2, 3]
    with pytest.raises(DepthError, match="rooms: this set is not divided"):
        rows_of(divided(None), "train")


def test_an_empty_part_and_an_unknown_one_are_refused():
    unknown: Any = "val"
    with pytest.raises(DepthError, match="rooms: it has no test images"):
        rows_of(divided(["train"] * 4), "test")
    with pytest.raises(DepthError, match='unknown part "val"; choose one of: train, test, all'):
        rows_of(divided(None), unknown)
