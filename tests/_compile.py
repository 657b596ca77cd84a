"""Shared parts of the tests of torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# What torch.compile itself does: with an autograd.Function, while lowering, and on seeing a GPU.
_WARNINGS = pytest.mark.filterwarnings(
    "ignore:.*autograd.function.Function.* should not be instantiated:DeprecationWarning",
    "ignore:`torch._prims_common.check` is deprecated:FutureWarning",
    "ignore:TensorFloat32 tensor cores:UserWarning",
)


def compiles(test: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a test that calls torch.compile: its tensors go to the ``device`` it asks for."""
    return pytest.mark.compiles(_WARNINGS(test))
