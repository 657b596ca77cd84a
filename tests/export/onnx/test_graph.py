"""Arithmetic on values becomes nodes with the same result."""

import numpy as np
import pytest

from _onnx import run_onnx
from priornet.export.onnx.graph import Graph


def evaluated(function, x):
    graph = Graph()
    value = graph.input("x", x.dtype, ["n"])
    graph.output("y", function(graph, value), ["n"])
    return run_onnx(graph.model(18, {}), {"x": x})["y"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operators_on_both_sides(dtype):
    x = np.array([0.5, 2.0, -3.0], dtype)
    row = np.array([1.0, 2.0, 4.0])
    found = evaluated(lambda _, v: 1.0 - (row * v + 2.0) / (3.0 - v) - row / v, x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 1 - (row * x + 2) / (3 - x) - row / x, rtol=1e-6)


def test_equal_constants_are_kept_once():
    graph = Graph()
    x = graph.input("x", np.float64, ["n"])
    graph.output("y", (x + 2.0) * 2.0 - 2.0, ["n"])
    assert len(graph.proto("g").initializer) == 1


def test_loop_ends_when_its_step_says_so():
    def halve(carried):
        half = carried[0] * 0.5
        largest = half.do("ReduceMax", keepdims=0)
        return largest.compare("Greater", 1.0), [half]

    x = np.array([100.0, 3.0])
    found = evaluated(lambda graph, v: graph.loop(50, [v], halve)[0], x)
    np.testing.assert_array_equal(found, x / 128)  # the first power that brings 100 to 1 or below
    found = evaluated(lambda graph, v: graph.loop(2, [v], halve)[0], x)
    np.testing.assert_array_equal(found, x / 4)
