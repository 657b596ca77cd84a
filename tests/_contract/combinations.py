"""Cases with every K and batch shape, as pytest parameters."""

from __future__ import annotations

from typing import Any

from _beliefs import BATCHES, DIMENSIONS
from _contract.tensors import Shape


def _label(case: Any, k_dim: int, batch: Shape) -> str:
    return f"{case.name}-K{k_dim}-{'x'.join(map(str, batch))}"


def settings(
    cases: list[Any], dimensions: Shape = DIMENSIONS, batches: tuple[Shape, ...] = BATCHES
) -> list[Any]:
    """Every (case, K, batch) as pytest parameters."""
    import pytest

    return [
        pytest.param(case, k_dim, batch, id=_label(case, k_dim, batch))
        for case in cases
        for k_dim in dimensions
        if k_dim in case.dimensions
        for batch in batches
    ]


def spread(cases: list[Any]) -> list[Any]:
    """Every (case, K) with one batch shape, the next one each time, so that all are met with all.

    For slow tests of what other tests cover by ``settings``: the K of a case go different ways
    through the algebra, and its batch shapes the same way.
    """
    import pytest

    turns = [
        (case, k_dim, BATCHES[(place + turn) % len(BATCHES)])
        for place, case in enumerate(cases)
        for turn, k_dim in enumerate(DIMENSIONS)
        if k_dim in case.dimensions
    ]
    return [pytest.param(*setting, id=_label(*setting)) for setting in turns]
