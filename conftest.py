"""Names that docstring examples may use without importing them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _docstring_names(doctest_namespace: dict[str, object]) -> None:
    import torch

    doctest_namespace["torch"] = torch
