"""The reference cases of ``vectors.json``: results of 60-digit arithmetic to compare with.

Inputs are exact in float32. ``cases`` parametrises a test, ``tensors`` converts what a case holds,
and ``expected`` picks one reference value:

    @pytest.mark.parametrize("case", cases("nw"))
    def test_entropy(case):
        given = tensors(case["inputs"], torch.float32)
        assert_close(..., expected(case, "entropy"))
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

Case = dict[str, Any]

_FILE = Path(__file__).parent / "vectors.json"


@cache
def _load() -> list[Case]:
    return json.loads(_FILE.read_text(encoding="utf-8"))["cases"]


def cases(kind: str) -> list[Any]:
    """Every case of a type ("nw", "ensemble", "prr", "auc", "nig", "diag") as pytest parameters."""
    found = [pytest.param(case, id=case["id"]) for case in _load() if case["type"] == kind]
    if not found:
        raise ValueError(
            f'no case of type "{kind}"; there are {sorted({c["type"] for c in _load()})}.'
        )
    return found


def tensors(values: Any, dtype: torch.dtype = torch.float64) -> Any:
    """Numbers written as strings become tensors; records and lists of records keep their structure.

    Counts (``K``, ``M``) stay integers, and an undefined value stays None.
    """
    if isinstance(values, dict):
        return {name: tensors(value, dtype) for name, value in values.items()}
    if isinstance(values, list) and values and isinstance(values[0], dict):
        return [tensors(value, dtype) for value in values]
    if values is None or isinstance(values, int):
        return values
    return torch.tensor(_numbers(values), dtype=dtype)


def expected(case: Case, *path: str | int) -> Any:
    """One reference value in float64, or None where it is undefined: ``expected(case, "prr")``.

    A longer path reaches into records: ``expected(case, "posterior", 0, "Z")``.
    """
    value = case["outputs"]
    for step in path:
        value = value[step]
    return tensors(value)


def _numbers(text: Any) -> Any:
    return [_numbers(t) for t in text] if isinstance(text, list) else float(text)
