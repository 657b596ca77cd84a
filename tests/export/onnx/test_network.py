"""Perceptrons as nodes give the outputs of the stacks."""

import numpy as np
import pytest
import torch

from _onnx import run_onnx
from priornet.export.onnx.graph import Graph
from priornet.export.onnx.model import LEAST_OPSET, make_model
from priornet.export.onnx.network import perceptron
from priornet.nn import GaussianHead, StackedMLP
from priornet.nn.ramps import RampedMLP


def outputs(stack, x):
    graph = Graph()
    given = graph.input("x", np.float32, ["rows", x.shape[1]])
    several = [] if stack.n_networks == 1 else [stack.n_networks]
    graph.output("raw", perceptron(graph, stack, given), [*several, "rows", 2])
    return run_onnx(make_model(graph, LEAST_OPSET, {}), {"x": x.numpy()})["raw"]


def assert_same(stack, x):
    with torch.no_grad():
        raw = stack.raw(x.expand(stack.n_networks, *x.shape))
    assert raw.std() > 0.01  # it says something
    expected = raw[0] if stack.n_networks == 1 else raw
    torch.testing.assert_close(torch.from_numpy(outputs(stack, x)), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_plain_numbers(seeds, generator):
    assert_same(
        StackedMLP(3, (8, 8), GaussianHead(8, init_gain=1.0), seeds),
        torch.randn(20, 3, generator=generator),
    )


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_numbers_as_ramps(seeds, generator):
    edges = [(-1.0, 0.0, 0.5, 2.0), (), (-0.5, 0.25)]
    stack = RampedMLP(edges, (8, 8), GaussianHead(8, init_gain=1.0), seeds)
    x = torch.randn(20, 3, generator=generator)
    x[0] = torch.tensor([-1e12, 1e12, 1e12])
    x[1] = torch.tensor([0.5, 1.0, -0.5])  # on the edges
    assert_same(stack, x[1:])
    assert np.isfinite(outputs(stack, x[:1])).all()
