"""The shared assertions pass what is right and catch what is wrong."""

import math

import pytest
import torch

from _asserts import assert_close, assert_mean_close


def test_assert_close_compares_across_dtypes_and_kinds():
    assert_close(torch.tensor([1.0, math.inf], dtype=torch.float32), [1.0, math.inf])
    assert_close(torch.tensor(1.0 + 1e-4), 1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(1.0 + 1e-6, 1.0), ([1.0, 2.0], 1.0), (math.nan, 1.0), (math.inf, -math.inf)],
)
def test_assert_close_catches(actual, expected):
    with pytest.raises(AssertionError):
        assert_close(torch.tensor(actual, dtype=torch.float64), torch.tensor(expected))


def test_assert_mean_close_tells_a_true_mean_from_a_shifted_one(generator):
    draws = torch.randn(10_000, 3, generator=generator, device=generator.device)
    assert_mean_close(draws, torch.zeros(3))
    with pytest.raises(AssertionError, match="standard errors away"):
        assert_mean_close(draws, torch.full((3,), 0.1))


def test_assert_mean_close_refuses_to_broadcast_and_nan():
    with pytest.raises(AssertionError, match="against expected"):
        assert_mean_close(torch.zeros(5, 3), torch.zeros(1))
    with pytest.raises(AssertionError, match="not finite"):
        assert_mean_close(torch.full((5,), math.nan), torch.tensor(0.0))
