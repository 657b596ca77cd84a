"""Assertions shared by the tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _float64(value: Any) -> Tensor:
    """Copy a tensor, array, number or nested list to a float64 tensor on the CPU."""
    if not isinstance(value, Tensor):
        # Plain numbers would become float32, on the device under test.
        return torch.as_tensor(value, dtype=torch.float64, device="cpu")
    return value.detach().to("cpu", torch.float64)


def assert_close(
    actual: Any, expected: Any, *, rel: float = 1e-9, abs: float = 0.0, equal_nan: bool = False
) -> None:
    """Fail unless shapes agree and |actual - expected| <= abs + rel |expected| in every element.

    The comparison itself is made in float64 whatever the dtypes; infinities must agree exactly.
    """
    torch.testing.assert_close(
        _float64(actual), _float64(expected), rtol=rel, atol=abs, equal_nan=equal_nan
    )


def assert_mean_close(draws: Tensor, expected: Any, z: float = 5.0) -> None:
    """Fail when the mean over the first axis is over z standard errors from its expectation."""
    sample, target = _float64(draws), _float64(expected)
    assert sample.isfinite().all(), "some draws are not finite"
    assert target.shape == sample.shape[1:], (
        f"draws of shape {tuple(sample.shape[1:])} against expected {tuple(target.shape)}"
    )
    stderr = sample.std(0) / len(sample) ** 0.5
    distance = (sample.mean(0) - target).abs()
    worst = (distance / stderr).max().item()
    assert (distance <= z * stderr).all(), f"{worst:.1f} standard errors away, {z} allowed"
