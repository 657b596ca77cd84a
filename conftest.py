"""What the examples of docstrings find: names that they need not import, and quick students."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

# Kernels import what comes with torch for GPUs only; everything else must import everywhere.
collect_ignore = [] if find_spec("triton") else ["src/priornet/nn/dense_depth/joining_kernels.py"]


@pytest.fixture(autouse=True)
def _docstring_names(request: pytest.FixtureRequest, doctest_namespace: dict[str, object]) -> None:
    import torch

    doctest_namespace["torch"] = torch
    if isinstance(request.node, pytest.DoctestItem):
        from _students import hurry

        hurry(request.getfixturevalue("monkeypatch"))
