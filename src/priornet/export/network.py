"""Stacked perceptrons as nodes."""

from __future__ import annotations

from priornet.export.graph import Graph, Value
from priornet.nn import StackedMLP

__all__ = ["perceptron"]


def perceptron(graph: Graph, stack: StackedMLP, x: Value) -> Value:
    """Raw outputs ``(rows, n)`` of one network, ``(S, rows, n)`` of several."""
    parts = [part.detach().cpu().numpy() for part in stack.pieces().values()]
    layers = list(
        zip(parts[::2], parts[1::2], strict=True)
    )  # weights (S, in, out), biases (S, out)
    for i, (weight, bias) in enumerate(layers):
        if stack.n_networks == 1:
            w, b = (graph.constant(part[0], x.dtype) for part in (weight, bias))
            x = x.do("Gemm", w, b)
        else:
            x = x @ weight + bias[:, None]
        if i < len(layers) - 1:
            x = x.do("Relu")
    return x
