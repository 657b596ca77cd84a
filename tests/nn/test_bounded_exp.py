"""The bounded exponential: monotone, within its bounds, an exponential in between."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch.autograd import gradcheck

from _asserts import assert_close
from priornet.nn import BoundedExp
from priornet.nn.bounded_exp import BoundedExps

BOUNDS = [(1e-4, 1e6, 1e-2), (1e-4, 1e4, 1.0), (0.5, 2.0, 1.5), (1e-6, 1e8, 1.0)]


@pytest.mark.parametrize(("low", "high", "initial"), BOUNDS)
def test_zero_maps_to_the_initial_value(low, high, initial):
    value = BoundedExp(low, high, initial)(torch.zeros((), dtype=torch.float64))
    assert_close(value, torch.tensor(initial, dtype=torch.float64), rel=1e-12)


@pytest.mark.parametrize(("low", "high", "initial"), BOUNDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_output_stays_within_the_bounds_with_a_finite_gradient(low, high, initial, dtype):
    z = torch.cat([torch.linspace(-50, 50, 1001), torch.tensor([-1e30, -1e6, 1e6, 1e30])]).to(dtype)
    z.requires_grad_()
    value = BoundedExp(low, high, initial)(z)
    rounding = 1 + 8 * torch.finfo(dtype).eps * (1 + math.log(high / low))
    assert (value >= low / rounding).all()
    assert (value <= high * rounding).all()
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert slope.isfinite().all()
    assert (slope >= 0).all()


@given(
    st.floats(-8, 2).map(lambda e: 10.0**e),
    st.floats(0.1, 8),
    st.floats(0.05, 0.95),
)
def test_map_is_increasing_from_low_to_high_through_initial(low, decades, share):
    high = low * 10.0**decades
    initial = low * (high / low) ** share
    f = BoundedExp(low, high, initial)
    z = torch.linspace(-1, 1, 301, dtype=torch.float64) * math.log(high / low)
    assert (f(z).diff() > 0).all()
    assert_close(f(z.new_tensor(0.0)), z.new_tensor(initial), rel=1e-9)
    assert_close(f(z.new_tensor([-1e4, 1e4])), z.new_tensor([low, high]), rel=1e-9)


def test_one_unit_is_one_e_fold_halfway_between_the_bounds():
    f = BoundedExp(1e-4, 1e4, 1.0)
    z = torch.tensor([-1e-4, 1e-4], dtype=torch.float64)
    assert_close(f.log(z).diff(), torch.full((1,), 2e-4, dtype=torch.float64), rel=1e-6)
    assert_close(f(z), torch.exp(f.log(z)), rel=1e-14)


def test_gradcheck():
    z = torch.linspace(-20, 20, 9, dtype=torch.float64, requires_grad=True)
    assert gradcheck(BoundedExp(1e-4, 1e2, 1.0), (z,))


@pytest.mark.parametrize(
    ("low", "high", "initial"),
    [(0.0, 1.0, 0.5), (1.0, 2.0, 2.0), (1.0, 2.0, 1.0), (2.0, 1.0, 1.5), (1.0, math.inf, 2.0)],
)
def test_bounds_out_of_order_are_refused(low, high, initial):
    with pytest.raises(ValueError, match="0 < low < initial < high"):
        BoundedExp(low, high, initial)


def test_columns_in_place_give_the_values_and_autograds_derivatives():
    maps = BoundedExps(*(BoundedExp(*bounds) for bounds in BOUNDS))
    z = torch.linspace(-60, 60, 4 * 25, dtype=torch.float64).view(25, 4).requires_grad_()
    values = maps(z)
    (expected,) = torch.autograd.grad(values.sum(), z)
    written = z.detach().clone()
    slopes = maps.apply_(written)
    assert_close(written, values.detach(), rel=1e-14)
    assert_close(slopes, expected, rel=1e-13)
