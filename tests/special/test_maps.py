"""Monotone maps: exact inverses, slopes, linear ends, float32, and their JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import yeojohnson

from _asserts import assert_close
from _maps import MAPS, plain_inverse
from priornet.special.maps import (
    AsinhMap,
    CoordinateMaps,
    LogMap,
    QuantileMap,
    YeoJohnsonMap,
    map_from_json,
)

EVERY = pytest.mark.parametrize("own", MAPS.values(), ids=MAPS.keys())
T = torch.cat([torch.linspace(-12, 12, 241), torch.tensor([-1e3, 1e3])]).double()


def reachable(own):
    """Points whose y is not 0 but for rounding."""
    return T[T > -300] if own.kind == "log" else T


@EVERY
def test_inverse_is_the_plain_formula(own):
    t = T[T.abs() < 20]
    expected = [plain_inverse(own, float(value)) for value in t]
    assert_close(own.inverse(t), expected, rel=1e-6, abs=1e-9)


@EVERY
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_forward_undoes_inverse(own, dtype):
    t = (reachable(own) if dtype == torch.float64 else T[T.abs() < 13]).to(dtype)
    # A digit of y is worth eps |y| / h'(t) on the scale t.
    y = own.inverse(t)
    rounding = torch.finfo(dtype).eps * (t.abs() + (1 + y.abs()) * torch.exp(-own.log_slope(t)))
    assert ((own.forward(y) - t).abs() <= 16 * rounding).all()


@EVERY
def test_inverse_rises_and_log_slope_is_its_derivative(own):
    t = (reachable(own) + 0.003).requires_grad_()  # not on a knot
    y = own.inverse(t)
    (slope,) = torch.autograd.grad(y.sum(), t)
    assert (slope > 0).all()
    assert_close(own.log_slope(t), torch.log(slope), rel=1e-9, abs=1e-12)


@EVERY
def test_ends_are_linear(own):
    for end, sign in ((own.high, 1.0), (own.low, -1.0)):
        if end == -math.inf:
            continue
        t = end + sign * torch.tensor([0.0, 1.0, 10.0, 1e6], dtype=torch.float64)
        slopes = own.inverse(t).diff() / t.diff()
        assert_close(slopes, slopes[0].expand(3), rel=1e-9)
        if own.kind != "quantile":  # a continuous slope
            inside = torch.tensor(end - sign * 1e-9, dtype=torch.float64)
            assert_close(torch.exp(own.log_slope(inside)), slopes[0], rel=1e-6)


def test_log_map_has_positive_values_only():
    own = MAPS["log"]
    assert (own.inverse(torch.linspace(-80, 80, 50)) > 0).all()
    forward = own.forward(torch.tensor([-1.0, 0.0]))
    assert (forward == -math.inf).all()
    assert own.inverse(torch.tensor(-math.inf)) == 0


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_yeo_johnson_is_that_of_scipy(power):
    y = np.linspace(-0.9, 4, 40)
    expected: Any = yeojohnson(y, power)
    own = YeoJohnsonMap(0.0, 1.0, expected[0] - 1e-9, expected[-1] + 1e-9, power=power)
    assert_close(own.forward(torch.from_numpy(y)), expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", MAPS)
def test_float32_agrees_with_float64(name):
    own = MAPS[name]
    t = T[T.abs() < 13]
    single = own.inverse(t.float())
    exact = own.inverse(t.float().double())
    spread = torch.exp(own.log_slope(t)) * t.abs()  # by which rounding of t moves y
    assert ((single - exact).abs() <= 1e-6 * (exact.abs() + spread + 1e-3)).all()
    y = single.double()
    back, wide = own.forward(single).double(), own.forward(y)
    condition = wide.abs() + (y.abs() + own.scale) * torch.exp(-own.log_slope(wide))
    assert ((back - wide).abs() <= 1e-6 * (condition + 1e-3)).all()


def test_asinh_keeps_its_digits_on_the_negative_side_in_float32():
    own = AsinhMap(0.0, 1.0, -20.0, 20.0)
    y = torch.tensor([-1e8, -3e4, -1e-6])
    assert_close(own.forward(y), torch.asinh(y.double()), rel=1e-6)


@EVERY
def test_affine_moves_the_values(own):
    moved = own.affine(3.0, 0.5)
    assert_close(moved.inverse(T), 3.0 + 0.5 * own.inverse(T), rel=1e-12, abs=1e-12)
    assert type(moved) is type(own)


@EVERY
def test_json_brings_back_the_same_map(own):
    state = json.loads(json.dumps(own.to_json(), allow_nan=False))
    assert map_from_json(state) == own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "cube"}, "one of log, asinh"),
        ({"scale": 0.0}, "positive `scale`"),
        ({"scale": "1"}, "`scale` of the asinh map cannot be '1'"),
        ({"scale": True}, "`scale` of the asinh map cannot be True"),
        ({"loc": [1.0]}, "`loc` of the asinh map"),
        ({"low": 7.0}, "`low` < `high`"),
        ({"high": 1e4}, "cannot be inverted"),
        ({"high": 10**400}, "`high` of the asinh map"),
        ({"power": 1.0}, "no field 'power'"),
    ],
)
def test_a_wrong_state_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        map_from_json({**MAPS["asinh"].to_json(), **change})


def test_a_state_that_lacks_a_field_is_refused():
    state = MAPS["yeo-johnson 0.7"].to_json()
    del state["power"]
    with pytest.raises(ValueError, match="lacks power"):
        map_from_json(state)


@pytest.mark.parametrize("knots", [(0.0,), (0.0, 0.0), (1.0, 0.0), (0.0, 1.0, 2.0)])
def test_knots_that_do_not_rise_are_refused(knots):
    with pytest.raises(ValueError, match="rise"):
        QuantileMap(0.0, 1.0, knots[0], knots[-1], knots=knots, values=(0.0, 1.0))


def test_log_map_refuses_a_lower_end():
    with pytest.raises(ValueError, match="no lower end"):
        LogMap(0.0, 1.0, low=-1.0, high=1.0)


def test_coordinate_maps_act_on_the_last_axis():
    maps = CoordinateMaps([MAPS["log"], MAPS["asinh"]])
    t = torch.tensor([[0.3, -1.0], [2.0, 5.0]])
    for method in ("inverse", "log_slope"):
        found = getattr(maps, method)(t)
        for k, own in enumerate(maps.maps):
            assert_close(found[:, k], getattr(own, method)(t[:, k]), rel=0)
    assert_close(maps.forward(maps.inverse(t)), t, rel=1e-5)
