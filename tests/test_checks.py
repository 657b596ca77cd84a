"""The checks themselves: what they let through, and the sentence they refuse the rest with."""

from __future__ import annotations

import math
import re

import pytest
import torch

from priornet import checks


def test_common_tensors_lifts_half_precision_and_numbers_follow():
    a, b = checks.common_tensors(a=torch.ones(2, dtype=torch.bfloat16), b=3.0)
    assert (a.dtype, b.dtype, b.shape) == (torch.float32, torch.float32, ())
    a, b = checks.common_tensors(a=2, b=torch.ones(2, dtype=torch.float64))
    assert (a.dtype, a.item()) == (torch.float64, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": torch.ones(1), "b": torch.ones(1).double()}, r"^`b` is torch\.float64 but `a` is "),
        (
            {"a": torch.ones(1, dtype=torch.int32)},
            r"^`a` must hold floating-point numbers; got tor",
        ),
        (
            {"a": torch.ones(1, dtype=torch.bool)},
            r"^`a` must hold floating-point .* torch\.bool\.$",
        ),
        ({"a": torch.ones(1, dtype=torch.complex64)}, r"^`a` must hold floating-point numbers"),
        ({"a": [1.0]}, r"^`a` must be a tensor or a number; got list\.$"),
        ({"a": None}, r"^`a` must be a tensor or a number; got NoneType\.$"),
        ({"a": 1.0, "b": 2.0}, r"at least one of `a`, `b` must be a tensor\.$"),
    ],
)
def test_common_tensors_refuses_mixtures(given, message):
    with pytest.raises(TypeError, match=message):
        checks.common_tensors(**given)


def test_common_tensors_refuses_two_devices():
    with pytest.raises(ValueError, match=r"^`b` is on meta but `a` is on cpu; move one of them"):
        checks.common_tensors(a=torch.ones(1), b=torch.ones(1, device="meta"))


@pytest.mark.parametrize(
    "shapes", [((), (4,)), ((4,), (1,)), ((2, 3), (3,)), ((2, 3), (1, 3)), ((0,), ()), ((4,),)]
)
def test_batches_stretch_to_a_shape_that_is_given(shapes):
    common = checks.broadcast_batch(**{f"p{i}": torch.Size(s) for i, s in enumerate(shapes)})
    assert common == shapes[0] or common == shapes[-1]


@pytest.mark.parametrize("shapes", [((4,), (4, 1)), ((4, 1), (1, 3)), ((4,), (3,)), ((2,), (3, 1))])
def test_batches_do_not_become_outer_products(shapes):
    given = dict(zip("ab", map(torch.Size, shapes), strict=True))
    text = rf"batch shapes do not fit together: `a` {re.escape(str(shapes[0]))}, `b` "
    with pytest.raises(ValueError, match=text):
        checks.broadcast_batch(**given)


def test_values_are_looked_at_only_where_they_can_be_seen():
    x = torch.ones(3)
    assert checks.values_visible(x)
    seen = []
    torch.func.vmap(lambda v: (seen.append(checks.values_visible(v)), v)[1])(x)
    torch.func.grad(lambda v: (seen.append(checks.values_visible(v)), v.sum())[1])(x)
    assert seen == [False, False]


def test_check_values_counts_and_shows_the_offenders():
    value = torch.tensor([1.0, -2.0, -3.0])
    with pytest.raises(ValueError, match=r"^`x` must be positive; 2 of 3 are not.*-2\.$"):
        checks.check_values("x", value, value > 0, "positive")


def test_check_greater_names_bound_and_smallest_value():
    with pytest.raises(ValueError, match=r"^`x` must exceed 0; smallest value given is -2\.$"):
        checks.check_greater("x", torch.tensor([1.0, -2.0]), 0.0)
    with pytest.raises(ValueError, match=r"^`x` .*nan"):
        checks.check_greater("x", torch.tensor([1.0, math.nan]), 0.0)
    with pytest.raises(ValueError, match=r"^`x` must be finite.*inf"):
        checks.check_greater("x", torch.tensor([1.0, math.inf]), 0.0)
